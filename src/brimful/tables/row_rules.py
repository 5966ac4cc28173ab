"""The rules that every row of packed data keeps, and what the rows hold, found in one pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from brimful.lengths import IntArray, LengthHistogram
from brimful.tables.columns import SEQ_LENGTHS
from brimful.tables.windows import PackSettings

RULES = ("boundaries", "max_length", "max_sequences", "nothing empty", "kept columns", "no nulls")


@dataclass(frozen=True, slots=True)
class Check:
    """One promise, whether it holds, and in words what was found."""

    name: str
    passed: bool
    detail: str


@dataclass(slots=True)
class Found:
    """What the rows hold, and the first fault against each rule."""

    rows: int = 0
    tokens: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)

    def blame(self, rule: str, detail: str) -> None:
        self.faults.setdefault(rule, detail)

    def check(self, rule: str, if_passed: str) -> Check:
        return Check(rule, rule not in self.faults, self.faults.get(rule, if_passed))

    def histogram(self) -> LengthHistogram:
        lengths = sorted(length for length in self.counts if length > 0)
        return LengthHistogram(
            np.array(lengths, np.int64), np.array([self.counts[length] for length in lengths], np.int64)
        )


def check_rows(where: str, first_row: int, batch: pa.RecordBatch, settings: PackSettings, found: Found) -> None:
    """Hold the rows of a batch to RULES, and add up what they hold.

    Args:
        where: the file, for messages.
        first_row: the number of the first row in the file.
        batch: list columns; seq_lengths and those that the settings name are among them.
        settings: what was promised.
        found: gets the faults and the sums.
    """

    def blame(rule: str, row: int, what: str) -> None:
        found.blame(rule, f"{where}, row {first_row + row} (the first is 0): {what}")

    sizes = {name: _sizes(batch.column(name)) for name in batch.schema.names}
    lengths = pc.fill_null(batch.column(SEQ_LENGTHS).flatten(), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    n_sequences, tokens = sizes[SEQ_LENGTHS], sizes[settings.tokens]
    sums = _sums_by_row(lengths, n_sequences)
    for name, size in sizes.items():
        column, kept = batch.column(name), name in settings.keep_columns
        nulls = _nulls(column)
        if not kept:  # a value that was null is kept as null
            nulls = nulls | (_sums_by_row(_nulls(column.flatten()), size) > 0)
        if (row := _first(nulls)) is not None:
            blame("no nulls", row, f"{name!r} holds a null")
        if kept and (row := _first(size != n_sequences)) is not None:
            blame("kept columns", row, f"{name!r} has {size[row]} values for {n_sequences[row]} sequences")
        elif not kept and name != SEQ_LENGTHS and (row := _first(size != sums)) is not None:
            blame("boundaries", row, f"{name!r} has {size[row]} items, but seq_lengths add up to {sums[row]}")
    if (row := _first(tokens > settings.max_length)) is not None:
        blame("max_length", row, f"{tokens[row]} tokens, more than {settings.max_length}")
    if settings.max_sequences is not None and (row := _first(n_sequences > settings.max_sequences)) is not None:
        blame("max_sequences", row, f"{n_sequences[row]} sequences, more than {settings.max_sequences}")
    empty = (n_sequences == 0) | (_sums_by_row(lengths < 1, n_sequences) > 0)
    if (row := _first(empty)) is not None:
        blame("nothing empty", row, "a sequence without tokens" if n_sequences[row] else "no sequence")
    found.rows += batch.num_rows
    found.tokens += int(tokens.sum())
    found.counts.update(dict(zip(*(part.tolist() for part in np.unique(lengths, return_counts=True)), strict=True)))


def _first(bad: npt.NDArray[np.bool_]) -> int | None:
    return int(np.argmax(bad)) if bad.any() else None


def _sizes(column: pa.Array) -> IntArray:
    """(rows,) items in each list; 0 where there is none."""
    sizes: IntArray = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _sums_by_row(values: npt.NDArray[Any], sizes: IntArray) -> IntArray:
    """(rows,) sums of consecutive values, sizes[i] of them in row i."""
    before = np.concatenate([[0], np.cumsum(values)])
    ends = np.cumsum(sizes)
    sums: IntArray = before[ends] - before[ends - sizes]
    return sums
