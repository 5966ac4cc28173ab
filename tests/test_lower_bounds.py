"""Lower bounds are what their definitions say, and the best of them is taken."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from brimful import CapacityError, LengthError, LengthHistogram
from brimful.lower_bounds import LowerBound, dual_feasible_bound, lower_bound, martello_toth_bound, token_bound
from tests.planning.strategies import LIMITS, problems
from tests.reference import bounds, packing


@settings(max_examples=300)
@given(problems(max_size=40))
def test_token_bound_is_its_definition(problem):
    lengths, max_length = problem
    bound = token_bound(LengthHistogram.from_lengths(lengths), max_length)
    assert bound == LowerBound(bounds.token_bound(lengths, max_length), "tokens")


@settings(max_examples=300)
@given(problems(max_size=25))
def test_martello_toth_bound_is_its_definition(problem):
    """Over individual sequences and all thresholds, not only those at which a length stands."""
    lengths, max_length = problem
    bound = martello_toth_bound(LengthHistogram.from_lengths(lengths), max_length)
    assert bound == LowerBound(bounds.martello_toth_bound(lengths, max_length), "martello-toth")


@settings(max_examples=60, deadline=None)
@given(problems(max_size=12))
def test_dual_feasible_bound_is_its_definition(problem):
    """In fractions, over individual sequences and all thresholds."""
    lengths, max_length = problem
    bound = dual_feasible_bound(LengthHistogram.from_lengths(lengths), max_length)
    assert bound == LowerBound(bounds.dual_feasible_bound(lengths, max_length), "fekete-schepers")


def test_dual_feasible_bound_sees_what_tokens_and_halves_do_not():
    """Seven of 4 in packs of 11: two fit, three do not, though they have 28 tokens and are shorter than half."""
    histogram = LengthHistogram.from_lengths([4] * 7)
    assert lower_bound(histogram, 11) == LowerBound(4, "fekete-schepers")
    assert token_bound(histogram, 11).packs == martello_toth_bound(histogram, 11).packs == 3


@pytest.mark.parametrize("max_sequences", LIMITS)
@settings(max_examples=150)
@given(problem=problems(max_size=7))
def test_no_packing_is_below_the_bound(max_sequences, problem):
    lengths, max_length = problem
    bound = lower_bound(LengthHistogram.from_lengths(lengths), max_length, max_sequences)
    assert bound.packs <= packing.fewest_packs(lengths, max_length, max_sequences)


@pytest.mark.parametrize("max_sequences", LIMITS)
@settings(max_examples=25, deadline=None)
@given(problem=problems(max_size=12))
def test_the_best_bound_is_taken(max_sequences, problem):
    lengths, max_length = problem
    bound = lower_bound(LengthHistogram.from_lengths(lengths), max_length, max_sequences)
    simple = (bounds.token_bound, bounds.martello_toth_bound, bounds.dual_feasible_bound)
    known = [bound(lengths, max_length) for bound in simple]
    if max_sequences is not None:
        known.append(-(-len(lengths) // max_sequences))
    assert bound.packs == max(known)


@pytest.mark.parametrize(
    ("lengths", "max_length", "max_sequences", "expected"),
    [
        ([2, 3, 7, 9], 10, None, LowerBound(3, "tokens")),
        ([6, 6, 6], 10, None, LowerBound(3, "martello-toth")),
        ([7, 7, 5, 5, 5], 10, None, LowerBound(4, "martello-toth")),
        ([1] * 9, 10, 2, LowerBound(5, "max_sequences")),
        ([1] * 100, 128, 8, LowerBound(13, "max_sequences")),
        ([5, 5], 10, None, LowerBound(1, "tokens")),
        ([6, 5], 11, None, LowerBound(1, "tokens")),
        ([6, 6], 11, None, LowerBound(2, "tokens")),
        ([], 10, 3, LowerBound(0, "tokens")),
    ],
)
def test_bounds_that_can_be_checked_by_hand(lengths, max_length, max_sequences, expected):
    assert lower_bound(LengthHistogram.from_lengths(lengths), max_length, max_sequences) == expected


def test_bounds_stay_exact_near_the_limit_of_int64():
    """2^61 tokens in sequences of more than half a pack, where products come within a bit of overflow."""
    histogram = LengthHistogram(np.array([2**20 + 1]), np.array([2**41 - 2**22]))
    assert lower_bound(histogram, 2**21) == LowerBound(2**41 - 2**22, "martello-toth")
    assert lower_bound(histogram, 2**21 + 1).packs == 2**41 - 2**22
    many = LengthHistogram(np.array([3]), np.array([10**18 + 1]))
    assert token_bound(many, 7).packs == (3 * (10**18 + 1) + 6) // 7
    assert dual_feasible_bound(many, 7).packs == (10**18 + 2) // 2


def test_a_sequence_that_fits_nowhere_has_no_bound():
    with pytest.raises(CapacityError, match=r"^1 of 2 sequences are longer than max_length 8 "):
        lower_bound(LengthHistogram.from_lengths([3, 9]), 8)


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "2", 2**31])
def test_capacities_are_checked(bad):
    histogram = LengthHistogram.from_lengths([1])
    with pytest.raises(LengthError, match=r"^max_length is a whole number from 1 to 2147483647, not "):
        lower_bound(histogram, bad)
    with pytest.raises(LengthError, match=r"^max_sequences is a whole number from 1 to 2147483647, not "):
        lower_bound(histogram, 8, bad)
