"""The sequences of a source: its rows after the overflow policy, groups whole, with the account of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brimful.errors import CapacityError, DataError, shown
from brimful.groups import SequenceGroups
from brimful.overflow import Ledger, overflow_error
from brimful.tables.batches import Source
from brimful.tables.columns import Columns
from brimful.tables.rows import Rows, concatenate, read_rows
from brimful.tables.settings import PackSettings
from brimful.tables.types import tells_apart
from brimful.validation import aligned


def no_progress(rows: int) -> None:
    """What is called with the number of rows that were read, when nobody wants to know."""


def read_sequences(
    source: Source, settings: PackSettings, columns: Columns, progress: Callable[[int], None] = no_progress
) -> Iterator[tuple[Rows, Ledger]]:
    """The sequences to pack, each of 1 to max_length tokens, and what became of the rows that they came from.

    Raises:
        DataError: a null, lists of differing length, or a group with a row without tokens.
        CapacityError: a row (or group) is too long and the policy is "error".
    """
    first_row = 0
    for rows in _whole_groups(_read(source, settings, columns, progress), source, settings):
        yield (
            _cut_rows(rows, source, settings, first_row)
            if rows.groups is None
            else _cut_groups(rows, source, settings, first_row)
        )
        first_row += len(rows)


def _read(source: Source, settings: PackSettings, columns: Columns, progress: Callable[[int], None]) -> Iterator[Rows]:
    """The rows of the source, with the number of the group that each belongs to where there are groups."""
    first_row = 0
    last_value, last_number = None, -1
    for batch in source.read([*columns.packed, *columns.kept]):
        rows = read_rows(source.name, batch, list(columns.packed), list(columns.kept), first_row)
        if settings.group_column is not None and len(rows):
            values = group_values(source, rows.kept[settings.group_column], settings.group_column, first_row)
            begins = np.ones(len(rows), bool)
            begins[0] = values[0] != last_value
            begins[1:] = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
            rows = replace(rows, groups=last_number + np.cumsum(begins))
            last_value, last_number = values[-1], last_number + int(begins.sum())
        first_row += batch.num_rows
        progress(batch.num_rows)
        yield rows


def group_values(source: Source, values: pa.Array, name: str, first_row: int) -> pa.Array:
    """The values of a group column, in a form that can be compared.

    Raises:
        DataError: a null, or a type whose values are not equal beyond doubt.
    """
    if not tells_apart(values.type):
        raise DataError(
            f"{source.name}: column {name!r} holds {values.type}; groups are told apart by whole numbers or texts: "
            "cast it"
        )
    if values.null_count:
        row = first_row + int(pc.index(values.is_null(), True).as_py())
        raise DataError(f"{source.name}: column {name!r}: row {row} (the first is 0) is null, so it has no group")
    return values


def _whole_groups(batches: Iterator[Rows], source: Source, settings: PackSettings) -> Iterator[Rows]:
    """The same rows, cut where groups end: what follows the last such place waits for the next batch."""
    held: list[Rows] = []
    first_row = slots = 0
    for rows in batches:
        if rows.groups is None:
            yield rows
            continue
        starts = np.flatnonzero(np.diff(rows.groups)) + 1
        if held and rows.groups[0] != held[-1].groups[0]:  # type: ignore[index]
            starts = np.concatenate([[0], starts])
        if len(starts):
            last = int(starts[-1])
            whole = concatenate([*held, rows.slice(0, last)])
            held, slots = [], 0
            first_row += len(whole)
            yield whole
            rows = rows.slice(last, len(rows))
        held.append(rows)
        slots += int(aligned(rows.lengths, settings.align).sum())
        if slots > settings.max_length and settings.overflow == "error":  # it need not be read to its end
            raise _group_too_long(source, settings, first_row, first_row + sum(map(len, held)) - 1, slots)
    if held:
        yield concatenate(held)


def _cut_rows(rows: Rows, source: Source, settings: PackSettings, first_row: int) -> tuple[Rows, Ledger]:
    try:
        fragments, account = settings.policy.cut(rows.lengths, first_row)
    except CapacityError:
        raise _overflow_of_all(source, settings) from None
    if not np.array_equal(fragments.lengths, rows.lengths):  # something was cut or left out
        rows = rows.gather(fragments.rows, fragments.starts, fragments.lengths)
    return rows, account


def _cut_groups(rows: Rows, source: Source, settings: PackSettings, first_row: int) -> tuple[Rows, Ledger]:
    """Groups that fit into a pack; the others are an error, or dropped whole."""
    lengths = rows.lengths
    if (empty := np.flatnonzero(lengths == 0)).size:
        raise DataError(
            f"{source.name}: row {first_row + int(empty[0])} (the first is 0) has no tokens, but belongs to a group, "
            "which stays whole; give it tokens, or leave its group out"
        )
    groups = rows.grouped()
    slots = groups.lengths(lengths, settings.align)
    too_long = slots > settings.max_length
    tokens = int(lengths.sum())
    if not too_long.any():
        return rows, Ledger(rows_read=len(rows), sequences_packed=len(rows), tokens_read=tokens, tokens_packed=tokens)
    if settings.overflow == "error":
        at = int(np.argmax(too_long))
        first, last = first_row + groups.offsets[at], first_row + groups.offsets[at + 1] - 1
        raise _group_too_long(source, settings, first, last, slots[at])
    kept, _ = groups.members(np.flatnonzero(~too_long))
    packed = int(lengths[kept].sum())
    return rows.take(kept), Ledger(
        rows_read=len(rows),
        rows_dropped=len(rows) - len(kept),
        sequences_packed=len(kept),
        tokens_read=tokens,
        tokens_packed=packed,
        tokens_dropped=tokens - packed,
    )


def _group_too_long(source: Source, settings: PackSettings, first: int, last: int, slots: int) -> CapacityError:
    return CapacityError(
        f"{source.name}: the group of rows {first} to {last} (the first is 0) needs {slots:,} token slots, "
        f"more than max_length {settings.max_length}; raise max_length, or choose overflow policy drop"
    )


def require_apart(source: Source, rows: Rows, groups: SequenceGroups, settings: PackSettings) -> None:
    """Nothing, if every group has a value of its own; otherwise a DataError: the rows of a group stand apart."""
    name = settings.group_column or ""
    values = rows.kept[name].take(pa.array(groups.offsets[:-1]))
    counts = pc.value_counts(values)
    if len(counts) < len(values):
        again = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
        raise DataError(
            f"{source.name}: column {name!r}: the rows of group {shown(again[0].as_py())} stand apart; "
            "bring the rows of each group together (sort by this column)"
        )


def _overflow_of_all(source: Source, settings: PackSettings) -> CapacityError:
    """The error for the whole input: its first row that is too long, and how many there are."""
    first: tuple[int, int] | None = None
    n_too_long = n_rows = 0
    for batch in source.read([settings.token_column]):
        lengths = read_rows(source.name, batch, [settings.token_column], [], n_rows).lengths
        too_long = np.flatnonzero(lengths > settings.max_length)
        if first is None and len(too_long):
            first = n_rows + int(too_long[0]), int(lengths[too_long[0]])
        n_too_long += len(too_long)
        n_rows += len(lengths)
    row, length = first or (0, 0)
    return overflow_error(row, length, settings.max_length, n_too_long, n_rows, source.name)
