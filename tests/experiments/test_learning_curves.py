"""Learning curves at the smallest size: with the same sequences in each step, packing changes nothing."""

import math

import pytest
import torch

import brimful
from brimful.tuning import TrainingSettings
from experiments.learning_curves import Run, train, trainings
from experiments.learning_curves_report import (
    BETAS_STAY,
    COMPUTE,
    EFFECTIVE,
    RATE_SCALED,
    SAME,
    UNPACKED,
    apart,
    excess,
    faster,
    seconds_to,
    section,
    speedup,
)
from experiments.masked_pairs import MAX_LENGTH, padded_steps, repacked_steps
from experiments.small_bert import collator, held_out_batches, packed_losses, padded_losses, pretrain, small_bert
from tests.experiments.planted_pairs import planted

STEPS = 12


@pytest.fixture(scope="module")
def data():
    return planted(400, 60)


@pytest.fixture(scope="module")
def curves(data):
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    settings = trainings(STEPS, plan)
    return {
        name: [train(Run(name, settings[name], data, plan, seed, points=3)) for seed in (0, 1)] for name in settings
    }


@pytest.mark.parametrize("broken", [False, True])
def test_same_steps_are_the_same_training_in_float64(data, broken):
    """Packed and padded stay within 1e-9 for 20 steps of LAMB; without the loss of words they do not."""
    settings = TrainingSettings(16, 0.02, 20, warmup_steps=2, optimizer="lamb")
    figures = []
    for kind in (padded_losses, packed_losses):
        model = small_bert(data.vocabulary, seed=0).double()
        if kind is padded_losses:
            batches = padded_steps(data, 16, seed=0)
        else:
            batches = repacked_steps(data, 16, 0, collator(model))
            if broken:
                kind = lambda model, batch: packed_losses(model, batch)._replace(words=torch.zeros(()))  # noqa: E731
        figures.append(pretrain(model, batches, kind, settings, held_out_batches(data), points=5))
    distance = max(abs(one["word_loss"] - other["word_loss"]) for one, other in zip(*figures, strict=True))
    assert distance > 1e-2 if broken else distance < 1e-9
    assert [point["sequences"] for point in figures[0]] == [point["sequences"] for point in figures[1]]


def test_trainings_follow_the_recipes(data):
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    factor = len(data.train) / plan.packs
    settings = trainings(120, plan)
    assert settings[SAME] == settings[UNPACKED]
    assert settings[EFFECTIVE].batch_size == round(32 / factor)
    assert settings[COMPUTE].batch_size == 32
    assert settings[COMPUTE].total_steps == math.ceil(120 / factor)
    assert settings[COMPUTE].betas == pytest.approx((0.9**factor, 0.999**factor))
    assert settings[BETAS_STAY].betas == settings[UNPACKED].betas
    assert settings[RATE_SCALED].learning_rate == pytest.approx(0.01 * factor)


def test_curves_of_all_trainings_fall_and_those_of_the_same_steps_coincide(curves):
    assert apart(curves) < 2e-3
    for each in curves.values():
        assert all(curve[-1]["word_loss"] < curve[0]["word_loss"] for curve in each)
    for one, other in zip(curves[UNPACKED], curves[SAME], strict=True):
        assert [p["sequences"] for p in one] == [p["sequences"] for p in other]
    # As many sequences in fewer steps: behind by more than rounding could make.
    assert excess(curves, COMPUTE).mean > 0.05


def test_report_has_a_row_for_every_training_and_picture_all_lines(curves, data, tmp_path):
    from experiments.learning_curves import draw

    plan = brimful.plan(data.lengths, MAX_LENGTH)
    figures = {
        **data.figures(),
        "machine": "planted",
        "size": {"seeds": 2, "held_out": 60},
        "plan": plan.figures(),
        "settings": {
            name: {
                "batch_size": each.batch_size,
                "total_steps": each.total_steps,
                "betas": each.betas,
                "learning_rate": each.learning_rate,
            }
            for name, each in trainings(STEPS, plan).items()
        },
        "runs": [
            {"training": name, "seed": seed, "curve": curve}
            for name in curves
            for seed, curve in enumerate(curves[name])
        ],
    }
    lines = section(figures)
    for name in curves:
        assert sum(line.startswith(f"| {name} |") for line in lines) == (2 if name in {SAME, EFFECTIVE, COMPUTE} else 1)
    draw(figures, tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text(encoding="utf-8")
    assert text.count("role-mark") >= 2 * (3 + 4 + 3)


def point(seconds, loss, step=0, sequences=0):
    return {"step": step, "seconds": seconds, "sequences": sequences, "word_loss": loss}


def test_time_to_a_loss_by_hand():
    slow = [point(2.0, 6.0, 1, 10), point(4.0, 5.0, 2, 20), point(6.0, 4.0, 3, 30), point(8.0, 3.0, 4, 40)]
    quick = [point(1.0, 6.0, 1, 10), point(2.0, 5.0, 2, 20), point(3.0, 4.5, 3, 30), point(4.0, 2.5, 4, 40)]
    assert seconds_to(slow, 4.5) == 5.0
    assert seconds_to(slow, 7.0) == 2.0
    assert seconds_to(slow, 2.0) is None
    assert seconds_to(quick, 3.5) == 3.5
    curves = {UNPACKED: [slow, slow], "quick": [quick, quick], "never": [quick, slow[:1]]}
    half, most = (speedup(curves, "quick", share) for share in (0.5, 0.75))
    assert half is not None
    assert most is not None
    assert (half.mean, most.mean) == pytest.approx((4.0 / 2.0, 6.0 / 3.25))
    assert speedup(curves, "never", 0.75) is None
    assert faster(curves, "quick").mean == pytest.approx(2.0)
