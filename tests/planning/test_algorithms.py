"""Every algorithm of the registry keeps the promises of a plan, whatever the data and the limits."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthHistogram, SettingError
from brimful.planning import DATA_ORDER, LEAST_SQUARES
from tests.planning.strategies import LIMITS, QUICK, planted, problems
from tests.reference.packing import fewest_packs

HISTOGRAM_ALGORITHMS = [name for name in QUICK if name not in DATA_ORDER]

every_algorithm = pytest.mark.parametrize("algorithm", QUICK)
every_limit = pytest.mark.parametrize("max_sequences", LIMITS)


@every_algorithm
@every_limit
@settings(max_examples=60)
@given(problem=problems())
def test_a_plan_holds_every_sequence_once_and_no_pack_is_too_full(algorithm, max_sequences, problem):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    planned: Counter[int] = Counter()
    for pattern, count in plan.patterns:
        assert count >= 1
        assert 1 <= sum(pattern) <= max_length
        assert max_sequences is None or len(pattern) <= max_sequences
        assert list(pattern) == sorted(pattern, reverse=True)
        for length in pattern:
            planned[length] += count
    assert planned == Counter(lengths)
    assert plan.packs == sum(count for _, count in plan.patterns)
    assert plan.lower_bound <= plan.packs <= len(lengths)
    assert (plan.algorithm, plan.max_length, plan.max_sequences) == (algorithm, max_length, max_sequences)


@pytest.mark.parametrize("algorithm", sorted(LEAST_SQUARES))
@settings(max_examples=25, deadline=None)
@given(problem=problems(max_size=25, most=31), max_sequences=st.sampled_from(LIMITS))
def test_least_squares_keep_the_promises_of_a_plan_too(algorithm, problem, max_sequences):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    assert plan == brimful.plan(lengths, max_length, max_sequences, algorithm)
    assert Counter(length for pattern, count in plan.patterns for length in pattern * count) == Counter(lengths)
    assert plan.lower_bound <= plan.packs <= len(lengths)


@pytest.mark.parametrize("algorithm", sorted(LEAST_SQUARES))
def test_least_squares_say_how_far_they_go(algorithm):
    with pytest.raises(SettingError, match="at most 4096 slots, not 4097; optimal packs better"):
        brimful.plan([1], 4097, algorithm=algorithm)


@every_algorithm
@every_limit
@settings(max_examples=30)
@given(problem=problems(max_size=7))
def test_no_plan_and_no_bound_cheats_the_optimum(algorithm, max_sequences, problem):
    """The bound is a proof: no packing at all is below it, so the best one is between it and every plan."""
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    optimum = fewest_packs(lengths, max_length, max_sequences)
    assert plan.lower_bound <= optimum <= plan.packs


@every_algorithm
@settings(max_examples=20)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS))
def test_the_same_data_give_the_same_plan(algorithm, problem, max_sequences):
    lengths, max_length = problem
    plans = [brimful.plan(lengths, max_length, max_sequences, algorithm) for _ in range(2)]
    assert plans[0] == plans[1]
    assert plans[0].to_json()["patterns"] == plans[1].to_json()["patterns"]


@pytest.mark.parametrize("algorithm", HISTOGRAM_ALGORITHMS)
@settings(max_examples=20)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS), random=st.randoms())
def test_a_plan_depends_on_the_histogram_alone(algorithm, problem, max_sequences, random):
    """Neither the order of the data nor the kind of array matters, unless the algorithm says that order does."""
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    shuffled = random.sample(lengths, len(lengths))
    for data in (shuffled, np.array(lengths, np.uint16), LengthHistogram.from_lengths(lengths)):
        assert brimful.plan(data, max_length, max_sequences, algorithm) == plan


@every_algorithm
@every_limit
@settings(max_examples=40)
@given(data=st.data())
def test_planted_optimum_is_proven_and_never_beaten(algorithm, max_sequences, data):
    """Full packs cut into pieces: the bound is exactly the number of packs that we started from."""
    lengths, max_length, packs = data.draw(planted(max_sequences))
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    assert plan.lower_bound == packs
    assert plan.packs >= packs


@settings(max_examples=150)
@given(planted(None))
def test_lpfhp_stays_within_the_worst_case_of_best_fit_decreasing(problem):
    """Johnson (1973): best fit decreasing needs at most 11/9 of the optimum, and 4 packs."""
    lengths, max_length, packs = problem
    assert 9 * brimful.plan(lengths, max_length, algorithm="lpfhp").packs <= 11 * packs + 36


def test_lpfhp_comes_within_one_percent_of_a_large_planted_optimum():
    random = np.random.default_rng(0)
    cuts = [np.sort(random.choice(np.arange(1, 512), size=3, replace=False)) for _ in range(5000)]
    lengths = np.concatenate([np.diff([0, *cut, 512]) for cut in cuts])
    plan = brimful.plan(random.permutation(lengths), 512, algorithm="lpfhp")
    assert plan.lower_bound == 5000
    assert 5000 <= plan.packs <= 5050


@pytest.mark.parametrize("algorithm", HISTOGRAM_ALGORITHMS)
@every_limit
def test_counts_beyond_any_dataset_stay_exact(algorithm, max_sequences):
    """Planning works on the histogram: 10^15 sequences are planned like ten, without any rounding."""
    histogram = LengthHistogram(np.array([1, 3, 50, 64]), np.array([10**15 + 1, 10**15 + 3, 7, 10**14 + 9]))
    plan = brimful.plan(histogram, 100, max_sequences, algorithm)
    planned: Counter[int] = Counter()
    for pattern, count in plan.patterns:
        for length in pattern:
            planned[length] += count
    assert planned == {1: 10**15 + 1, 3: 10**15 + 3, 50: 7, 64: 10**14 + 9}
    assert plan.lower_bound <= plan.packs == sum(count for _, count in plan.patterns)


@every_algorithm
@every_limit
@pytest.mark.parametrize("max_length", [1, 2, 509, 8193, 131072])
def test_any_max_length_will_do(algorithm, max_sequences, max_length):
    lengths = np.random.default_rng(max_length).integers(1, max_length, size=300, endpoint=True)
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    assert plan.histogram == LengthHistogram.from_lengths(lengths)
    assert plan.patterns.histogram() == plan.histogram
    assert plan.patterns.tokens().max() <= max_length
    assert plan.lower_bound <= plan.packs


@every_algorithm
@every_limit
def test_nothing_to_pack_is_a_plan_of_no_packs(algorithm, max_sequences):
    plan = brimful.plan([], 8, max_sequences, algorithm)
    assert (plan.packs, plan.lower_bound, plan.efficiency, plan.packing_factor, plan.gap) == (0, 0, 1.0, 0.0, 0.0)
    assert list(plan.patterns) == []


@every_algorithm
def test_whole_packs_stay_whole(algorithm):
    """Sequences of exactly max_length: one pack each, no slot empty."""
    plan = brimful.plan([8] * 5, 8, algorithm=algorithm)
    assert list(plan.patterns) == [((8,), 5)]
    assert (plan.packs, plan.lower_bound, plan.efficiency) == (5, 5, 1.0)


@pytest.mark.parametrize(
    ("lengths", "max_length", "max_sequences", "packs"),
    [
        ([10] * 100, 100, None, 10),
        ([1] * 100, 128, 8, 13),
        ([20] * 10, 2048, None, 1),
        ([1] * 2048, 2048, None, 1),
        ([7] * 3, 20, 2, 2),
    ],
)
@pytest.mark.parametrize("algorithm", ["lpfhp", "next_fit"])
def test_equal_sequences_fill_packs_without_waste(lengths, max_length, max_sequences, packs, algorithm):
    plan = brimful.plan(lengths, max_length, max_sequences, algorithm)
    assert plan.packs == plan.lower_bound == packs


def test_spfhp_opens_one_pack_for_each_sequence_that_no_open_pack_takes():
    """The published rule, which collapses where max_length is many times the lengths."""
    assert list(brimful.plan([10] * 100, 100, algorithm="spfhp").patterns) == [((10,), 100)]
    assert list(brimful.plan([20, 10, 10, 10], 100, algorithm="spfhp").patterns) == [((20, 10, 10, 10), 1)]


@every_algorithm
def test_a_million_sequences_of_more_than_half_a_pack_are_a_few_patterns(algorithm):
    """The plan, and so its cost, grows with the distinct lengths, not with the sequences."""
    lengths = np.random.default_rng(0).integers(257, 512, size=1_000_000, endpoint=True)
    plan = brimful.plan(lengths, 512, algorithm=algorithm)
    assert plan.packs == plan.lower_bound == 1_000_000
    assert len(plan.patterns) <= 256
    assert plan.bound.kind == "martello-toth"


def test_each_algorithm_earns_its_place_on_planted_data():
    """On full packs cut into pieces, without a limit, the order of merit is none, next_fit, spfhp, lpfhp."""
    random = np.random.default_rng(3)
    pieces = []
    for _ in range(500):
        cuts = np.sort(random.choice(np.arange(1, 512), size=random.integers(1, 4), replace=False))
        pieces += np.diff([0, *cuts, 512]).tolist()
    data = random.permutation(pieces)
    packs = [brimful.plan(data, 512, algorithm=name).packs for name in ("none", "next_fit", "spfhp", "lpfhp")]
    assert all(worse > better for worse, better in itertools.pairwise(packs))
