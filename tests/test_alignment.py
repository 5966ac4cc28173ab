"""Alignment: sequences padded to a multiple inside the pack are planned, bounded, assigned and counted as such."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthError, PackAssignment, PackPlan, PlanError
from brimful.planning import ALGORITHMS
from tests.planning.strategies import QUICK
from tests.reference.packing import best_fit_decreasing, fewest_packs


def up(length, align):
    """The next multiple, found by counting."""
    return next(slots for slots in itertools.count(length) if slots % align == 0)


lengths_and_align = st.integers(1, 4).flatmap(
    lambda align: st.tuples(st.lists(st.integers(1, 6 * align), max_size=12), st.just(6 * align), st.just(align))
)


@pytest.mark.parametrize("algorithm", [*QUICK, "optimal"])
@settings(deadline=None, max_examples=40)
@given(drawn=lengths_and_align, max_sequences=st.sampled_from([None, 1, 3]))
def test_no_pack_takes_more_slots_than_it_has(algorithm, drawn, max_sequences):
    lengths, max_length, align = drawn
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm, align=align)
    packs = brimful.assign(plan, lengths, seed=1)
    for pack in packs:
        assert sum(up(lengths[index], align) for index in pack.tolist()) <= max_length
    assert sorted(packs.sequence_ids.tolist()) == list(range(len(lengths)))
    assert packs.packs == plan.packs
    assert plan.aligned_tokens == sum(up(length, align) for length in lengths)
    assert plan.histogram.n_tokens == sum(lengths)
    assert plan.efficiency == (sum(lengths) / (plan.packs * max_length) if lengths else 1.0)


@settings(deadline=None, max_examples=60)
@given(drawn=lengths_and_align, max_sequences=st.sampled_from([None, 2, 3]))
def test_the_bound_holds_for_every_plan_of_aligned_sequences(drawn, max_sequences):
    lengths, max_length, align = drawn
    lengths = lengths[:7]
    slots = [up(length, align) for length in lengths]
    plan = brimful.plan(lengths, max_length, max_sequences, "optimal", align=align)
    least = fewest_packs(slots, max_length, max_sequences)
    assert plan.lower_bound <= least <= plan.packs
    quick = brimful.plan(lengths, max_length, max_sequences, "lpfhp", align=align)
    assert quick.packs == len(best_fit_decreasing(slots, max_length, max_sequences))


def test_the_bound_counts_alignment():
    plan = brimful.plan([1] * 8, max_length=16, align=8)
    assert (plan.packs, plan.lower_bound, plan.gap, plan.efficiency) == (4, 4, 0.0, 8 / 64)


@pytest.mark.parametrize("algorithm", ["lpfhp", "optimal", "next_fit"])
def test_an_aligned_plan_comes_back_equal_from_its_file(tmp_path, algorithm):
    lengths = np.random.default_rng(3).integers(1, 65, 300)
    plan = brimful.plan(lengths, 64, algorithm=algorithm, align=8)
    plan.save(tmp_path / "plan.json")
    assert PackPlan.load(tmp_path / "plan.json") == plan
    assert PackPlan.load(tmp_path / "plan.json").bound == plan.bound
    packs = brimful.assign(plan, lengths)
    packs.save(tmp_path / "packs.npz", plan, lengths)
    assert PackAssignment.load(tmp_path / "packs.npz", plan, lengths) == packs
    other = brimful.plan(lengths, 64, algorithm=algorithm, align=16)
    with pytest.raises(PlanError):
        PackAssignment.load(tmp_path / "packs.npz", other, lengths)


def test_a_plan_with_patterns_that_are_not_aligned_is_refused():
    value = brimful.plan([3, 5], max_length=8).to_json()
    with pytest.raises(PlanError, match="of length 3 there are 1 in the one and 0 in the other"):
        PackPlan.from_json(value | {"align": 4})


@pytest.mark.parametrize("align", [0, -1, 1.5, True, "8", None])
def test_align_is_a_whole_number(align):
    with pytest.raises(LengthError, match="align is a whole number from 1"):
        brimful.plan([3], max_length=8, align=align)


@pytest.mark.parametrize(("align", "remedy"), [(16, "make it 96 or 112"), (128, "make it 128")])
def test_max_length_is_a_multiple_of_align(align, remedy):
    with pytest.raises(LengthError, match=f"max_length 100 is not a multiple of align {align}; {remedy}"):
        brimful.plan([3], max_length=100, align=align)


@given(drawn=lengths_and_align, seed=st.integers(0, 100))
@settings(deadline=None)
def test_offsets_count_real_tokens_and_slots_apart(drawn, seed):
    lengths, max_length, align = drawn
    packs = brimful.assign(plan := brimful.plan(lengths, max_length, align=align), lengths, seed)
    real, slots = packs.token_offsets(lengths, align)
    at_token = at_slot = 0
    for place, index in enumerate(packs.sequence_ids.tolist()):
        assert (real[place], slots[place]) == (at_token, at_slot)
        at_token, at_slot = at_token + lengths[index], at_slot + up(lengths[index], align)
    assert (real[-1], slots[-1]) == (sum(lengths), plan.aligned_tokens)


def test_offsets_need_a_length_for_each_sequence():
    packs = brimful.assign(brimful.plan([1, 2], 3), [1, 2])
    with pytest.raises(LengthError, match="there are 2 sequences, but 1 lengths; give one each"):
        packs.token_offsets([1])


def test_every_algorithm_takes_align():
    for algorithm in ALGORITHMS:
        plan = brimful.plan([5, 9, 12, 1, 30], 32, algorithm=algorithm, align=4)
        assert plan.align == 4
        assert all(length % 4 == 0 for length in plan.patterns.lengths.tolist())
