"""Batches hold what they were given, in any order, and count padding as the device does."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful import LengthError
from brimful.batching import Batches
from tests.reference.batching import in_batches, padded_tokens

lists_of_batches = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), max_size=8)


def of_lists(batches: list[list[int]]) -> Batches:
    ids = [index for batch in batches for index in batch]
    return Batches(np.array(ids, np.int64), np.cumsum([0, *map(len, batches)]))


@given(lists_of_batches, st.randoms())
def test_batches_come_back_in_any_order(batches, random):
    packed = of_lists(batches)
    assert packed.to_lists() == batches
    assert [packed[number].tolist() for number in range(-len(batches), 0)] == batches
    order = random.sample(range(len(batches)), len(batches))
    assert packed.take(np.array(order, np.int64)).to_lists() == [batches[number] for number in order]


@given(st.lists(st.integers(0, 99), max_size=30), st.integers(1, 9))
def test_cut_as_a_loader_cuts(ids, batch_size):
    assert Batches.cut(ids, batch_size).to_lists() == in_batches(ids, batch_size)


@given(lists_of_batches, st.lists(st.integers(1, 50), min_size=10, max_size=10), st.integers(1, 9))
def test_padding_is_the_longest_times_how_many(batches, lengths, multiple):
    rounded = [(length + multiple - 1) // multiple * multiple for length in lengths]
    packed = of_lists(batches)
    padded = padded_tokens(batches, rounded)
    assert packed.padded_tokens(lengths, multiple).sum() == padded
    real = sum(lengths[index] for batch in batches for index in batch)
    assert packed.efficiency(lengths, multiple) == (real / padded if padded else 1.0)


def test_batches_survive_pickling_and_cannot_be_changed():
    batches = pickle.loads(pickle.dumps(Batches.cut([3, 2, 1], 2)))  # noqa: S301
    assert batches.to_lists() == [[3, 2], [1]]
    with pytest.raises(ValueError, match="read-only"):
        batches.ids[0] = 7


@pytest.mark.parametrize(
    ("ids", "offsets"), [([1, 2], [0, 1]), ([1, 2], [1, 2]), ([1, 2], []), ([1, 2], [0, 0, 2]), ([1, 2], [0, 3, 2])]
)
def test_offsets_that_do_not_rise_are_refused(ids, offsets):
    with pytest.raises(
        LengthError, match=r"^offsets of batches rise from 0 to the number of ids, 2; no batch is empty$"
    ):
        Batches(np.array(ids), np.array(offsets, np.int64))


def test_batching_needs_no_torch():
    code = "import sys, brimful.batching; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_ids_without_a_length_are_refused():
    with pytest.raises(LengthError, match=r"^ids from 0 to 2 do not belong to 2 lengths$"):
        Batches.cut([0, 2], 2).efficiency([5, 5])
    with pytest.raises(IndexError, match=r"^batch 1 of 1$"):
        Batches.cut([0, 2], 2)[1]
    with pytest.raises(LengthError, match=r"^batch_size is a whole number"):
        Batches.cut([0, 2], 0)
