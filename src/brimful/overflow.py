"""Sequences longer than a pack: error, drop, truncate or split, with an account of every token."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, Self, TypeAlias, get_args

import numpy as np

from brimful.errors import CapacityError, SettingError, shown
from brimful.validation import IntArray, validate_capacity

Overflow: TypeAlias = Literal["error", "drop", "truncate", "split"]


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of every row and token that was read; two ledgers add up.

    Args:
        rows_read: rows of the input.
        rows_empty: rows without any token; skipped, since they have nothing to train on.
        rows_dropped: rows left out whole, because they were longer than max_length (policy `drop`).
        rows_truncated: rows cut to max_length (policy `truncate`).
        rows_split: rows cut into several sequences (policy `split`).
        fragments_dropped: remainders of split rows that were shorter than min_fragment.
        sequences_packed: sequences in the packs: rows, and the fragments of split rows.
        tokens_read: tokens of the input.
        tokens_packed: tokens in the packs.
        tokens_truncated: tokens cut off by `truncate`.
        tokens_dropped: tokens of dropped rows and of dropped fragments.

    Raises:
        ValueError: tokens_read ≠ tokens_packed + tokens_truncated + tokens_dropped: a fault of the program.
    """

    rows_read: int = 0
    rows_empty: int = 0
    rows_dropped: int = 0
    rows_truncated: int = 0
    rows_split: int = 0
    fragments_dropped: int = 0
    sequences_packed: int = 0
    tokens_read: int = 0
    tokens_packed: int = 0
    tokens_truncated: int = 0
    tokens_dropped: int = 0

    def __post_init__(self) -> None:
        if self.tokens_read != self.tokens_packed + self.tokens_truncated + self.tokens_dropped:
            raise ValueError(f"tokens read ≠ packed + truncated + dropped: {self}")

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))


@dataclass(frozen=True, slots=True, eq=False)
class OverflowPolicy:
    """What to do with sequences that are longer than a pack.

        a row of 12 tokens at max_length 5:
        error      a CapacityError that names the row
        drop       -
        truncate   [#####]
        split      [#####][#####][##]       the last one only if it has at least min_fragment tokens

    Args:
        kind: "error", "drop", "truncate" or "split".
        max_length: token slots in a pack, ≥ 1.
        min_fragment: shortest remainder that `split` keeps, 1 ≤ min_fragment ≤ max_length; the others are dropped
            and counted.

    Raises:
        LengthError: max_length or min_fragment is no whole number ≥ 1.
        SettingError: an unknown policy, or a min_fragment that is too long or has no effect.
    """

    kind: Overflow
    max_length: int
    min_fragment: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in get_args(Overflow):
            raise SettingError(f"overflow is one of {', '.join(get_args(Overflow))}, not {shown(self.kind)}")
        for name in ("max_length", "min_fragment"):
            object.__setattr__(self, name, validate_capacity(getattr(self, name), name))
        if self.min_fragment > self.max_length:
            raise SettingError(f"min_fragment {self.min_fragment} is longer than max_length {self.max_length}")
        if self.min_fragment > 1 and self.kind != "split":
            raise SettingError(f"min_fragment only matters with overflow 'split', not {self.kind!r}")

    def cut(self, lengths: IntArray, first_row: int = 0) -> tuple[Fragments, Ledger]:
        """The sequences to pack from rows of these lengths, and the account.

        Args:
            lengths: (rows,) int64, tokens, ≥ 0.
            first_row: the number of the first of these rows in the whole input, for messages.

        Raises:
            CapacityError: the policy is "error" and a row is longer than max_length.

        Example:
            >>> fragments, ledger = OverflowPolicy("split", max_length=5).cut(np.array([12, 0, 3]))
            >>> fragments.rows, fragments.starts, fragments.lengths
            (array([0, 0, 0, 2]), array([ 0,  5, 10,  0]), array([5, 5, 2, 3]))
            >>> ledger.tokens_packed, ledger.rows_split, ledger.rows_empty
            (15, 1, 1)
        """
        lengths = np.asarray(lengths, np.int64)  # narrower or unsigned numbers would wrap below
        too_long = lengths > self.max_length
        n_too_long = int(too_long.sum())
        if n_too_long and self.kind == "error":
            row = int(np.argmax(too_long))
            raise overflow_error(row + first_row, int(lengths[row]), self.max_length, n_too_long, len(lengths))
        account = {
            "rows_read": len(lengths),
            "rows_empty": int((lengths == 0).sum()),
            "tokens_read": int(lengths.sum()),
        }
        if self.kind == "split":
            fragments = self._split(lengths)
            account["rows_split"] = n_too_long
            account["fragments_dropped"] = int((-(-lengths // self.max_length)).sum()) - len(fragments.rows)
        else:
            rows = np.flatnonzero((lengths > 0) & ~(too_long & (self.kind == "drop")))
            fragments = Fragments(rows, np.zeros_like(rows), np.minimum(lengths[rows], self.max_length))
            account["rows_dropped" if self.kind == "drop" else "rows_truncated"] = n_too_long
        packed = int(fragments.lengths.sum())
        lost = "tokens_truncated" if self.kind == "truncate" else "tokens_dropped"
        account[lost] = account["tokens_read"] - packed
        return fragments, Ledger(**account, tokens_packed=packed, sequences_packed=len(fragments.rows))

    def _split(self, lengths: IntArray) -> Fragments:
        """Chunks of max_length and a remainder, row after row."""
        n_chunks = -(-lengths // self.max_length)
        rows = np.repeat(np.arange(len(lengths)), n_chunks)
        chunk = np.arange(len(rows)) - np.repeat(np.cumsum(n_chunks) - n_chunks, n_chunks)
        starts = chunk * self.max_length
        sizes = np.minimum(lengths[rows] - starts, self.max_length)
        # A row that fits is no fragment, however short it is.
        keep = (sizes >= self.min_fragment) | (chunk == 0)
        return Fragments(rows[keep], starts[keep], sizes[keep])


def overflow_error(
    row: int, length: int, max_length: int, n_too_long: int, n_rows: int, source: str = ""
) -> CapacityError:
    """The error that policy "error" raises: the first row that is too long, and how many of n_rows there are."""
    where = f"{source}: " if source else ""
    return CapacityError(
        f"{where}row {row} (the first is 0) has {length:,} tokens, more than max_length {max_length}; "
        f"{n_too_long:,} of {n_rows:,} rows are too long; "
        "raise max_length, or choose an overflow policy: drop, truncate or split"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Fragments:
    """Sequences to pack, as pieces of rows: tokens starts[i] to starts[i] + lengths[i] of row rows[i].

    Args:
        rows: (sequences,) int64, index of the row, never decreasing.
        starts: (sequences,) int64, the first token within the row.
        lengths: (sequences,) int64, tokens, 1 ≤ length ≤ max_length.
    """

    rows: IntArray
    starts: IntArray
    lengths: IntArray
