"""Each histogram algorithm makes exactly the packs that its twin makes one sequence at a time."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthHistogram, SettingError
from brimful.patterns import Patterns
from brimful.planning import ALGORITHMS
from tests.planning.strategies import LIMITS, problems
from tests.reference import packing

TWINS = {
    "lpfhp": packing.best_fit_decreasing,
    "spfhp": packing.worst_fit_decreasing,
    "next_fit": packing.next_fit,
    "none": packing.alone,
}


SOLVERS = {"optimal", "nnlshp", "ennlshp"}


def expand(patterns: Patterns) -> Iterator[tuple[int, ...]]:
    """Every pack of a plan by itself."""
    return itertools.chain.from_iterable([pattern] * count for pattern, count in patterns)


def test_every_algorithm_has_a_twin():
    """But those that solve a programme: they are held against exhaustive search and dense solvers elsewhere."""
    assert set(TWINS) == set(ALGORITHMS) - SOLVERS


@pytest.mark.parametrize("algorithm", TWINS)
@pytest.mark.parametrize("max_sequences", LIMITS)
@settings(max_examples=80)
@given(problem=problems())
def test_the_packs_are_those_of_the_twin(algorithm, max_sequences, problem):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    packs = TWINS[algorithm](lengths, max_length, max_sequences)
    assert plan.packs == len(packs)
    assert packing.multiset(expand(plan.patterns)) == packing.multiset(packs)


@pytest.mark.parametrize("algorithm", TWINS)
@pytest.mark.parametrize("max_sequences", LIMITS)
@pytest.mark.parametrize("max_length", [40, 1500])
def test_the_packs_are_those_of_the_twin_on_skewed_data(algorithm, max_sequences, max_length):
    """Four hundred sequences with many short ones, as in real text: large groups of equal packs, chains of ties."""
    random = np.random.default_rng(max_length)
    lengths = np.minimum(max_length, 1 + random.exponential(max_length / 5, size=400).astype(int)).tolist()
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    packs = TWINS[algorithm](lengths, max_length, max_sequences)
    assert packing.multiset(expand(plan.patterns)) == packing.multiset(packs)


@settings(max_examples=80)
@given(
    lengths=st.lists(st.integers(1, 16), min_size=40, max_size=80),
    max_length=st.integers(16, 20),
    max_sequences=st.sampled_from(LIMITS),
    window=st.integers(1, 9),
)
def test_next_fit_does_not_notice_where_its_windows_end(lengths, max_length, max_sequences, window):
    """The walk works through windows of the data; packs that straddle two of them are whole all the same."""
    module = importlib.import_module("brimful.planning.next_fit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WINDOW", window)
        plan = brimful.plan(lengths, max_length, max_sequences, "next_fit")
    packs = packing.next_fit(lengths, max_length, max_sequences)
    assert packing.multiset(expand(plan.patterns)) == packing.multiset(packs)


def test_next_fit_asks_for_the_lengths_when_it_gets_a_histogram():
    histogram = LengthHistogram.from_lengths([3, 4])
    with pytest.raises(
        SettingError, match=r"^next_fit packs in data order, which a histogram does not have; give it the"
    ):
        brimful.plan(histogram, 8, algorithm="next_fit")


def test_the_order_of_the_data_matters_to_next_fit_alone():
    assert brimful.plan([5, 5, 9, 1], 10, algorithm="next_fit").packs == 2
    assert brimful.plan([5, 9, 5, 1], 10, algorithm="next_fit").packs == 3
