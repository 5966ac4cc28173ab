"""Packs stand once in random order, and the ranks of each step have about as much attention to compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthError
from brimful.batching import even_steps, pack_costs


def imbalance(costs, batches, world):
    """Time lost waiting, as a share of computing, step by step."""
    lost = computed = 0.0
    for start in range(0, len(batches) - world + 1, world):
        ranks = [sum(costs[pack] for pack in batch) for batch in batches[start : start + world]]
        lost += max(ranks) - sum(ranks) / world
        computed += sum(ranks) / world
    return lost / computed if computed else 0.0


@settings(max_examples=300)
@given(
    st.lists(st.integers(1, 1000), max_size=80),
    st.integers(1, 5),
    st.integers(1, 4),
    st.none() | st.integers(1, 9),
    st.integers(0, 99),
)
def test_every_pack_once_in_batches_of_one_size(costs, world, batch_size, window, seed):
    draw = np.random.default_rng(seed).permutation
    steps = even_steps(np.array(costs, np.int64), draw, world, batch_size, window)
    batches = steps.batches.to_lists()
    assert sorted(pack for batch in batches for pack in batch) == list(range(len(costs)))
    assert all(len(batch) == batch_size for batch in batches[:-1])
    full = len(costs) // (world * batch_size) * world
    assert steps.imbalance == pytest.approx(imbalance(costs, batches[:full], world))


@settings(max_examples=100)
@given(st.lists(st.integers(1, 1000), max_size=80), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99))
def test_before_is_the_order_that_chance_gave(costs, world, batch_size, seed):
    array = np.array(costs, np.int64)
    steps = even_steps(array, np.random.default_rng(seed).permutation, world, batch_size)
    shuffled = np.random.default_rng(seed).permutation(len(costs)).tolist()
    batches = [shuffled[start : start + batch_size] for start in range(0, len(costs), batch_size)]
    full = len(costs) // (world * batch_size) * world
    assert steps.imbalance_before == pytest.approx(imbalance(costs, batches[:full], world))


@pytest.mark.parametrize("batch_size", [1, 2, 3, 4])
def test_steps_become_even(batch_size):
    """Packs of 8192 tokens, of one sequence or of many, on 8 ranks: most of the waiting goes away."""
    lengths = np.clip(np.random.default_rng(0).lognormal(6.3, 1.2, 30_000), 1, 8192).astype(np.int64)
    costs = pack_costs(brimful.assign(brimful.plan(lengths, 8192), lengths), lengths)
    steps = even_steps(costs, np.random.default_rng(0).permutation, 8, batch_size)
    assert steps.imbalance_before > 0.15
    assert steps.imbalance < steps.imbalance_before / 10


def test_a_step_is_dealt_there_and_back():
    """Packs of 4 3 2 1 on two ranks: 4 + 1 and 3 + 2, not 4 + 2 and 3 + 1."""
    assert even_steps(np.array([4, 3, 2, 1]), np.arange, world=2, batch_size=2).imbalance == 0


def test_a_larger_window_is_more_even():
    costs = np.random.default_rng(0).integers(1, 10**6, 8192)
    uneven = [
        even_steps(costs, np.random.default_rng(1).permutation, 8, 1, window).imbalance for window in (1, 4, 64, None)
    ]
    assert uneven == sorted(uneven, reverse=True)
    assert uneven[-1] < 0.01


def test_order_and_ranks_stay_random():
    """Neither costs that fall nor a rank that always has most."""
    costs = np.random.default_rng(0).integers(1, 10**6, 8000)
    steps = even_steps(costs, np.random.default_rng(1).permutation, 8)
    of_step = costs[steps.batches.ids].reshape(-1, 8)
    assert 0.4 < np.mean(np.diff(of_step.sum(axis=1)) < 0) < 0.6
    most = np.bincount(of_step.argmax(axis=1), minlength=8)
    assert most.min() > 80
    company = [
        {
            frozenset(step)
            for step in even_steps(costs, np.random.default_rng(seed).permutation, 8).batches.ids.reshape(-1, 8)
        }
        for seed in (1, 2)
    ]
    assert company[0].isdisjoint(company[1])


@settings(max_examples=100)
@given(st.lists(st.integers(1, 9), max_size=80), st.none() | st.integers(1, 9), st.integers(0, 99))
def test_a_step_holds_the_same_packs_for_any_ranks_that_share_them(costs, window, seed):
    def steps_of(world):
        draw = np.random.default_rng(seed).permutation
        packs = even_steps(np.array(costs, np.int64), draw, world, 12 // world, window).batches.ids.tolist()
        return [sorted(packs[start : start + 12]) for start in range(0, len(packs), 12)]

    assert all(steps_of(world) == steps_of(1) for world in (2, 3, 4, 6, 12))


def test_costs_are_sums_of_squares():
    lengths = [3, 1, 4, 1, 5]
    packs = brimful.assign(brimful.plan(lengths, 6), lengths)
    expected = [sum(lengths[sequence] ** 2 for sequence in packs[pack]) for pack in range(packs.packs)]
    assert pack_costs(packs, lengths).tolist() == expected
    assert pack_costs(brimful.assign(brimful.plan([], 6), []), []).tolist() == []


def test_lengths_of_others_are_refused():
    packs = brimful.assign(brimful.plan([3, 1], 6), [3, 1])
    with pytest.raises(LengthError, match=r"^an assignment of 2 sequences has as many lengths, not 3$"):
        pack_costs(packs, [3, 1, 1])
    for name, arguments in (("the number of ranks", (0,)), ("batch_size", (1, 0)), ("window", (1, 1, 0))):
        with pytest.raises(LengthError, match=f"^{name} is a whole number from 1 to 2147483647, not 0$"):
            even_steps(np.array([1]), np.arange, *arguments)
