"""The rules that every pack keeps, and what the packs hold, found in one pass over the rows of packed data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from brimful.checks import Check
from brimful.lengths import LengthHistogram
from brimful.tables.columns import SEQ_LENGTHS
from brimful.tables.settings import PackSettings
from brimful.tables.types import is_list, tells_apart
from brimful.validation import IntArray, aligned

RULES = ("boundaries", "max_length", "max_sequences", "nothing empty", "kept columns", "no nulls")


@dataclass(slots=True)
class Found:
    """What the packs hold, and the first fault against each rule."""

    packs: int = 0
    tokens: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    slots: Counter[int] = field(default_factory=Counter)  # of units: groups, or aligned sequences
    faults: dict[str, str] = field(default_factory=dict)

    def blame(self, rule: str, detail: str) -> None:
        self.faults.setdefault(rule, detail)

    def check(self, rule: str, if_passed: str) -> Check:
        return Check(rule, rule not in self.faults, self.faults.get(rule, if_passed))

    def histogram(self) -> LengthHistogram:
        """The sequences by length.

        Raises:
            LengthError: seq_lengths claim more tokens than a histogram may hold.
        """
        return _histogram(self.counts)

    def slots_histogram(self) -> LengthHistogram:
        """What is packed whole, groups or sequences, by the token slots that it takes.

        Raises:
            LengthError: as `histogram`.
        """
        return _histogram(self.slots)


def _histogram(counts_by_length: Counter[int]) -> LengthHistogram:
    lengths = [length for length in counts_by_length if length > 0]
    counts = [counts_by_length[length] for length in lengths]
    return LengthHistogram.from_counts(np.array(lengths, np.int64), np.array(counts, np.int64))


def wrong_columns(schema: pa.Schema, settings: PackSettings) -> str:
    """In words, what is wrong with the columns of packed data; nothing if `check_rows` can read them."""
    kinds = {field.name: field.type for field in schema}
    missing = [name for name in (settings.token_column, SEQ_LENGTHS, *settings.keep_columns) if name not in kinds]
    loose = [name for name, kind in kinds.items() if not is_list(kind)]
    if missing or loose:
        return f"missing {missing}, not lists {loose}"
    if not pa.types.is_integer(kinds[SEQ_LENGTHS].value_type):
        return f"{SEQ_LENGTHS} holds {kinds[SEQ_LENGTHS]}, not lists of whole numbers"
    group = settings.group_column
    if group is not None and not tells_apart(kinds[group].value_type):
        return f"{group!r} holds {kinds[group]}, which does not tell groups apart"
    return ""


def check_rows(where: str, first_pack: int, batch: pa.RecordBatch, settings: PackSettings, found: Found) -> None:
    """Hold the packs of a batch, one a row, to RULES, and add up what they hold.

    Args:
        where: the file, for messages.
        first_pack: the number of the first pack in the file.
        batch: columns in which `wrong_columns` finds nothing wrong.
        settings: what was promised.
        found: gets the faults and the sums.
    """

    def blame(rule: str, row: int, what: str) -> None:
        found.blame(rule, f"{where}, pack {first_pack + row} (the first is 0): {what}")

    sizes = {name: _sizes(batch.column(name)) for name in batch.schema.names}
    lengths = pc.fill_null(batch.column(SEQ_LENGTHS).flatten(), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    n_sequences, tokens = sizes[SEQ_LENGTHS], sizes[settings.token_column]
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
    slots = aligned(lengths, settings.align)
    filled = np.maximum(tokens, _sums_by_row(slots, n_sequences))
    if (row := _first(filled > settings.max_length)) is not None:
        blame("max_length", row, f"{filled[row]} token slots, more than {settings.max_length}")
    if settings.max_sequences is not None and (row := _first(n_sequences > settings.max_sequences)) is not None:
        blame("max_sequences", row, f"{n_sequences[row]} sequences, more than {settings.max_sequences}")
    empty = (n_sequences == 0) | (_sums_by_row(lengths < 1, n_sequences) > 0)
    if (row := _first(empty)) is not None:
        blame("nothing empty", row, "a sequence without tokens" if n_sequences[row] else "no sequence")
    found.packs += batch.num_rows
    found.tokens += int(tokens.sum())
    found.counts.update(_counted(lengths))
    units = unit_starts(batch, settings, n_sequences)
    found.slots.update(_counted(np.add.reduceat(slots, units) if len(units) else slots))


def unit_starts(batch: pa.RecordBatch, settings: PackSettings, n_sequences: IntArray) -> IntArray:
    """(units,) the sequences of a batch at which a unit begins: every sequence, or with groups the first of each."""
    first_of_pack = np.cumsum(n_sequences) - n_sequences
    begins = np.ones(int(n_sequences.sum()), bool)
    if settings.group_column is not None:
        values = batch.column(settings.group_column).flatten()
        if len(values) == len(begins):
            begins[1:] = pc.fill_null(pc.not_equal(values[1:], values[:-1]), True).to_numpy(zero_copy_only=False)
            begins[first_of_pack[n_sequences > 0]] = True
    return np.flatnonzero(begins)


def _counted(values: IntArray) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


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
