"""Groups: their sequences share a pack, in their order, whatever the plan."""

import copy
import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthError, SequenceGroups


@given(
    grouped=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), max_size=15),
    align=st.sampled_from([1, 2, 5]),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_every_group_is_whole_and_in_order(grouped, align, seed):
    lengths = [length for group in grouped for length in group]
    groups = SequenceGroups.from_sizes([len(group) for group in grouped])
    slots = groups.lengths(lengths, align)
    assert slots.tolist() == [sum(-(-length // align) * align for length in group) for group in grouped]
    plan = brimful.plan(slots, max_length=30, align=align)
    packs = groups.expand(brimful.assign(plan, slots, seed))
    assert packs.packs == plan.packs
    pack_of = {index: number for number, pack in enumerate(packs) for index in pack.tolist()}
    order = {index: place for place, index in enumerate(packs.sequence_ids.tolist())}
    first = 0
    for group in grouped:
        members = range(first, first + len(group))
        assert len({pack_of[index] for index in members}) == 1
        assert [order[index] for index in members] == list(range(order[first], order[first] + len(group)))
        first += len(group)
    assert all(sum(-(-lengths[index] // align) * align for index in pack.tolist()) <= 30 for pack in packs)


@given(st.lists(st.integers(1, 3), max_size=10))
def test_ids_and_sizes_give_the_same_groups(sizes):
    ids = [f"group {number}" for number, size in enumerate(sizes) for _ in range(size)]
    groups = SequenceGroups.from_ids(ids)
    assert groups.offsets.tolist() == SequenceGroups.from_sizes(sizes).offsets.tolist()
    assert (len(groups), groups.n_sequences) == (len(sizes), len(ids))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda groups: pickle.loads(pickle.dumps(groups))])  # noqa: S301
def test_copies_stay_read_only(copied):
    groups = copied(SequenceGroups.from_sizes([2, 1]))
    with pytest.raises(ValueError, match="read-only"):
        groups.offsets[0] = 1


def test_a_group_that_comes_again_is_refused():
    with pytest.raises(LengthError, match="the sequences of group 7 stand apart: it comes again at sequence 3"):
        SequenceGroups.from_ids([7, 7, 1, 7, 2])


@pytest.mark.parametrize("offsets", [[], [1, 2], [0, 2, 2], [0, 3, 1], [0, 1.5]])
def test_offsets_rise_from_0(offsets):
    with pytest.raises(LengthError, match="offsets of groups"):
        SequenceGroups(np.array(offsets))


def test_sizes_are_whole_numbers_from_1():
    with pytest.raises(LengthError, match="a group size is at least 1, but item 1 is 0"):
        SequenceGroups.from_sizes([2, 0])


@pytest.mark.parametrize("ids", [[[1], [2]], [1.0, 2.0], [True], ["a", None], np.array([0.5]), pa.array([1, None])])
def test_ids_are_whole_numbers_or_texts(ids):
    with pytest.raises(LengthError, match="group ids are whole numbers or texts, but that of sequence"):
        SequenceGroups.from_ids(ids)


@pytest.mark.parametrize(
    "ids", [[2**63, 2**63 + 1], [1, "1"], ["a", "a\0"], [b"a", b"a\0"], pa.array([2**53, 2**53 + 1])]
)
def test_ids_that_are_nearly_equal_are_two(ids):
    assert len(SequenceGroups.from_ids(ids)) == 2


@pytest.mark.parametrize("ids", ["aab", 5, None])
def test_ids_are_a_list(ids):
    with pytest.raises(LengthError, match="group ids are a list or an array, one for each sequence, not"):
        SequenceGroups.from_ids(ids)


def test_ids_may_be_a_column_of_a_table():
    column = pa.chunked_array([["a", "a"], ["a", "b"]])
    assert SequenceGroups.from_ids(column).offsets.tolist() == [0, 3, 4]


def test_sums_that_leave_int64_are_refused():
    with pytest.raises(LengthError, match=r"all lengths together are fewer than 2\^62 tokens, not about"):
        SequenceGroups.from_sizes([2]).lengths([2**62, 2**62])
    packs = brimful.PackAssignment(np.array([0, 1]), np.array([0, 1, 2]))
    with pytest.raises(LengthError, match="all lengths together are fewer"):
        packs.token_offsets([2**61, 2**61])


def test_other_numbers_of_sequences_or_groups_are_refused():
    groups = SequenceGroups.from_sizes([2, 1])
    with pytest.raises(LengthError, match="the groups have 3 sequences, but there are 2 lengths"):
        groups.lengths([1, 2])
    with pytest.raises(LengthError, match="there are 2 groups, but the assignment has 1"):
        groups.expand(brimful.assign(brimful.plan([4], 5), [4]))
