"""Batches stay within the budget as the device counts it, hold every sequence once, and none is empty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import CapacityError, LengthError, SettingError
from brimful.batching import token_budget_batches
from brimful.batching.contiguous import fewest_batches, least_padding
from tests.reference.batching import budget_batches, least_padded

multiples = st.sampled_from((1, 1, 2, 3, 8))


@st.composite
def problems(draw: st.DrawFn, most: int = 50) -> dict[str, object]:
    """Lengths and limits; sometimes a length is over the budget, and goes alone."""
    lengths = draw(st.lists(st.integers(1, draw(st.sampled_from((3, 30)))), max_size=most))
    return {
        "lengths": lengths,
        "max_tokens": draw(st.integers(1, 120)),
        "max_sequences": draw(st.none() | st.integers(1, 9)),
        "size_multiple": draw(multiples),
        "length_multiple": draw(multiples),
        "bucket": draw(st.none() | st.integers(1, 20)),
        "random": draw(st.none() | st.integers(0, 9).map(np.random.default_rng)),
    }


@pytest.mark.parametrize("partition", ["greedy", "optimal"])
@settings(max_examples=300)
@given(problem=problems())
def test_every_sequence_once_in_batches_within_the_budget(partition, problem):
    lengths, multiple = problem["lengths"], problem["length_multiple"]
    batches = token_budget_batches(**problem, partition=partition, oversize="alone").to_lists()
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        rows = [(lengths[index] + multiple - 1) // multiple * multiple for index in batch]
        assert len(batch) == 1 or max(rows) * len(batch) <= problem["max_tokens"]
        assert problem["max_sequences"] is None or len(batch) <= problem["max_sequences"]


@settings(max_examples=300)
@given(problem=problems())
def test_greedy_batches_are_those_of_taking_one_more_while_it_fits(problem):
    problem |= {"bucket": None, "random": None}
    batches = token_budget_batches(**problem, oversize="alone").to_lists()
    names = ("lengths", "max_tokens", "max_sequences", "size_multiple", "length_multiple")
    assert batches == budget_batches(*(problem[name] for name in names))


@settings(max_examples=150)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=9).map(lambda lengths: sorted(lengths, reverse=True)),
    st.integers(12, 40),
    st.integers(1, 9),
)
def test_least_padding_is_the_best_of_all_ways_to_cut(rows, max_tokens, n_batches):
    fits = [max_tokens // row for row in rows]
    expected = least_padded(rows, fits, n_batches) if n_batches <= len(rows) else None
    arrays = np.array(rows), np.array(fits)
    if expected is None:
        with pytest.raises(SettingError, match=f" batches within the budget, not {n_batches}$"):
            least_padding(*arrays, n_batches)
        return
    sizes = least_padding(*arrays, n_batches)
    starts = np.cumsum(sizes) - sizes
    assert len(sizes) == n_batches
    assert sizes.sum() == len(rows)
    assert (sizes <= arrays[1][starts]).all()
    assert (arrays[0][starts] * sizes).sum() == expected


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=9).map(lambda lengths: sorted(lengths, reverse=True)),
    st.integers(12, 40),
)
def test_no_cut_has_fewer_batches_than_greedy(rows, max_tokens):
    fits = [max_tokens // row for row in rows]
    fewest = len(fewest_batches(np.array(fits)))
    assert least_padded(rows, fits, fewest) is not None
    assert fewest == 1 or least_padded(rows, fits, fewest - 1) is None


@settings(max_examples=100)
@given(problem=problems())
def test_optimal_has_as_many_batches_as_greedy_and_no_more_padding(problem):
    problem |= {"random": None}
    greedy, optimal = (
        token_budget_batches(**problem, partition=partition, oversize="alone") for partition in ("greedy", "optimal")
    )
    padded = [
        batches.padded_tokens(problem["lengths"], problem["length_multiple"]).sum() for batches in (greedy, optimal)
    ]
    assert len(optimal) == len(greedy)
    assert padded[1] <= padded[0]


@pytest.mark.parametrize("partition", ["greedy", "optimal"])
def test_batches_hold_a_multiple_unless_fewer_fit_or_are_left(partition):
    lengths = np.random.default_rng(0).integers(1, 100, 1000)
    batches = token_budget_batches(lengths, 1000, size_multiple=8, partition=partition)
    sizes = np.diff(batches.offsets)
    fits = 1000 // np.array([lengths[batches[number]].max() for number in range(len(batches))])
    assert ((sizes % 8 == 0) | (fits < 8))[:-2].all()
    assert (sizes % 8 == 0).mean() > 0.9


def test_a_batch_fits_by_its_own_longest_not_by_a_shorter_one():
    """[12] [9 8 8] [2] would pad one token less, but its 9 8 8 are 27 tokens."""
    rows = np.array([12, 9, 8, 8, 2])
    assert least_padding(rows, 24 // rows, 3).tolist() == [2, 2, 1]


def test_a_table_too_large_for_one_piece_is_worked_out_in_several(monkeypatch):
    rows = np.sort(np.random.default_rng(0).integers(1, 50, 300))[::-1]
    fits = 2000 // rows
    whole = least_padding(rows, fits, 30)
    monkeypatch.setattr("brimful.batching.contiguous._MOST_CELLS", 64)
    assert least_padding(rows, fits, 30).tolist() == whole.tolist()


def test_the_longest_counts_for_all_of_its_batch():
    assert token_budget_batches([10, 1, 1, 1], max_tokens=13).to_lists() == [[0], [1, 2, 3]]
    assert token_budget_batches([10, 10, 10], max_tokens=20).to_lists() == [[0, 1], [2]]
    assert token_budget_batches([9, 9], max_tokens=20, length_multiple=8).to_lists() == [[0], [1]]


def test_chance_changes_company_and_order_but_nothing_else():
    lengths = np.random.default_rng(0).integers(1, 100, 2000)
    epochs = [
        token_budget_batches(lengths, 1000, bucket=200, random=np.random.default_rng(seed)).to_lists()
        for seed in (0, 0, 1)
    ]
    assert epochs[0] == epochs[1]
    assert {frozenset(batch) for batch in epochs[0]}.isdisjoint(
        {frozenset(batch) for batch in epochs[2] if len(batch) > 9}
    )
    longest = [max(lengths[batch]) for batch in epochs[0]]
    assert 0.4 < np.mean(np.diff(longest) < 0) < 0.6


def test_nothing_makes_no_batches():
    assert token_budget_batches([], 10).to_lists() == []


def test_a_sequence_over_the_budget_is_named_or_goes_alone():
    lengths = [3, 20, 4, 30]
    with pytest.raises(
        CapacityError,
        match=r"^sequence 1 has 20 tokens, more than max_tokens 16 \(2 of 4 sequences are over the budget\); "
        r"raise max_tokens, shorten them, or choose oversize='alone'$",
    ):
        token_budget_batches(lengths, 16)
    assert token_budget_batches(lengths, 16, oversize="alone").to_lists() == [[3], [1], [2, 0]]
    with pytest.raises(CapacityError, match=r"^sequence 0 has 9 tokens \(16 when padded\), more than max_tokens 10 "):
        token_budget_batches([9], 10, length_multiple=8)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"lengths": [0]}, LengthError, "^a length is at least 1, but item 0 is 0; leave empty sequences out$"),
        ({"max_tokens": 0}, LengthError, "^max_tokens is a whole number from 1 to 2147483647, not 0$"),
        ({"max_sequences": 0}, LengthError, "^max_sequences is a whole number"),
        ({"bucket": 0}, LengthError, "^bucket is a whole number"),
        ({"size_multiple": 0}, LengthError, "^size_multiple is a whole number"),
        ({"length_multiple": 1.5}, LengthError, r"^length_multiple is a whole number .*, not 1\.5$"),
        ({"oversize": "drop"}, SettingError, "^oversize is one of error, alone, not 'drop'$"),
        ({"partition": "best"}, SettingError, "^partition is one of greedy, optimal, not 'best'$"),
    ],
)
def test_limits_that_are_none_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        token_budget_batches(**{"lengths": [1, 2], "max_tokens": 8, **arguments})


def test_a_number_of_batches_that_cannot_be_is_refused():
    rows, fits = np.array([4, 4, 4]), np.array([2, 2, 2])
    for n_batches in (1, 4):
        with pytest.raises(
            SettingError, match=f"^3 sequences make from 2 to 3 batches within the budget, not {n_batches}$"
        ):
            least_padding(rows, fits, n_batches)
    with pytest.raises(
        SettingError, match=r"^4 sequences do not make 3 batches of multiples of 2; try another number$"
    ):
        least_padding(np.array([1, 1, 1, 1]), np.array([4, 4, 4, 4]), 3, size_multiple=2)
