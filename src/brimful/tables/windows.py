"""Packing in windows: rows are read, planned and packed a few million tokens at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from brimful.assignment import assign
from brimful.lengths import LengthHistogram
from brimful.overflow import Ledger
from brimful.patterns import Patterns
from brimful.planning import DATA_ORDER, plan
from brimful.plans import PackPlan
from brimful.tables.batches import Source
from brimful.tables.columns import SEQ_LENGTHS, Columns, choose_columns, packed_schema
from brimful.tables.rows import Rows, concatenate
from brimful.tables.sequences import no_progress, read_sequences, require_apart
from brimful.tables.settings import PackSettings
from brimful.validation import IntArray, aligned

WINDOW_BYTES = 2**26
"""What the rows of a window weigh at most: 64 MiB, up to 16 million int32 tokens."""

_BATCH_BYTES = 2**24
_CARRY_SHARE = 8


@dataclass(frozen=True, slots=True, eq=False)
class PackedWindow:
    """The packs of one window, ready to be written.

    Args:
        batches: packs as rows, made as they are asked for, about 16 MiB each; none when the window had no tokens.
        histogram: the sequences in these packs.
        patterns: the token slots that share a pack: of sequences, or of groups where there are groups.
        plan: of the window, including the packs that are carried on; None when there was nothing to plan.
        ledger: the account of the rows read since the window before.
    """

    batches: Iterator[pa.RecordBatch]
    histogram: LengthHistogram
    patterns: Patterns
    plan: PackPlan | None
    ledger: Ledger


def packed_windows(
    source: Source, settings: PackSettings, progress: Callable[[int], None] = no_progress
) -> tuple[pa.Schema, Iterator[PackedWindow]]:
    """Pack a source window by window.

        window 1   [#####][#### ][##   ]      the least filled packs of a window are not written:
        window 2   [##   ] + new rows ...     their sequences meet the next window, so that an edge hardly costs a pack

    Args:
        source: the rows.
        settings: how to pack them.
        progress: called with the number of rows that each batch brought.

    Returns:
        The schema of the packed rows, and the windows. Together they hold every sequence exactly once.

    Raises:
        DataError: a column that cannot be packed, kept or dropped as asked.
        CapacityError: a row is longer than max_length and the policy is "error"; raised while iterating.

    Cost: each token is copied once, and up to an eighth of a window once more; memory for about three windows.
    """
    columns = choose_columns(source, settings.token_column, settings.keep_columns, settings.drop_columns)
    schema = packed_schema(source, columns)
    windows = _windows(source, settings, columns, progress)
    return schema, _pack(windows, source, settings, schema)


def _pack(
    windows: Iterator[_Window], source: Source, settings: PackSettings, schema: pa.Schema
) -> Iterator[PackedWindow]:
    carried: list[Rows] = []
    for number, window in enumerate(windows):
        if not carried and not window.parts:
            yield PackedWindow(iter(()), LengthHistogram.from_lengths([]), Patterns.empty(), None, window.ledger)
            continue
        rows = concatenate([*carried, *window.parts])
        window.parts.clear()  # copied: what is not held any longer need not be in memory twice
        lengths = rows.lengths
        groups = None if rows.groups is None else rows.grouped()
        if groups is not None:
            require_apart(source, rows, groups, settings)
        of_units = lengths if groups is None else groups.lengths(lengths, settings.align)  # a unit is packed whole
        window_plan = plan(
            of_units,
            settings.max_length,
            settings.max_sequences,
            settings.algorithm,
            align=settings.align,
            time_limit=settings.time_limit,
        )
        assignment = assign(window_plan, of_units, settings.seed, epoch=number)
        packs = _Packs(assignment.sequence_ids, assignment.pack_offsets)
        patterns, carried = window_plan.patterns, []
        if not window.last and window_plan.algorithm not in DATA_ORDER:
            slots = aligned(of_units, settings.align)
            packs, left = _split_off_least_filled(packs, slots, settings)
            carried = [rows.take(left if groups is None else groups.members(left)[0])]
            patterns = Patterns.from_packs(slots[packs.sequence_ids], packs.pack_offsets)
        if groups is not None:
            sequence_ids, starts = groups.members(packs.sequence_ids)
            packs = _Packs(sequence_ids, starts[packs.pack_offsets])
        histogram = LengthHistogram.from_lengths(lengths[packs.sequence_ids])
        batches = _batches(rows, packs, schema)
        yield PackedWindow(batches, histogram, patterns, window_plan, window.ledger)


@dataclass(frozen=True, slots=True, eq=False)
class _Packs:
    """Some of the packs of an assignment."""

    sequence_ids: IntArray
    pack_offsets: IntArray


def _split_off_least_filled(packs: _Packs, slots: IntArray, settings: PackSettings) -> tuple[_Packs, IntArray]:
    """The packs to write, and the units of those to carry on.

    Carried on are the least filled, up to an eighth of the tokens and at least one that is not full.
    """
    sizes = np.diff(packs.pack_offsets)
    filled = np.add.reduceat(slots[packs.sequence_ids], packs.pack_offsets[:-1])
    open_packs = np.flatnonzero((filled < settings.max_length) & (sizes < (settings.max_sequences or 2**31)))
    open_packs = open_packs[np.argsort(filled[open_packs], kind="stable")]
    carry = np.zeros(len(sizes), bool)
    most_tokens = max(int(filled.sum()) // _CARRY_SHARE, settings.max_length)
    carry[open_packs[np.cumsum(filled[open_packs]) <= most_tokens]] = True
    carry_sequence = np.repeat(carry, sizes)
    written = _Packs(packs.sequence_ids[~carry_sequence], np.concatenate([[0], np.cumsum(sizes[~carry])]))
    return written, packs.sequence_ids[carry_sequence]


def _batches(rows: Rows, packs: _Packs, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The packs as rows, in batches so small that neither memory nor 32-bit offsets are a concern."""
    lengths = rows.lengths[packs.sequence_ids]
    tokens_before = np.concatenate([[0], np.cumsum(lengths)])[packs.pack_offsets]
    bytes_before = np.concatenate([[0], np.cumsum(rows.weights()[packs.sequence_ids])])[packs.pack_offsets]
    n_packs = len(packs.pack_offsets) - 1
    start = 0
    while start < n_packs:
        end = int(np.searchsorted(bytes_before, bytes_before[start] + _BATCH_BYTES, side="right")) - 1
        end = max(end, start + 1)
        first, last = packs.pack_offsets[start], packs.pack_offsets[end]
        ids = packs.sequence_ids[first:last]
        gathered = rows.take(ids)
        per_token = tokens_before[start : end + 1] - tokens_before[start]
        per_sequence = packs.pack_offsets[start : end + 1] - first
        arrays = [
            *(_lists(values, per_token, schema.field(name).type) for name, values in gathered.packed.items()),
            *(_lists(values, per_sequence, schema.field(name).type) for name, values in gathered.kept.items()),
            _lists(pa.array(lengths[first:last], pa.int32()), per_sequence, schema.field(SEQ_LENGTHS).type),
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        start = end


def _lists(values: pa.Array, offsets: IntArray, kind: pa.DataType) -> pa.Array:
    large = pa.types.is_large_list(kind)
    layout = pa.LargeListArray if large else pa.ListArray
    return layout.from_arrays(pa.array(offsets, pa.int64() if large else pa.int32()), values, type=kind)


@dataclass(frozen=True, slots=True, eq=False)
class _Window:
    """Sequences to pack together: every one has 1 to max_length tokens."""

    parts: list[Rows]
    ledger: Ledger
    last: bool


def _windows(
    source: Source, settings: PackSettings, columns: Columns, progress: Callable[[int], None]
) -> Iterator[_Window]:
    """The sequences of the source, cut into windows at the same rows however the source is cut into batches."""
    most_tokens = settings.window_tokens or 2**62
    parts: list[Rows] = []
    tokens = weight = 0
    ledger = Ledger()
    for rows, account in read_sequences(source, settings, columns, progress):
        ledger += account
        cuts = np.arange(len(rows) + 1) if rows.groups is None else rows.grouped().offsets
        tokens_before = rows.offsets[cuts]
        weight_before = np.concatenate([[0], np.cumsum(rows.weights())])[cuts]
        start, last = 0, len(cuts) - 1
        while start < last:
            if tokens >= most_tokens or weight >= WINDOW_BYTES:
                yield _Window(parts, ledger, last=False)
                parts, tokens, weight, ledger = [], 0, 0, Ledger()
            end = min(
                int(np.searchsorted(tokens_before, tokens_before[start] + most_tokens - tokens)),
                int(np.searchsorted(weight_before, weight_before[start] + WINDOW_BYTES - weight)),
                last,
            )
            parts.append(rows.slice(int(cuts[start]), int(cuts[end])))
            tokens += int(tokens_before[end] - tokens_before[start])
            weight += int(weight_before[end] - weight_before[start])
            start = end
    yield _Window(parts, ledger, last=True)
