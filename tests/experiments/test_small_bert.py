"""The small BERT: its losses are those of transformers and of PackedEncoder, and its batches hold what they say."""

import itertools

import numpy as np
import pytest
import torch

import brimful
from brimful.models import PackedEncoder
from experiments.masked_pairs import (
    LABEL,
    MASK,
    MAX_LENGTH,
    frequent_tokens,
    masked,
    packed_steps,
    padded_steps,
    pretraining_data,
    renumbered,
    repacked_steps,
)
from experiments.small_bert import collator, held_out_batches, measure, packed_losses, padded_losses, small_bert
from tests.experiments.planted_pairs import FIRST, planted


@pytest.fixture(scope="module")
def data():
    return planted(300, 40)


@pytest.fixture
def model(data):
    return small_bert(data.vocabulary, seed=0).double()


def total(losses):
    return (losses.words + losses.next_sentence).item()


def test_padded_loss_is_that_of_transformers(data, model):
    batch = next(padded_steps(data, rows=12, seed=0))
    assert batch["input_ids"].shape == (12, MAX_LENGTH)
    assert total(padded_losses(model, batch)) == pytest.approx(model(**batch).loss.item(), abs=1e-12)


def test_packed_loss_is_that_of_the_packed_encoder_and_of_the_same_pairs_padded(data, model):
    padded = next(padded_steps(data, rows=12, seed=0))
    packed = next(repacked_steps(data, rows=12, seed=0, collator=collator(model)))
    assert len(packed["input_ids"]) < 12
    expected = PackedEncoder(model)(**packed).loss.item()
    assert total(packed_losses(model, packed)) == pytest.approx(expected, abs=1e-12)
    for one, other in zip(packed_losses(model, packed), padded_losses(model, padded), strict=True):
        assert one.item() == pytest.approx(other.item(), abs=1e-12)


def rows_of(batch):
    """The pairs of a batch of either kind, as sorted tuples of their tokens and labels."""
    found = []
    lengths = batch["seq_lengths"] if "seq_lengths" in batch else batch["attention_mask"].sum(1)[:, None]
    for row, of_row in enumerate(lengths.tolist()):
        ends = list(itertools.accumulate(of_row))
        for start, end in zip([0, *ends], ends, strict=False):
            if end > start:
                each = (batch[name][row, start:end].tolist() for name in ("input_ids", "labels", "token_type_ids"))
                found.append(tuple(map(tuple, each)))
    return sorted(found)


def test_every_step_holds_the_same_pairs_padded_and_packed(data, model):
    padded, packed = padded_steps(data, 32, seed=1), repacked_steps(data, 32, 1, collator(model))
    for one, other in itertools.islice(zip(padded, packed, strict=False), 12):  # more than an epoch
        assert rows_of(one) == rows_of(other)


def test_an_epoch_of_packs_holds_every_pair_once_and_the_next_hides_other_words(data, model):
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    steps = packed_steps(data, plan, packs=plan.packs, seed=0, collator=collator(model))
    first, second = next(steps), next(steps)
    assert rows_of(first) == sorted(
        (tuple(row["input_ids"].tolist()), tuple(row["labels"].tolist()), tuple(row["token_type_ids"].tolist()))
        for row in masked(data.train, data.vocabulary, seed=0, epoch=0)
    )
    assert len(rows_of(second)) == len(data.train)
    assert rows_of(first) != rows_of(second)


def test_masking_hides_15_percent_of_words_in_three_ways(data):
    many = data.train * 20
    rows = masked(many, data.vocabulary, seed=3)
    ids, labels = (np.concatenate([row[name] for row in rows]) for name in ("input_ids", "labels"))
    words = np.concatenate([pair.input_ids for pair in many])
    hidden = labels != -100
    assert (words[hidden] == labels[hidden]).all()
    assert (ids[~hidden] == words[~hidden]).all()
    assert (words[hidden] >= FIRST).all()
    assert hidden.sum() / (words >= FIRST).sum() == pytest.approx(0.15, abs=0.01)
    assert (ids[hidden] == MASK).mean() == pytest.approx(0.8, abs=0.02)
    seen = (ids[hidden] == labels[hidden]).mean()
    assert seen == pytest.approx(0.1 + 0.1 / 24, abs=0.015)  # any of 24 words may be the word itself


def test_vocabulary_keeps_the_most_frequent():
    sequences = [np.array([2, 9, 9, 9, 8, 8, 3]), np.array([2, 12, 7, 7, 7, 7, 3])]
    numbers = frequent_tokens(sequences, special=[0, 1, 2, 3, 4], vocabulary=7)
    assert renumbered(np.array([2, 7, 9, 8, 12, 3, 500]), numbers).tolist() == [2, 5, 6, 1, 1, 3, 1]


def test_figures_are_means_over_words_and_pairs(data, model):
    held_out = held_out_batches(data)
    assert sum(len(batch["input_ids"]) for batch in held_out) == 40
    assert max(batch["input_ids"].shape[1] for batch in held_out) == max(len(p.input_ids) for p in data.held_out)
    whole: dict[str, list[float]] = {}
    with torch.no_grad():
        rows = masked(data.held_out, data.vocabulary, 2**32)
        for row in rows:  # one by one, by the model's own outputs
            out = model(torch.tensor(row["input_ids"])[None], token_type_ids=torch.tensor(row["token_type_ids"])[None])
            log_p = out.prediction_logits[0].log_softmax(-1)
            for place in np.flatnonzero(row["labels"] != -100):
                label = row["labels"][place]
                whole.setdefault("word_loss", []).append(-log_p[place, label].item())
                whole.setdefault("word_accuracy", []).append(log_p[place].argmax().item() == label)
            of_pair = out.seq_relationship_logits[0].log_softmax(-1)
            whole.setdefault("pair_loss", []).append(-of_pair[row[LABEL]].item())
            whole.setdefault("pair_accuracy", []).append(of_pair.argmax().item() == row[LABEL])
    assert measure(model, held_out) == pytest.approx({name: np.mean(each) for name, each in whole.items()})


def test_documents_held_out_are_in_no_pair_to_learn_from(monkeypatch):
    monkeypatch.setenv("BRIMFUL_OFFLINE", "1")
    monkeypatch.setenv("BRIMFUL_CACHE", "nowhere")
    made = pretraining_data({"computing": 300, "chat": 300}, held_out=30, vocabulary=500)
    assert made.vocabulary == 500
    assert len(made.held_out) <= 30
    assert {tuple(p.input_ids.tolist()) for p in made.held_out}.isdisjoint(
        tuple(p.input_ids.tolist()) for p in made.train
    )
    assert len(made.sources) == 1
