"""Fine-tuning at the smallest size: answers are looked for everywhere and nowhere else, and differences are stated."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from experiments.corpora import split
from experiments.corpora.readers import docstrings
from experiments.dictionary_tasks import Tasks, answer_questions, best_spans, tasks, tell_subjects
from experiments.fine_tuning import draw
from experiments.fine_tuning_report import NONE, PACKED, PRETRAININGS, UNPACKED, apart, section, speedup
from experiments.small_bert import small_bert


def test_best_span_is_the_best_of_all_that_there_are():
    rng = np.random.default_rng(0)
    batch = {
        "input_ids": torch.zeros(4, 40, dtype=torch.long),
        "token_type_ids": torch.tensor([[0] * 5 + [1] * 35] * 4),
        "attention_mask": torch.tensor([[1] * length + [0] * (40 - length) for length in (40, 12, 6, 30)]),
    }
    starts, ends = (torch.tensor(rng.normal(size=(4, 40))) for _ in range(2))
    ends[0, 39], starts[0, 5] = 9, 9  # too long an answer, by five tokens

    def model(**_):
        return SimpleNamespace(start_logits=starts, end_logits=ends)

    found = list(zip(*best_spans(model, batch), strict=True))
    for row, length in enumerate((40, 12, 6, 30)):
        spans = ((s, e) for s, e in itertools.product(range(5, length), repeat=2) if s <= e < s + 30)
        assert found[row] == max(spans, key=lambda span: starts[row, span[0]] + ends[row, span[1]])


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIMFUL_OFFLINE", "1")
        patch.setenv("BRIMFUL_CACHE", "nowhere")
        train, held_out = split(docstrings())
        return tasks(train[:1500], held_out, np.arange(8000), most=300, test=40)


def test_rows_point_at_the_answers_of_held_out_documents(made):
    assert len(made.asked) == len(made.unknown) == 40
    for row, question in made.asked:
        assert row["start_positions"] == question.start_position
        assert row["end_positions"] == question.end_position
        assert len(row["input_ids"]) == len(question.input_ids)


def test_both_tasks_learn_what_they_are_trained_on(made):
    """Trained and measured on the same few, a fine-tuning that works is far above chance."""
    few = made.unknown[:16]
    one = made.asked[:4]
    seen = Tasks([row for row, _ in one], one, few, few, made.subjects, {})
    pretrained = small_bert(8000, seed=0)
    before = {name: weight.clone() for name, weight in pretrained.state_dict().items()}
    assert tell_subjects(pretrained, seen, steps=40, seed=0)["accuracy"] > 0.8
    answered = answer_questions(pretrained, seen, steps=60, seed=0)
    assert answered["f1"] > 0.6
    assert answered["exact"] <= answered["f1"]
    assert all(torch.equal(weight, before[name]) for name, weight in pretrained.state_dict().items())


@pytest.fixture
def figures():
    level = {UNPACKED: (0.4, 10.0), PACKED: (0.41, 5.0), NONE: (0.2, 0.0)}
    runs = []
    for name, seed in itertools.product(PRETRAININGS, range(3)):
        share, seconds = level[name]
        wobble = 0.01 * seed * (1 if name == PACKED else -1)
        runs.append({"pretraining": name, "seed": seed, "exact": share, "f1": share + wobble, "accuracy": share})
        if name != NONE:
            runs[-1] |= {"sequences": 100, "seconds": seconds, "word_loss": 5.0 + wobble}
    return {
        "sources": ["planted"],
        "beyond_vocabulary": 0.125,
        "machine": "planted",
        "size": {"question_steps": 1, "subject_steps": 1, "seeds": 3},
        "plan": {"sequences": 9, "efficiency": 0.9, "packing_factor": 2.1},
        "settings": {name: {"batch_size": 1, "total_steps": 2} for name in (UNPACKED, PACKED)},
        "subjects": ["A", "B"],
        "asked": 5,
        "unknown": 6,
        "baselines": {"coin": {"accuracy": 0.5}},
        "runs": runs,
    }


def test_differences_are_in_points_with_their_verdict(figures, tmp_path):
    assert apart(figures, "exact").text(1, "+") == "+1.0 ± 0.0"
    assert apart(figures, "exact").verdict == "beyond seed noise"
    f1 = apart(figures, "f1")
    assert f1.mean == pytest.approx(1 + 2)
    assert f1.verdict == "within seed noise"
    assert speedup(figures).mean == pytest.approx(2)
    lines = section(figures)
    assert any("exact match: beyond seed noise; F1: within seed noise" in line for line in lines)
    assert "| on packs − without | +1.0 ± 0.0 | +3.0 ± 5.0 | +1.0 ± 0.0 |" in lines
    assert "| no model: coin |  |  | 50.0 |" in lines
    draw(figures, tmp_path / "fine_tuning.svg")
    assert (tmp_path / "fine_tuning.svg").read_text(encoding="utf-8").count("<path") >= 3 * 3 * 3
