"""Overflow policies: what becomes of sequences longer than a pack, and that no token is lost without being counted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful.errors import CapacityError, LengthError, SettingError
from brimful.overflow import Ledger, OverflowPolicy
from tests.reference.overflow import pieces


@given(
    st.lists(st.integers(0, 40), max_size=30),
    st.integers(1, 15),
    st.sampled_from(["drop", "truncate", "split"]),
    st.data(),
)
def test_every_policy_cuts_as_its_description_says_and_counts_every_token(rows, max_length, kind, data):
    min_fragment = data.draw(st.integers(1, max_length)) if kind == "split" else 1
    fragments, ledger = OverflowPolicy(kind, max_length, min_fragment).cut(np.array(rows, np.int64))
    expected = [(row, *piece) for row, n in enumerate(rows) for piece in pieces(n, max_length, kind, min_fragment)]
    found = zip(fragments.rows.tolist(), fragments.starts.tolist(), fragments.lengths.tolist(), strict=True)
    assert list(found) == expected
    packed = sum(length for _, _, length in expected)
    too_long = sum(row > max_length for row in rows)
    assert ledger.rows_read == len(rows)
    assert ledger.rows_empty == rows.count(0)
    assert ledger.tokens_read == sum(rows)
    assert ledger.tokens_packed == packed
    assert ledger.sequences_packed == len(expected)
    assert (ledger.rows_dropped, ledger.rows_truncated, ledger.rows_split) == tuple(
        too_long * (kind == policy) for policy in ("drop", "truncate", "split")
    )
    assert ledger.tokens_truncated == (sum(rows) - packed) * (kind == "truncate")
    assert ledger.tokens_dropped == (sum(rows) - packed) * (kind != "truncate")
    whole_chunks = sum(-(-row // max_length) for row in rows)
    assert ledger.fragments_dropped == (whole_chunks - len(expected)) * (kind == "split")


def test_error_policy_names_the_first_row_its_length_and_how_many_there_are():
    with pytest.raises(CapacityError, match=r"row 7 \(the first is 0\) has 5,000 tokens, more .* 4096; 2 of 4 rows"):
        OverflowPolicy("error", 4096).cut(np.array([1, 4096, 5000, 9999]), first_row=5)


def test_error_policy_lets_rows_that_fit_exactly_pass():
    fragments, ledger = OverflowPolicy("error", 4).cut(np.array([4, 0, 1]))
    assert fragments.rows.tolist() == [0, 2]
    assert ledger.tokens_packed == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shorten", 10), r"overflow is one of error, drop, truncate, split, not 'shorten'"),
        (("split", 10, 11), r"min_fragment 11 is longer than max_length 10"),
        (("split", 10, 0), r"min_fragment is a whole number from 1"),
        (("drop", 10, 2), r"min_fragment only matters with overflow 'split', not 'drop'"),
        (("drop", 0), r"max_length is a whole number from 1"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises((LengthError, SettingError), match=message):
        OverflowPolicy(*arguments)


def test_a_ledger_that_does_not_balance_cannot_be_made():
    with pytest.raises(ValueError, match="tokens read ≠ packed"):
        Ledger(tokens_read=10, tokens_packed=8, tokens_truncated=1)


def test_ledgers_add_up_part_by_part():
    both = Ledger(rows_read=1, tokens_read=3, tokens_packed=3) + Ledger(rows_read=2, tokens_read=5, tokens_dropped=5)
    assert both == Ledger(rows_read=3, tokens_read=8, tokens_packed=3, tokens_dropped=5)
