"""Ablations where the answer is planted: without the block mask nothing is learned of the topics of pairs."""

import pytest
import torch

import brimful
from brimful.tuning import TrainingSettings
from experiments.ablations import LOSSES, Run, by_pack, draw, train
from experiments.ablations_report import (
    MASK,
    NEXT_SENTENCE,
    NOTHING,
    PARTS,
    POSITIONS,
    costs,
    differences,
    section,
)
from experiments.learning_curves_report import curves_of
from experiments.masked_pairs import LABEL, MAX_LENGTH, packed_steps
from experiments.small_bert import collator, packed_outputs, small_bert, word_losses
from tests.experiments.planted_pairs import planted

SETTINGS = TrainingSettings(8, 0.02, 130, warmup_steps=10, optimizer="lamb")


@pytest.fixture(scope="module")
def data():
    return planted()


@pytest.fixture(scope="module")
def curves(data):
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    return {part: [train(Run(part, SETTINGS, data, plan, 0, points=2))] for part in (NOTHING, MASK, NEXT_SENTENCE)}


def test_leaving_out_the_mask_costs_words_and_pairs(curves):
    last = curves[NOTHING][0][-1]
    assert last["word_loss"] < 2.2  # ln 24 is 3.18, ln 4 is 1.39
    assert last["pair_accuracy"] > 0.8
    cost = costs(curves, MASK)
    assert cost.words.mean > 0.5
    assert cost.pairs.mean > 0.2


def test_without_next_sentence_words_are_learned_and_pairs_are_not(curves):
    cost = costs(curves, NEXT_SENTENCE)
    assert abs(cost.words.mean) < 0.5
    assert cost.pairs.mean > 0.2


@pytest.fixture(scope="module")
def batch(data):
    model = small_bert(data.vocabulary, seed=0).double()
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    return model, next(packed_steps(data, plan, 3, 0, collator(model)))


def test_loss_by_pack_is_the_mean_of_packs_one_by_one(batch):
    model, packs = batch
    whole = by_pack(model, packs)
    alone = []
    for row in range(3):
        one = {name: value[row : row + 1] for name, value in packs.items()}
        hidden, scores = packed_outputs(model, one)
        words = word_losses(model, hidden, one["labels"]).mean()
        kept = one[LABEL][0] != -100
        pairs = torch.nn.functional.cross_entropy(scores[0][kept], one[LABEL][0][kept])
        alone.append((words.item(), pairs.item()))
    assert whole.words.item() == pytest.approx(sum(words for words, _ in alone) / 3)
    assert whole.next_sentence.item() == pytest.approx(sum(pairs for _, pairs in alone) / 3)


def test_each_part_changes_the_loss_of_a_batch_and_nothing_else_in_it(batch):
    model, packs = batch
    before = {name: value.clone() for name, value in packs.items()}
    all_in = [loss.item() for loss in LOSSES[NOTHING](model, packs)]
    for part in PARTS[1:]:
        left_out = [loss.item() for loss in LOSSES[part](model, packs)]
        assert left_out != pytest.approx(all_in, abs=1e-9), part
    assert LOSSES[NEXT_SENTENCE](model, packs).words.item() == all_in[0]
    assert all(torch.equal(packs[name], before[name]) for name in before)


def test_positions_and_mask_do_not_matter_where_a_pack_holds_one_sequence(data):
    model = small_bert(data.vocabulary, seed=0).double()
    alone = brimful.plan(data.lengths, MAX_LENGTH, max_sequences=1)
    packs = next(packed_steps(data, alone, 5, 0, collator(model)))
    expected = [loss.item() for loss in LOSSES[NOTHING](model, packs)]
    for part in (MASK, POSITIONS):
        assert [loss.item() for loss in LOSSES[part](model, packs)] == pytest.approx(expected, abs=1e-9)


def test_report_and_picture_have_every_part(data, tmp_path):
    def curve(loss, pairs):
        figures = {"word_accuracy": 0.1, "pair_loss": 0.7}
        return [
            {"step": at, "sequences": 9 * at, "seconds": 1.0, "word_loss": loss, "pair_accuracy": pairs} | figures
            for at in (1, 2)
        ]

    runs = [
        {"without": part, "seed": seed, "curve": curve(3 + 0.25 * at + 0.01 * seed, 0.9 - 0.1 * at)}
        for at, part in enumerate(PARTS)
        for seed in (0, 1)
    ]
    plan = brimful.plan(data.lengths, MAX_LENGTH).figures()
    settings = {"batch_size": 8, "total_steps": 130}
    figures = {"runs": runs, "plan": plan, "settings": settings, "size": {"seeds": 2, "held_out": 9}, "machine": ""}
    lines = section(figures)
    [mask] = [line for line in lines if line.startswith(f"| {MASK} |")]
    assert "+0.2500 ± 0.0000" in mask
    assert "+10.0 ± 0.0" in mask
    assert sum(line.startswith("- **") for line in lines) == len(PARTS) - 1
    [without, _] = differences(curves_of(figures, "without"))[MASK]
    assert [(point["word_loss"], point["pair_accuracy"]) for point in without] == [pytest.approx((0.25, -0.1))] * 2
    draw(figures, tmp_path / "ablations.svg")
    assert (tmp_path / "ablations.svg").read_text(encoding="utf-8").count("role-mark") >= 4 * (len(PARTS) - 1)
