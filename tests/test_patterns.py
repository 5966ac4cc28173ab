"""Patterns: the run-length form holds what the packs hold, and nothing that is no pattern."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import LengthHistogram, PlanError
from brimful.patterns import Patterns

packs_of_lengths = st.lists(
    st.lists(st.integers(1, 6) | st.integers(1, 2**31 - 1), min_size=1, max_size=6)
    | st.sampled_from([[5, 5], [5, 5, 2], [2, 5, 5], [2, 5], [9]]),
    max_size=12,
)


def from_packs(packs: list[list[int]]) -> Patterns:
    lengths = np.array([length for pack in packs for length in pack], np.int64)
    return Patterns.from_packs(lengths, np.cumsum([0, *map(len, packs)]))


def as_counter(patterns: Patterns) -> Counter[tuple[int, ...]]:
    """Each pattern once, as the lengths of a pack with its count."""
    counter: Counter[tuple[int, ...]] = Counter()
    for pattern, count in patterns:
        assert pattern not in counter
        counter[pattern] = count
    return counter


@settings(max_examples=200)
@given(packs_of_lengths)
def test_equal_packs_become_one_pattern_longest_first(packs):
    patterns = from_packs(packs)
    assert as_counter(patterns) == Counter(tuple(sorted(pack, reverse=True)) for pack in packs)
    assert patterns.packs == len(packs)
    assert len(patterns) == len({tuple(sorted(pack)) for pack in packs})


@settings(max_examples=200)
@given(packs_of_lengths, packs_of_lengths)
def test_patterns_add_up(left, right):
    assert as_counter(from_packs(left) + from_packs(right)) == as_counter(from_packs(left + right))


@given(packs_of_lengths)
def test_sums_per_pattern_and_in_all(packs):
    patterns = from_packs(packs)
    assert patterns.tokens().tolist() == [sum(pattern) for pattern, _ in patterns]
    assert patterns.sequences().tolist() == [len(pattern) for pattern, _ in patterns]
    assert patterns.histogram() == LengthHistogram.from_lengths([length for pack in packs for length in pack])


@given(packs_of_lengths)
def test_lengths_of_any_width_give_the_same_patterns(packs):
    offsets = np.cumsum([0, *map(len, packs)])
    lengths = [1 + length % 200 for pack in packs for length in pack]
    wide = Patterns.from_packs(np.array(lengths, np.int64), offsets)
    for dtype in ("u1", "i2", "u4"):
        assert Patterns.from_packs(np.array(lengths, dtype), offsets) == wide


def test_a_pattern_of_many_equal_sequences_is_one_run():
    patterns = from_packs([[1] * 512, [1] * 512])
    assert (patterns.lengths.tolist(), patterns.copies.tolist(), patterns.counts.tolist()) == ([1], [512], [2])


def test_the_drawn_example_is_read_as_it_is_drawn():
    patterns = Patterns(*map(np.array, ([7, 2, 5], [1, 1, 2], [0, 2, 3], [3, 1])))
    assert list(patterns) == [((7, 2), 3), ((5, 5), 1)]
    assert (patterns.packs, len(patterns)) == (4, 2)
    assert repr(patterns) == "Patterns(2 patterns, 4 packs)"


@pytest.mark.parametrize(
    ("lengths", "copies", "offsets", "counts", "text"),
    [
        (
            [7],
            [1],
            [0],
            [1],
            "the offsets of patterns run from 0 to the number of runs, one more than there are counts",
        ),
        ([7], [1], [0, 2], [1], "the offsets of patterns run from 0 to the number of runs"),
        ([7], [1], [1, 1], [1], "the offsets of patterns run from 0 to the number of runs"),
        ([7], [1], [], [], "the offsets of patterns run from 0 to the number of runs"),
        ([7], [1], [0], [], "the offsets of patterns run from 0 to the number of runs"),
        ([7, 2], [1], [0, 2], [1], "patterns have one copies number per length, not 1 for 2"),
        ([7], [1], [0, 0, 1], [1, 1], "a pattern holds at least one sequence; leave empty patterns out"),
        ([7, 5], [1, 1], [0, 3, 1, 2], [1, 1, 1], "a pattern holds at least one sequence; leave empty patterns out"),
        ([0], [1], [0, 1], [1], "the lengths of patterns are at least 1, not 0"),
        ([7], [-1], [0, 1], [1], "the copies of patterns are at least 1, not -1"),
        ([7], [1], [0, 1], [0], "the counts of patterns are at least 1, not 0"),
        ([9, 2, 7], [1, 1, 1], [0, 1, 3], [1, 1], "pattern 1 does not list each length once, longest first"),
        ([9, 7, 7], [1, 1, 1], [0, 1, 3], [1, 1], "pattern 1 does not list each length once, longest first"),
        ([2, 9, 7], [1, 1, 1], [0, 2, 3], [1, 1], "pattern 0 does not list each length once, longest first"),
        ([2], [2**61], [0, 1], [1], "patterns hold fewer than 2^62 tokens"),
        ([1] * 8, [1] * 8, list(range(9)), [2**61] * 8, "patterns hold fewer than 2^62 tokens"),
        ([2**61], [2**61], [0, 1], [2**61], "patterns hold fewer than 2^62 tokens"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(lengths, copies, offsets, counts, text):
    with pytest.raises(PlanError, match=f"^{re.escape(text)}"):
        Patterns(lengths, copies, offsets, counts)


@pytest.mark.parametrize(
    "arrays",
    [
        ([7.9], [1], [0, 1], [1]),
        ([7], [True], [0, 1], [1]),
        ([7], [1], [0, 1], [1.5]),
        ([[7]], [[1]], [0, 1], [1]),
        (["7"], [1], [0, 1], [1]),
    ],
    ids=["fractional length", "boolean copies", "fractional count", "two dimensions", "text"],
)
def test_patterns_of_anything_but_whole_numbers_are_refused_not_rounded(arrays):
    with pytest.raises(PlanError):
        Patterns(*arrays)


def test_patterns_are_values():
    first, second = from_packs([[7, 2], [5]]), from_packs([[5], [2, 7]])
    assert first == second
    assert hash(first) == hash(second)
    assert first != from_packs([[7, 2], [5], [5]])
    assert first != from_packs([[7, 3], [5]])
    assert first != from_packs([[7, 2, 2], [5]])
    assert first != 3
    with pytest.raises(TypeError):
        first + 3  # type: ignore[operator]


def test_patterns_are_read_only_and_apart_from_the_arrays_they_were_made_of():
    arrays = [np.array([7, 2]), np.array([1, 1]), np.array([0, 2]), np.array([3])]
    patterns = Patterns(*arrays)
    for array in arrays:
        array[0] += 1
    assert list(patterns) == [((7, 2), 3)]
    for name in ("lengths", "copies", "offsets", "counts"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(patterns, name)[0] = 1
        with pytest.raises(AttributeError):
            setattr(patterns, name, arrays[0])
