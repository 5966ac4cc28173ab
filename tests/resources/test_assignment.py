"""Assignments for several resources: every sequence once, in a place of its size, by fair chance."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import LengthError, PlanError, SettingError
from brimful.resources import assign_resources, plan_resources
from tests.resources.strategies import LIMITS, WAYS, columns, limits, problems

SIZES = {"tokens": [3] * 40 + [2] * 40, "images": [1] * 40 + [0] * 40}


@settings(max_examples=150)
@given(
    problem=problems(),
    max_sequences=st.sampled_from(LIMITS),
    way=st.sampled_from(WAYS),
    seed=st.integers(0, 2**63 - 1),
    epoch=st.integers(0, 1000),
)
def test_every_sequence_fills_one_place_of_its_size(problem, max_sequences, way, seed, epoch):
    sizes, capacities = problem
    data = columns(sizes, len(capacities))
    plan = plan_resources(data, limits(capacities), max_sequences, *way)
    backwards = dict(reversed(data.items()))
    assignment = assign_resources(plan, backwards, seed, epoch)
    packs = [assignment[pack].tolist() for pack in range(plan.packs)]
    assert sorted(index for pack in packs for index in pack) == list(range(len(sizes)))
    filled = Counter(tuple(sizes[index] for index in pack) for pack in packs)
    assert filled == dict(plan.contents())  # greatest first in both


def test_an_assignment_depends_on_seed_and_epoch_alone():
    plan = plan_resources(SIZES, {"tokens": 5, "images": 1})
    first = assign_resources(plan, SIZES, 3, 7)
    assert assign_resources(plan, {name: np.array(column) for name, column in SIZES.items()}, 3, 7) == first
    others = {assign_resources(plan, SIZES, seed, epoch) for seed in range(5) for epoch in range(5)}
    assert len(others) == 25
    assert {assignment.packs for assignment in others} == {plan.packs}


def test_equal_sequences_are_exchanged():
    """Packs of one 3 and one 2: over many epochs every 3 meets every 2 about equally often."""
    plan = plan_resources(SIZES, {"tokens": 5, "images": 1})
    assert list(plan.contents()) == [(((3, 1), (2, 0)), 40)]
    met = np.zeros((40, 40), int)
    for epoch in range(400):
        threes, twos = assign_resources(plan, SIZES, epoch=epoch).sequence_ids.reshape(40, 2).T
        met[threes, twos - 40] += 1
    assert met.sum() == 400 * 40
    assert met.max() < 40  # ten on the average


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        (
            {"tokens": [9, 2], "images": [0, 2]},
            "the plan is for other sizes (of size 3,1 there are 1 in the one and",
        ),
        ({"tokens": [9, 2, 3], "images": [0, 2, 0]}, "the plan is for other sizes (of size 3,0 there are 0 in the one"),
        ({"tokens": [9, 2, 3]}, "the plan is for tokens, images, not for tokens; plan anew"),
        ({"tokens": [9, 2, 3], "pics": [0, 2, 1]}, "the plan is for tokens, images, not for tokens, pics; plan anew"),
    ],
)
def test_a_plan_for_other_sizes_is_refused(sizes, text):
    plan = plan_resources({"tokens": [9, 2, 3], "images": [0, 2, 1]}, {"tokens": 10, "images": 2})
    with pytest.raises(PlanError, match=f"^{re.escape(text)}"):
        assign_resources(plan, sizes)


def test_seeds_and_sizes_are_checked():
    plan = plan_resources(SIZES, {"tokens": 5, "images": 1})
    with pytest.raises(SettingError, match="seed is a whole number from 0"):
        assign_resources(plan, SIZES, seed=-1)
    with pytest.raises(LengthError, match="the sizes in tokens are at least 0, but item 1 is -1"):
        assign_resources(plan, {"tokens": [1, -1], "images": [0, 0]})


def test_nothing_to_assign():
    plan = plan_resources({"tokens": [], "images": []}, {"tokens": 5, "images": 1})
    assert assign_resources(plan, {"tokens": [], "images": []}).packs == 0
