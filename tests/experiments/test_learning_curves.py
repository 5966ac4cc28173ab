"""Learning curves at the smallest size: the same sequences in each step give the same curve, packed or not."""

import math

import pytest

import brimful
from experiments.learning_curves import Run, train, trainings
from experiments.learning_curves_report import SAME, UNPACKED
from experiments.masked_pairs import MAX_LENGTH, QUICK, pretraining_data


@pytest.fixture(scope="module")
def curves():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BRIMFUL_OFFLINE", "1")  # the corpus that every Python has
        data = pretraining_data(dict.fromkeys(QUICK, 300), held_out=20)
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    settings = trainings(6, plan)
    return {name: train(Run(name, settings[name], data, plan, 0, points=3)) for name in (UNPACKED, SAME)}


def test_packed_and_padded_losses_stay_together(curves):
    padded, packed = curves[UNPACKED], curves[SAME]
    assert len(padded) == len(packed) > 1
    for one, other in zip(padded, packed, strict=True):
        assert math.isclose(one["word_loss"], other["word_loss"], abs_tol=2e-3)
    assert padded[-1]["word_loss"] < padded[0]["word_loss"]
