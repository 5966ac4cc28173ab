"""Planning for several capacities: what a plan promises, and the very packs that one sequence at a time gives."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import CapacityError, LengthError, LengthHistogram, SettingError
from brimful.resources import ALGORITHMS, PRIORITIES, ResourceHistogram, plan_resources
from brimful.resources.fit import SHARE_UNIT
from tests.reference import resources as reference
from tests.resources.strategies import LIMITS, WAYS, columns, limits, planted, problems

TWINS = {"best_fit": reference.best_fit_decreasing, "first_fit": reference.first_fit_decreasing}

every_way = pytest.mark.parametrize(("algorithm", "priority"), WAYS)
every_limit = pytest.mark.parametrize("max_sequences", LIMITS)


def expand(plan):
    """Every pack of a plan by itself."""
    return itertools.chain.from_iterable([pattern] * count for pattern, count in plan.contents())


# Packs


@every_way
@settings(max_examples=120)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS))
def test_the_packs_are_those_of_the_twin(algorithm, priority, max_sequences, problem):
    sizes, capacities = problem
    plan = plan_resources(columns(sizes, len(capacities)), limits(capacities), max_sequences, algorithm, priority)
    packs = TWINS[algorithm](sizes, capacities, max_sequences, priority)
    assert plan.packs == len(packs)
    assert reference.multiset(expand(plan)) == reference.multiset(packs)


@every_way
@pytest.mark.parametrize("max_sequences", [None, 5])
def test_the_packs_are_those_of_the_twin_on_skewed_data(algorithm, priority, max_sequences, monkeypatch):
    """Three hundred sequences, with blocks of groups so small that they are halved and emptied again and again."""
    monkeypatch.setattr("brimful.resources.groups._BLOCK_GROUPS", 4)
    random = np.random.default_rng(5)
    images = random.choice(4, size=300, p=[0.5, 0.3, 0.1, 0.1])
    tokens = np.minimum(200, 1 + random.exponential(40, size=300).astype(int) + 10 * images)
    sizes: list[tuple[int, ...]] = list(zip(tokens.tolist(), images.tolist(), strict=True))
    plan = plan_resources(columns(sizes, 2), limits((200, 5)), max_sequences, algorithm, priority)
    packs = TWINS[algorithm](sizes, (200, 5), max_sequences, priority)
    assert reference.multiset(expand(plan)) == reference.multiset(packs)


@every_way
@settings(max_examples=60)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS))
def test_a_plan_holds_every_sequence_once_and_no_pack_is_too_full(algorithm, priority, max_sequences, problem):
    sizes, capacities = problem
    plan = plan_resources(columns(sizes, len(capacities)), limits(capacities), max_sequences, algorithm, priority)
    packs = [list(pack) for pack in expand(plan)]
    assert all(pack and reference.fits(pack, capacities, max_sequences) for pack in packs)
    assert Counter(itertools.chain.from_iterable(packs)) == Counter(sizes)
    assert (plan.algorithm, plan.priority, plan.capacities) == (algorithm, priority, capacities)
    assert len(set(reference.multiset(pattern for pattern, _ in plan.contents()).values())) <= 1  # none twice


@every_limit
@settings(max_examples=60)
@given(problem=problems(max_size=6), way=st.sampled_from(WAYS))
def test_no_plan_and_no_bound_cheats_the_optimum(max_sequences, problem, way):
    """The bound is a proof: no packing at all is below it, so the best one is between it and every plan."""
    sizes, capacities = problem
    plan = plan_resources(columns(sizes, len(capacities)), limits(capacities), max_sequences, *way)
    optimum = reference.fewest_packs(sizes, capacities, max_sequences)
    assert plan.lower_bound <= optimum <= plan.packs
    assert plan.lower_bound >= reference.total_bound(sizes, capacities)
    assert all(bound.packs <= optimum for bound in plan.bounds.values())


@every_limit
@settings(max_examples=60)
@given(data=st.data(), way=st.sampled_from(WAYS))
def test_planted_optimum_is_proven_and_never_beaten(max_sequences, data, way):
    """Packs full in every resource, cut into pieces: the bound is exactly the packs that we started from."""
    sizes, capacities, packs = data.draw(planted(max_sequences))
    plan = plan_resources(columns(sizes, len(capacities)), limits(capacities), max_sequences, *way)
    assert plan.lower_bound == packs <= plan.packs


@every_way
@settings(max_examples=25)
@given(problem=problems(), max_sequences=st.sampled_from(LIMITS), random=st.randoms())
def test_a_plan_depends_on_the_sizes_alone(algorithm, priority, max_sequences, problem, random):
    """Neither the order of the data, nor its kind, nor the order of the capacities matters."""
    sizes, capacities = problem
    names = limits(capacities)
    plan = plan_resources(columns(sizes, len(capacities)), names, max_sequences, algorithm, priority)
    shuffled = columns(random.sample(sizes, len(sizes)), len(capacities))
    arrays = {name: np.array(column, np.uint16) for name, column in shuffled.items()}
    for data in (shuffled, arrays, ResourceHistogram.from_sizes(shuffled)):
        again = plan_resources(data, dict(reversed(names.items())), max_sequences, algorithm, priority)
        assert again == plan
        assert again.to_json()["patterns"] == plan.to_json()["patterns"]


@every_way
@every_limit
def test_counts_beyond_any_dataset_stay_exact(algorithm, priority, max_sequences):
    """Above 2^53 a floating-point number would lose single sequences."""
    sizes = np.array([[1, 0], [3, 2], [50, 0], [64, 8]])
    counts = np.array([2**54 + 1, 2**53 + 1, 7, 2**53 + 3])
    histogram = ResourceHistogram(("tokens", "images"), sizes, counts)
    plan = plan_resources(histogram, {"tokens": 100, "images": 9}, max_sequences, algorithm, priority)
    planned: Counter[tuple[int, ...]] = Counter()
    for pattern, count in plan.contents():
        for size in pattern:
            planned[size] += count
    assert planned == dict(zip(map(tuple, sizes.tolist()), counts.tolist(), strict=True))
    assert plan.lower_bound <= plan.packs == sum(count for _, count in plan.contents())
    assert plan.histogram.totals["images"] == 2 * (2**53 + 1) + 8 * (2**53 + 3)


@every_way
def test_the_number_of_sequences_does_not_matter(algorithm, priority):
    """A million times the sequences are a million times the packs of each pattern, give or take the last of a size."""
    sizes = {"nodes": [9, 12, 14, 14, 20, 23], "edges": [18, 26, 28, 30, 44, 48]}
    small = ResourceHistogram.from_sizes(sizes)
    large = ResourceHistogram(small.names, small.sizes, small.counts * 10**9)
    plan = plan_resources(large, {"nodes": 64, "edges": 140}, None, algorithm, priority)
    assert len(plan.patterns) <= 3 * len(small.counts)
    assert plan.packs < 1.3 * plan.lower_bound


@every_way
@every_limit
def test_nothing_to_pack_is_a_plan_of_no_packs(algorithm, priority, max_sequences):
    plan = plan_resources({"tokens": [], "images": []}, {"tokens": 8, "images": 1}, max_sequences, algorithm, priority)
    assert (plan.packs, plan.lower_bound, plan.gap, plan.packing_factor) == (0, 0, 0.0, 0.0)
    assert plan.efficiency == {"tokens": 1.0, "images": 1.0}
    assert plan.figures()["speedup_limit"] == 1.0
    assert list(plan.contents()) == []


def test_the_rules_differ_where_they_should():
    """(3, 1) fits beside (6, 0), which came first, and beside (5, 3), which leaves less."""
    sizes, capacities = {"a": [6, 5, 3], "b": [0, 3, 1]}, {"a": 10, "b": 10}
    packs = {
        algorithm: {pattern for pattern, _ in plan_resources(sizes, capacities, None, algorithm, "max").contents()}
        for algorithm in ALGORITHMS
    }
    assert packs["first_fit"] == {((6, 0), (3, 1)), ((5, 3),)}
    assert packs["best_fit"] == {((6, 0),), ((5, 3), (3, 1))}


def test_the_priorities_differ_where_they_should():
    """Of (5, 5), (8, 1) and (6, 4), each comes first under one of them: it opens a pack, and (2, 1) joins it."""
    sizes, capacities = {"a": [5, 8, 6, 2], "b": [5, 1, 4, 1]}, {"a": 10, "b": 10}
    beside = {}
    for priority in PRIORITIES:
        plan = plan_resources(sizes, capacities, None, "first_fit", priority)
        beside[priority] = next(pattern[0] for pattern, _ in plan.contents() if len(pattern) == 2)
    assert beside == {"sum": (6, 4), "max": (8, 1), "product": (5, 5)}


def test_products_are_compared_exactly():
    """2^30 · 2^30 exceeds (2^30 + 1) · (2^30 − 1) by 1, which no float tells: it comes first."""
    half, most = 2**30, 2**31 - 1
    sizes, capacities = {"a": [half + 1, half, 1], "b": [half - 1, half, 1]}, {"a": most, "b": most}
    plan = plan_resources(sizes, capacities, None, "first_fit", "product")
    assert {pattern for pattern, _ in plan.contents()} == {((half, half), (1, 1)), ((half + 1, half - 1),)}


# One resource


@pytest.mark.parametrize("name", ["wikipedia_bert_512", "squad_1_1_bert_384", "chitchat_conversations_bert"])
def test_one_resource_is_the_ordinary_plan(histograms, name):
    """Best fit with one capacity is lpfhp, pack for pack; with a limit of sequences it makes as many packs."""
    lengths = LengthHistogram.from_csv(histograms / f"{name}.csv")
    histogram = ResourceHistogram.from_csv(histograms / f"{name}.csv")
    max_length = max(512, lengths.longest)
    for max_sequences in LIMITS:
        ordinary = brimful.plan(lengths, max_length, max_sequences, "lpfhp")
        plan = plan_resources(histogram, {"length": max_length}, max_sequences)
        assert plan.packs == ordinary.packs
        if max_sequences is None:
            packs = {tuple(length for (length,) in pattern): count for pattern, count in plan.contents()}
            assert packs == dict(ordinary.patterns.merged_equal())


@every_way
@settings(max_examples=40)
@given(lengths=st.lists(st.integers(1, 30), max_size=40))
def test_one_resource_is_the_ordinary_plan_on_any_lengths(algorithm, priority, lengths):
    plan = plan_resources({"length": lengths}, {"length": 30}, None, algorithm, priority)
    assert plan.bounds["length"].packs == plan.lower_bound == brimful.plan(lengths, 30, algorithm="none").lower_bound
    if algorithm == "best_fit":
        packs = {tuple(length for (length,) in pattern): count for pattern, count in plan.contents()}
        assert packs == dict(brimful.plan(lengths, 30, algorithm="lpfhp").patterns.merged_equal())


def test_real_lengths_with_a_second_resource(histograms):
    """Molecules: the characters of a SMILES string, and of them as many bonds as a chain with some rings would have."""
    lengths = LengthHistogram.from_csv(histograms / "moses_zinc_train_smiles_chars.csv")
    sizes = np.column_stack([lengths.lengths, lengths.lengths + lengths.lengths // 9])
    histogram = ResourceHistogram(("atoms", "bonds"), sizes, lengths.counts)
    plan = plan_resources(histogram, {"atoms": 256, "bonds": 281})
    assert plan.histogram.n_sequences == lengths.n_sequences
    assert plan.gap < 0.04
    assert min(plan.efficiency.values()) > 0.96


# Refusals


@pytest.mark.parametrize(
    ("capacities", "options", "error", "text"),
    [
        ({"tokens": 8, "images": 2}, {}, CapacityError, "1 of 3 sequences have more tokens than the 8 that a pack"),
        ({"tokens": 8, "images": 2}, {}, CapacityError, "(the most is 9); raise the capacity of tokens, or leave them"),
        ({"tokens": 9, "images": 1}, {}, CapacityError, "2 of 3 sequences have more images than the 1 that a pack"),
        ({"tokens": 9}, {}, SettingError, "every resource has a capacity, but images has none; say how much of it"),
        (
            {"tokens": 9, "images": 2, "bytes": 1},
            {},
            SettingError,
            "there is no resource 'bytes'; there are tokens,",
        ),
        ({"tokens": 9, "images": 0}, {}, LengthError, "the capacity of images is a whole number from 1 to 2147"),
        ({"tokens": 9, "images": True}, {}, LengthError, "the capacity of images is a whole number from 1 to 2147"),
        ({"tokens": 9.0, "images": 2}, {}, LengthError, "the capacity of tokens is a whole number from 1 to 2147"),
        ([9, 2], {}, SettingError, "capacities are given by resource, such as {'tokens': 2048}, not as [9, 2]"),
        ({"tokens": 9, "images": 2}, {"max_sequences": 0}, LengthError, "max_sequences is a whole number from 1 to"),
        ({"tokens": 9, "images": 2}, {"algorithm": "lpfhp"}, SettingError, "there is no algorithm 'lpfhp' for several"),
        ({"tokens": 9, "images": 2}, {"algorithm": None}, SettingError, "there are best_fit, first_fit"),
        ({"tokens": 9, "images": 2}, {"priority": "min"}, SettingError, "there is no priority 'min'; there are sum, m"),
        ({"tokens": 9, "images": 2}, {"priority": []}, SettingError, "there is no priority []"),
    ],
)
def test_what_cannot_be_planned_is_refused(capacities, options, error, text):
    with pytest.raises(error, match=re.escape(text)):
        plan_resources({"tokens": [9, 2, 3], "images": [0, 2, 2]}, capacities, **options)


def test_shares_are_compared_exactly_up_to_the_largest_capacity():
    """A share is never rounded down to nothing."""
    assert SHARE_UNIT // (2**31 - 1) > 0
    plan = plan_resources({"a": [2**31 - 1, 1], "b": [0, 1]}, {"a": 2**31 - 1, "b": 2**31 - 1}, 2**31 - 1)
    assert plan.packs == plan.lower_bound == 2
