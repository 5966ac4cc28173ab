"""Groups hold every item once and no more than they may, and the costliest is near the least that can be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from brimful import CapacityError, LengthError, SettingError
from brimful.batching import attention_cost, balance
from brimful.batching.balance import differencing, longest_first
from brimful.batching.exchange import even_out
from tests.reference.batching import least_heaviest, longest_processing_time

costs_of_any_kind = st.lists(st.integers(0, 50), max_size=40) | st.lists(st.floats(0, 1e6), max_size=40)
groups = st.integers(1, 9)


def heaviest(found, costs):
    return max(sum(costs[item] for item in group.tolist()) for group in found)


@settings(max_examples=300)
@given(costs_of_any_kind, groups, st.booleans())
def test_every_item_stands_in_one_group(costs, k, equal_size):
    for found in (
        balance(costs, k, equal_size=equal_size),
        differencing(np.array(costs, float), k, equal_size),
        longest_first(np.array(costs, float), k, equal_size),
    ):
        assert len(found) == k
        assert sorted(item for group in found for item in group.tolist()) == list(range(len(costs)))
        if equal_size:
            assert max(map(len, found)) - min(map(len, found)) <= 1


@settings(max_examples=300)
@given(st.lists(st.integers(0, 50), max_size=40), groups, st.booleans())
def test_never_worse_than_the_costliest_first(costs, k, equal_size):
    assert heaviest(balance(costs, k, equal_size=equal_size), costs) <= longest_processing_time(costs, k, equal_size)


def test_differencing_and_the_costliest_first_where_they_differ():
    """Each can be the better start: the one for 8 7 6 5 4 in two groups, the other for the second list."""
    costs = [8, 7, 6, 5, 4]
    assert [heaviest(start(np.array(costs), 2), costs) for start in (differencing, longest_first)] == [16, 17]
    costs = [1, 2, 18, 7, 26, 7, 2]
    array = np.array(costs)
    assert heaviest(even_out(differencing(array, 2, True), array, array, equal_size=True), costs) == 33
    assert heaviest(balance(costs, 2, equal_size=True), costs) == 32


@settings(max_examples=200)
@given(st.lists(st.integers(0, 50), max_size=40), groups, st.booleans())
def test_the_costliest_first_is_what_it_says(costs, k, equal_size):
    found = longest_first(np.array(costs, np.int64), k, equal_size)
    assert heaviest(found, costs) == longest_processing_time(costs, k, equal_size)


@settings(max_examples=150)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(1, 3), st.booleans(), st.data())
def test_beside_trying_all_groups(costs, k, equal_size, data):
    """With a capacity or without, of the costs or of other sizes: a way is found where there is one, and a good one."""
    sizes = data.draw(st.none() | st.lists(st.integers(1, 20), min_size=len(costs), max_size=len(costs)))
    capacity = data.draw(st.none() | st.integers(1, 40)) if sizes is None else data.draw(st.integers(1, 40))
    best = least_heaviest(costs, k, np.inf if capacity is None else capacity, sizes, equal_size)
    if best is None:
        with pytest.raises(CapacityError):
            balance(costs, k, capacity, equal_size, sizes=sizes)
        return
    found = balance(costs, k, capacity, equal_size, sizes=sizes)
    assert best <= heaviest(found, costs) <= best * 7 / 6
    if capacity is not None:
        assert heaviest(found, costs if sizes is None else sizes) <= capacity
    if equal_size:
        assert max(map(len, found)) - min(map(len, found)) <= 1


def test_most_small_problems_are_solved_to_the_optimum():
    random = np.random.default_rng(0)
    ratios = []
    for _ in range(200):
        costs = random.integers(1, 30, random.integers(1, 8)).tolist()
        k = int(random.integers(2, 4))
        ratios.append(heaviest(balance(costs, k), costs) / least_heaviest(costs, k))
    assert np.mean(np.array(ratios) == 1) > 0.97


def test_planted_groups_are_found_even():
    """Eight equal sums, cut into pieces and mixed."""
    random = np.random.default_rng(0)
    pieces = np.concatenate([random.multinomial(10_000, random.dirichlet([1] * 40)) for _ in range(8)])
    random.shuffle(pieces)
    assert heaviest(balance(pieces, 8), pieces) == 10_000


def test_attention_is_nearly_even_and_more_so_than_costliest_first():
    lengths = np.clip(np.random.default_rng(0).lognormal(6, 1, 512), 1, 8192).astype(np.int64)
    costs = attention_cost(lengths, linear=4096, quadratic=2)
    assert costs[3] == 4096 * lengths[3] + 2 * lengths[3] ** 2
    for equal_size in (False, True):
        ours = heaviest(balance(costs, 8, equal_size=equal_size), costs) / (costs.sum() / 8) - 1
        theirs = longest_processing_time(costs.tolist(), 8, equal_size) / (costs.sum() / 8) - 1
        assert ours < 1e-5 < theirs


def test_a_capacity_that_both_starting_points_break_is_kept():
    """Of 6 5 5 4 3 3 3 3 into 4 groups of 8, only [5 3] [5 3] [4 3 ...] and the like fit; an equal cost is no help."""
    sizes = [5, 5, 4, 4, 3, 3, 3, 3, 2]
    costs = [1, 1, 1, 1, 9, 9, 9, 9, 9]
    found = balance(costs, 4, capacity=8, sizes=sizes)
    assert heaviest(found, sizes) == 8
    assert heaviest(found, costs) == least_heaviest(costs, 4, 8, sizes)


def test_exchanging_moves_only_what_helps():
    costs = np.array([4, 4])
    start = [np.array([0]), np.array([1])]
    assert [group.tolist() for group in even_out(start, costs, costs)] == [[0], [1]]
    assert [group.tolist() for group in even_out([np.array([0, 1]), np.array([], np.int64)], costs, costs)] == [
        [1],
        [0],
    ]


def test_exchanging_keeps_to_the_capacity():
    costs, loads = np.array([9, 1, 1]), np.array([1, 1, 5])
    kept = even_out([np.array([0, 1]), np.array([2])], costs, loads, capacity=5)
    assert [group.tolist() for group in kept] == [[0, 1], [2]]


@given(st.lists(st.floats(0, 1e300), max_size=30), groups)
def test_floating_costs_come_to_an_end(costs, k):
    assume(sum(costs) < 2**61)
    found = balance(costs, k)
    assert heaviest(found, costs) <= longest_processing_time(costs, k) * (1 + 1e-9)


def test_the_costliest_group_comes_first():
    costs = [7, 1, 3, 5]
    found = balance(costs, 3)
    sums = [sum(costs[item] for item in group) for group in found]
    assert sums == sorted(sums, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"costs": [1, -2]}, LengthError, "^costs are numbers from 0 up whose sum is below 2.62, but item 1 is -2$"),
        ({"costs": [1.0, float("nan")]}, LengthError, "^costs are numbers from 0 up .* item 1 is nan$"),
        ({"costs": [2**62, 1]}, LengthError, "^costs are numbers from 0 up .* item 0 is 4611686018427387904$"),
        ({"costs": [[1, 2]]}, LengthError, r"^costs are a flat list of numbers, not \[\[1, 2\]\]$"),
        ({"costs": ["a"]}, LengthError, r"^costs are a flat list of numbers, not \['a'\]$"),
        ({"costs": [True]}, LengthError, r"^costs are a flat list of numbers, not \[True\]$"),
        ({"k": 0}, LengthError, "^k is a whole number from 1 to 2147483647, not 0$"),
        ({"sizes": [1, 1, 1]}, SettingError, "^sizes count against a capacity; give one, or leave sizes out$"),
        ({"capacity": 9, "sizes": [1]}, LengthError, "^sizes are one for each of 3 costs, not 1$"),
        ({"capacity": 0}, SettingError, "^a capacity is a number above 0, or None for no limit, not 0$"),
        ({"capacity": True}, SettingError, "^a capacity is a number above 0, or None for no limit, not True$"),
        ({"capacity": 4}, CapacityError, "^item 2 has size 5, more than the capacity 4; raise it, or split the item$"),
        (
            {"capacity": 5},
            CapacityError,
            "^all items have size 12 together, more than 2 groups of capacity 5 hold; raise",
        ),
        (
            {"costs": [3, 3, 3], "capacity": 5},
            CapacityError,
            "^no way was found to put 3 items into 2 groups of capacity 5.0: they need 3 groups at least; raise k",
        ),
        (
            {"costs": [0.3, 0.3, 0.3], "capacity": 0.5},
            CapacityError,
            "^no way was found to put 3 items into 2 groups of capacity 0.5; raise k or the capacity$",
        ),
    ],
)
def test_what_cannot_be_balanced_is_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        balance(**{"costs": [3, 4, 5], "k": 2, **arguments})
