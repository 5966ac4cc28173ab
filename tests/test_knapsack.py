"""The knapsack of patterns: exact in whole numbers, and its patterns are worth what it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful.knapsack import PatternKnapsack
from tests.reference.bounds import most_valuable_pattern


@st.composite
def knapsacks(draw):
    max_length = draw(st.integers(1, 16))
    lengths = sorted(draw(st.sets(st.integers(1, max_length), min_size=1, max_size=5)))
    values = draw(st.lists(st.integers(0, 2**40), min_size=len(lengths), max_size=len(lengths)))
    return lengths, values, max_length


@pytest.mark.parametrize("max_sequences", [None, 1, 2, 3, 8])
@given(problem=knapsacks())
@settings(max_examples=60)
def test_the_best_pattern_is_that_of_exhaustive_search_exactly(problem, max_sequences):
    lengths, values, max_length = problem
    knapsack = PatternKnapsack(np.array(lengths), max_length, max_sequences)
    worth = knapsack.solve(np.array(values, np.int64))
    assert worth == most_valuable_pattern(lengths, values, max_length, max_sequences)
    assert knapsack.best_with().max() == worth or worth == 0


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("max_sequences", [None, 1, 2, 3])
@given(problem=knapsacks())
@settings(max_examples=60)
def test_each_pattern_fits_and_is_worth_what_is_said(problem, max_sequences, kind):
    lengths, values, max_length = problem
    knapsack = PatternKnapsack(np.array(lengths), max_length, max_sequences)
    scale = 2**40 if kind is np.float64 else 1
    knapsack.solve((np.array(values) / scale).astype(kind))
    for index, worth in enumerate(knapsack.best_with().tolist()):
        copies = knapsack.pattern(index)
        assert copies[index] >= 1
        assert copies @ np.array(lengths) <= max_length
        assert max_sequences is None or copies.sum() <= max_sequences
        assert copies @ np.array(values, np.float64) / scale == pytest.approx(worth, rel=1e-12, abs=1e-12)
