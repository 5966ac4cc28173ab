"""ResourceHistogram: how many sequences there are of each size, where a size is several numbers at once."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from brimful.errors import CapacityError, LengthError, shown
from brimful.lengths import LengthHistogram
from brimful.resources.sizes import distinct_rows, size_rows, validate_names, validate_rows
from brimful.untrusted import read_csv
from brimful.validation import MAX_TOKENS, IntArray, Lengths, read_only, require_positive, whole_numbers


@dataclass(frozen=True, slots=True, eq=False)
class ResourceHistogram:
    """How many sequences there are of each size: all that a plan needs to know about a dataset.

        tokens  [7, 2, 7, 7]            tokens  images  count
        images  [1, 0, 0, 1]    ->           2       0      1
                                             7       0      1
                                             7       1      2

    Args:
        names: (resources,) plain names, no two equal, none of them "count".
        sizes: (distinct, resources) int64, ≥ 0, one of each row above 0; the rows strictly increasing, the first
            resource counting first; read-only once inside.
        counts: (distinct,) int64, sequences of each size, ≥ 1; read-only once inside.

    Raises:
        LengthError: a name, size or count is out of range, or the rows are not strictly increasing.

    Example:
        >>> histogram = ResourceHistogram.from_sizes({"tokens": [7, 2, 7, 7], "images": [1, 0, 0, 1]})
        >>> histogram
        ResourceHistogram(4 sequences of 3 sizes, 23 tokens, 2 images)
        >>> histogram.sizes.tolist(), histogram.counts.tolist()
        ([[2, 0], [7, 0], [7, 1]], [1, 1, 2])

    Cost: as many rows as there are distinct sizes, however many sequences there are.
    """

    names: tuple[str, ...]
    sizes: IntArray
    counts: IntArray

    def __post_init__(self) -> None:
        names, counts = validate_names(self.names), whole_numbers(self.counts, "counts")
        if not isinstance(self.sizes, np.ndarray) or self.sizes.shape != (len(counts), len(names)):
            found = f"an array of shape {self.sizes.shape}" if isinstance(self.sizes, np.ndarray) else shown(self.sizes)
            raise LengthError(
                f"sizes are an array with a row for each of {len(counts)} counts and a column for each of {len(names)} "
                f"resources, not {found}"
            )
        sizes = validate_rows(names, self.sizes.T)
        require_positive(counts, "count")
        differs = sizes[1:] != sizes[:-1]
        at = np.arange(len(differs)), differs.argmax(axis=1)  # where a row first differs from the one before
        falls = np.flatnonzero(sizes[1:][at] <= sizes[:-1][at])
        if len(falls):
            first, second = (tuple(sizes[row].tolist()) for row in (falls[0], falls[0] + 1))
            raise LengthError(
                f"the sizes of a histogram increase strictly, but {first} is followed by {second}; "
                "sort them and add up the counts of equal sizes"
            )
        # In floating point first: the exact sums could leave int64 before they are compared.
        sequences = counts.astype(np.float64)
        for name, total in zip(names, sizes.astype(np.float64).T @ sequences, strict=True):
            if total >= MAX_TOKENS:
                raise LengthError(f"a histogram holds fewer than 2^62 {name}, not about {total:.3g}; check its counts")
        if sequences.sum() * len(counts) >= MAX_TOKENS:
            raise LengthError(
                f"a histogram of {len(counts):,} sizes holds fewer than 2^62 / {len(counts)} sequences, not about "
                f"{sequences.sum():.3g}; check its counts"
            )
        object.__setattr__(self, "names", names)
        for name, array in (("sizes", sizes), ("counts", counts)):
            object.__setattr__(self, name, read_only(array))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.names, self.sizes, self.counts)

    @classmethod
    def from_sizes(cls, sizes: Mapping[str, Lengths]) -> Self:
        """Count how many sequences there are of each size.

        Args:
            sizes: for each resource (sequences,) whole numbers ≥ 0, one of each sequence above 0; all of one length.

        Raises:
            LengthError: a size is negative, fractional, boolean or no number, or a sequence has no size above 0; names
                the first such item.

        Cost: one sort for each resource; about half a second for a million sequences and two resources.
        """
        names, rows = size_rows(sizes)
        distinct, _, counts = distinct_rows(rows)
        return cls(names, distinct, counts)

    @classmethod
    def from_csv(cls, path: str | Path) -> Self:
        """Read a file whose header names the resources and `count`, in any order, and with one row for each size.

            tokens,images,count
            512,1,20
            37,0,4

        Raises:
            LengthError: wrong header, a row that is not as many whole numbers, a size twice, a value out of range;
                names the line.
            OSError: the file cannot be read.
        """
        return read_csv(path, "a header that names the resources and count", cls._from_rows)

    @classmethod
    def _from_rows(cls, path: Path, rows: Any) -> Self:
        header = [name.strip() for name in next(rows, [])]
        if header.count("count") != 1:
            raise LengthError(
                f"{path}:1: a histogram starts with a header that names the resources and count, such as "
                f"tokens,images,count, not {shown(','.join(header))}"
            )
        count_at = header.index("count")
        try:
            names = validate_names(header[:count_at] + header[count_at + 1 :])
        except LengthError as fault:
            raise LengthError(f"{path}:1: {fault}") from None
        counts: dict[tuple[int, ...], int] = {}
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if not row:
                continue
            fields = [field.strip(" \t") for field in row]
            # Plain digits only: int() would also read 1_000, +5, and the digits of other scripts.
            if len(fields) != len(header) or not all(re.fullmatch("-?[0-9]{1,40}", field) for field in fields):
                raise LengthError(
                    f"{where}: a row is {len(header)} whole numbers, {','.join(header)}, not {shown(','.join(row))}"
                )
            numbers = [int(field) for field in fields]
            count = numbers.pop(count_at)
            size = tuple(numbers)
            if count < 1 or min(size) < 0 or max(size) < 1:
                raise LengthError(
                    f"{where}: a count is at least 1, a size at least 0 and above 0 in some resource, "
                    f"not {','.join(fields)}"
                )
            if count * max(*size, 1) >= MAX_TOKENS:
                raise LengthError(f"{where}: a histogram holds fewer than 2^62 of a resource, not {','.join(fields)}")
            if size in counts:
                raise LengthError(f"{where}: the size {','.join(map(str, size))} stands twice; add up its counts")
            counts[size] = count
        sizes = sorted(counts)
        table = np.array(sizes, np.int64).reshape(len(sizes), len(names))
        try:
            return cls(names, table, np.array([counts[size] for size in sizes], np.int64))
        except LengthError as fault:
            raise LengthError(f"{path}: {fault}") from None

    def to_csv(self, path: str | Path) -> None:
        """Write the histogram with its counts in the last column, sizes increasing; `from_csv` reads it back equal."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*self.names, "count"])
            writer.writerows(np.column_stack([self.sizes, self.counts]).tolist())

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return int(self.counts.sum())

    @property
    def totals(self) -> dict[str, int]:
        """How much of each resource all sequences need together."""
        return dict(zip(self.names, (self.counts @ self.sizes).tolist(), strict=True))

    def of(self, name: str) -> LengthHistogram:
        """The sequences that need some of one resource, by how much of it.

        Example:
            >>> ResourceHistogram.from_sizes({"tokens": [7, 2, 7], "images": [1, 0, 0]}).of("images")
            LengthHistogram(1 sequences, 1 tokens, lengths 1 to 1)
        """
        column = self.sizes[:, self.names.index(name)]
        some = column > 0
        return LengthHistogram.from_counts(column[some], self.counts[some])

    def difference(self, other: ResourceHistogram) -> str:
        """In words, the names that differ, or else the first size whose count differs.

        Example:
            >>> one, two = (ResourceHistogram.from_sizes({"tokens": sizes}) for sizes in ([1, 3, 3], [1, 2, 3]))
            >>> one.difference(two)
            'of size 2 there are 0 in the one and 1 in the other'
        """
        if self.names != other.names:
            return f"resources {', '.join(self.names)} in the one and {', '.join(other.names)} in the other"
        mine, theirs = (
            dict(zip(map(tuple, each.sizes.tolist()), each.counts.tolist(), strict=True)) for each in (self, other)
        )
        for size in sorted({*mine, *theirs}):
            if mine.get(size, 0) != theirs.get(size, 0):
                return (
                    f"of size {','.join(map(str, size))} there are {mine.get(size, 0):,} in the one "
                    f"and {theirs.get(size, 0):,} in the other"
                )
        return "none"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ResourceHistogram):
            return NotImplemented
        return (
            self.names == other.names
            and np.array_equal(self.sizes, other.sizes)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.names, self.sizes.tobytes(), self.counts.tobytes()))

    def __repr__(self) -> str:
        totals = "".join(f", {total:,} {name}" for name, total in self.totals.items())
        return f"ResourceHistogram({self.n_sequences:,} sequences of {len(self.counts):,} sizes{totals})"


def require_fit(histogram: ResourceHistogram, capacities: tuple[int, ...]) -> None:
    """Nothing, if every size fits into a pack by itself; otherwise a CapacityError that counts those that do not."""
    counts = histogram.counts
    for name, column, capacity in zip(histogram.names, histogram.sizes.T, capacities, strict=True):
        over = column > capacity
        if over.any():
            raise CapacityError(
                f"{counts[over].sum():,} of {counts.sum():,} sequences have more {name} than the {capacity:,} "
                f"that a pack holds (the most is {column.max():,}); raise the capacity of {name}, or leave them out"
            )
