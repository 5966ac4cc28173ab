"""The histogram of lengths that planning works on."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from brimful.errors import CapacityError, LengthError, shown
from brimful.untrusted import read_csv
from brimful.validation import (
    MAX_TOKENS,
    IntArray,
    Lengths,
    read_only,
    require_positive,
    validate_capacity,
    validate_lengths,
    whole_numbers,
)

_DENSE_COUNT_LIMIT = 2**22


@dataclass(frozen=True, slots=True, eq=False)
class LengthHistogram:
    """How many sequences there are of each length: all that a plan needs to know about a dataset.

        lengths  [7, 2, 3, 7]    ->    lengths  2 3 7
                                       counts   1 1 2

    Args:
        lengths: (distinct,) int64, tokens, ≥ 1, strictly increasing; read-only once inside.
        counts: (distinct,) int64, sequences of each length, ≥ 1; read-only once inside.

    Raises:
        LengthError: a length or count is out of range, or they are not strictly increasing.

    Example:
        >>> histogram = LengthHistogram.from_lengths([7, 2, 3, 7])
        >>> histogram
        LengthHistogram(4 sequences, 19 tokens, lengths 2 to 7)
        >>> histogram.padding_fraction(max_length=10)
        0.525

    Cost: at most max_length entries, however many sequences there are.
    """

    lengths: IntArray
    counts: IntArray

    def __post_init__(self) -> None:
        lengths = whole_numbers(self.lengths, "lengths")
        counts = whole_numbers(self.counts, "counts")
        if len(lengths) != len(counts):
            raise LengthError(f"a histogram has one count per length, not {len(counts)} for {len(lengths)} lengths")
        require_positive(lengths, "length")
        require_positive(counts, "count")
        falls = np.flatnonzero(lengths[1:] <= lengths[:-1])
        if len(falls):
            at = int(falls[0])
            raise LengthError(
                f"the lengths of a histogram increase strictly, but {lengths[at]} is followed by {lengths[at + 1]}; "
                "sort them and add up the counts of equal lengths"
            )
        # In floating point first: the exact product could leave int64 before it is compared.
        tokens = lengths.astype(np.float64) @ counts.astype(np.float64)
        if tokens >= MAX_TOKENS or counts.astype(np.float64).sum() >= MAX_TOKENS:
            raise LengthError(f"a histogram holds fewer than 2^62 tokens, not about {tokens:.3g}; check its counts")
        for name, array in (("lengths", lengths), ("counts", counts)):
            object.__setattr__(self, name, read_only(array))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lengths, self.counts)  # a copy in another process is checked and read-only as well

    @classmethod
    def from_lengths(cls, lengths: Lengths) -> Self:
        """Count how many sequences there are of each length.

        Args:
            lengths: (sequences,) whole numbers, tokens, each ≥ 1; a list, a NumPy array, or what NumPy can view as one.

        Raises:
            LengthError: a length is zero, negative, fractional, boolean, NaN or no number; names the first such item.

        Example:
            >>> LengthHistogram.from_lengths([2, 3, 3]).counts
            array([1, 2])

        Cost: one pass; 16 million lengths take about 0.1 s.
        """
        array = validate_lengths(lengths)
        largest = int(array.max(initial=0))
        if largest < max(_DENSE_COUNT_LIMIT, len(array)):
            dense = np.bincount(array)
            distinct = np.flatnonzero(dense)
            return cls(distinct, dense[distinct])
        return cls(*np.unique(array, return_counts=True))

    @classmethod
    def from_counts(cls, lengths: IntArray, counts: IntArray) -> Self:
        """Add up counts of lengths that stand in any order and may repeat.

        Example:
            >>> LengthHistogram.from_counts(np.array([3, 2, 3]), np.array([1, 5, 1])).counts
            array([5, 2])
        """
        distinct, places = np.unique(lengths, return_inverse=True)
        totals = np.zeros(len(distinct), np.int64)
        np.add.at(totals, places, counts)
        return cls(distinct, totals)

    @classmethod
    def from_csv(cls, path: str | Path) -> Self:
        """Read a file with the header `length,count` and one row per length, in any order.

        Raises:
            LengthError: wrong header, a row that is not two whole numbers, a length twice, a value out of range;
                names the line.
            OSError: the file cannot be read.
        """
        return read_csv(path, "the header length,count", cls._from_rows)

    @classmethod
    def _from_rows(cls, path: Path, rows: Any) -> Self:
        header: list[str] = next(rows, [])
        if [name.strip() for name in header] != ["length", "count"]:
            raise LengthError(
                f"{path}:1: a histogram starts with the header length,count, not {shown(','.join(header))}"
            )
        counts: dict[int, int] = {}
        tokens = 0
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if not row:
                continue
            fields = [field.strip(" \t") for field in row]
            # Plain digits only: int() would also read 1_000, +5, and the digits of other scripts.
            if len(fields) != 2 or not all(re.fullmatch("-?[0-9]{1,40}", field) for field in fields):
                raise LengthError(f"{where}: a row is two whole numbers, length,count, not {shown(','.join(row))}")
            length, count = map(int, fields)
            if length < 1 or count < 1:
                raise LengthError(f"{where}: length and count are at least 1, not {length},{count}")
            tokens += length * count
            if tokens >= MAX_TOKENS:
                raise LengthError(f"{where}: a histogram holds fewer than 2^62 tokens; check the counts up to here")
            if length in counts:
                raise LengthError(f"{where}: length {length} stands twice; add up its counts in one row")
            counts[length] = count
        lengths = sorted(counts)
        return cls(np.array(lengths, np.int64), np.array([counts[length] for length in lengths], np.int64))

    def to_csv(self, path: str | Path) -> None:
        """Write the histogram as `length,count` rows, lengths increasing; `from_csv` reads it back equal."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["length", "count"])
            writer.writerows(zip(self.lengths.tolist(), self.counts.tolist(), strict=True))

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return int(self.counts.sum())

    @property
    def n_tokens(self) -> int:
        """How many tokens all sequences have together."""
        return int(self.lengths @ self.counts)

    @property
    def longest(self) -> int:
        """The greatest length; 0 when there are no sequences."""
        return int(self.lengths[-1]) if len(self.lengths) else 0

    def padding_fraction(self, max_length: int) -> float:
        """The share of token slots that are padding when every sequence has a row of max_length to itself.

        Raises:
            CapacityError: a sequence is longer than max_length.

        Example:
            >>> LengthHistogram.from_lengths([512, 128, 128, 256]).padding_fraction(512)
            0.5

        Source: arXiv 2107.02027, section 2 (half of BERT's Wikipedia tokens are padding at 512).
        """
        require_fit(self, max_length)
        slots = self.n_sequences * max_length
        return (slots - self.n_tokens) / slots if slots else 0.0

    def speedup_limit(self, max_length: int) -> float:
        """How many times fewer token slots there would be without any padding: 1 / (1 − padding_fraction).

        Raises:
            CapacityError: a sequence is longer than max_length.

        Example:
            >>> LengthHistogram.from_lengths([512, 128, 128, 256]).speedup_limit(512)
            2.0
        """
        require_fit(self, max_length)
        return self.n_sequences * max_length / self.n_tokens if self.n_tokens else 1.0

    def in_units(self, align: int) -> LengthHistogram:
        """The lengths in units of `align` token slots, each rounded up: what sequences take that are padded to it.

        Example:
            >>> LengthHistogram.from_lengths([3, 8, 9, 16]).in_units(8)
            LengthHistogram(4 sequences, 6 tokens, lengths 1 to 2)
        """
        return self if align == 1 else LengthHistogram.from_counts(-(-self.lengths // align), self.counts)

    def __add__(self, other: LengthHistogram) -> LengthHistogram:
        """The histogram of both datasets together."""
        if not isinstance(other, LengthHistogram):
            return NotImplemented
        return LengthHistogram.from_counts(
            np.concatenate([self.lengths, other.lengths]), np.concatenate([self.counts, other.counts])
        )

    def difference(self, other: LengthHistogram) -> str:
        """In words, the first length whose count differs.

        Example:
            >>> LengthHistogram.from_lengths([1, 3, 3]).difference(LengthHistogram.from_lengths([1, 2, 3]))
            'of length 2 there are 0 in the one and 1 in the other'
        """
        mine, theirs = (dict(zip(each.lengths.tolist(), each.counts.tolist(), strict=True)) for each in (self, other))
        for length in sorted({*mine, *theirs}):
            if mine.get(length, 0) != theirs.get(length, 0):
                return (
                    f"of length {length} there are {mine.get(length, 0):,} in the one "
                    f"and {theirs.get(length, 0):,} in the other"
                )
        return "none"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LengthHistogram):
            return NotImplemented
        return np.array_equal(self.lengths, other.lengths) and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.lengths.tobytes(), self.counts.tobytes()))

    def __repr__(self) -> str:
        if not len(self.lengths):
            return "LengthHistogram(0 sequences)"
        return (
            f"LengthHistogram({self.n_sequences:,} sequences, {self.n_tokens:,} tokens, "
            f"lengths {self.lengths[0]} to {self.lengths[-1]})"
        )


def require_fit(histogram: LengthHistogram, max_length: int) -> None:
    """Nothing, if every sequence fits into a pack; otherwise a CapacityError that counts those that do not."""
    max_length = validate_capacity(max_length, "max_length")
    first = int(np.searchsorted(histogram.lengths, max_length, side="right"))
    if first < len(histogram.lengths):
        too_long = int(histogram.counts[first:].sum())
        raise CapacityError(
            f"{too_long:,} of {histogram.n_sequences:,} sequences are longer than max_length {max_length} "
            f"(the longest has {histogram.longest:,} tokens); "
            "raise max_length, or choose an overflow policy: drop, truncate or split"
        )
