"""Packing in windows: rows are read, planned and packed a few million tokens at a time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass

import numpy as np
import pyarrow as pa

from brimful.assignment import assign, validate_seed
from brimful.errors import CapacityError
from brimful.lengths import IntArray, validate_capacity
from brimful.overflow import Ledger, Overflow, OverflowPolicy, overflow_error
from brimful.patterns import Patterns
from brimful.planning import DATA_ORDER, plan, require_algorithm
from brimful.plans import PackPlan
from brimful.tables.batches import Source
from brimful.tables.columns import SEQ_LENGTHS, Columns, choose_columns, packed_schema
from brimful.tables.rows import Rows, concatenate, read_rows

WINDOW_BYTES = 2**26
"""What the rows of a window weigh at most: 64 MiB, up to 16 million int32 tokens."""

_BATCH_BYTES = 2**24
_CARRY_SHARE = 8


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How to pack a table.

    Args:
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack, ≥ 1; None for no limit.
        algorithm: a name from `brimful.planning.ALGORITHMS`, or "auto".
        seed: ≥ 0; decides which of several equally long sequences goes where, and the order of the packs.
        overflow: what to do with longer sequences: "error", "drop", "truncate" or "split".
        min_fragment: shortest remainder that "split" keeps, in tokens.
        token_column: the column that holds the sequences.
        keep_columns: columns to collect into lists, one value per sequence.
        drop_columns: columns to leave out.
        window_tokens: how many tokens are planned and packed together, ≥ 1, at most as many as weigh 64 MiB; None for
            those. Windows of few packs cost packs.

    Raises:
        LengthError, SettingError: a setting that is out of range or unknown.
    """

    max_length: int
    _: KW_ONLY
    max_sequences: int | None = None
    algorithm: str = "auto"
    seed: int = 0
    overflow: Overflow = "error"
    min_fragment: int = 1
    token_column: str = "input_ids"
    keep_columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()
    window_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_sequences", "window_tokens"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, validate_capacity(getattr(self, name), name))
        object.__setattr__(self, "seed", validate_seed(self.seed, "seed"))
        require_algorithm(self.algorithm)
        policy = self.policy
        object.__setattr__(self, "max_length", policy.max_length)
        object.__setattr__(self, "min_fragment", policy.min_fragment)

    @property
    def policy(self) -> OverflowPolicy:
        """The overflow policy."""
        return OverflowPolicy(self.overflow, self.max_length, self.min_fragment)


@dataclass(frozen=True, slots=True, eq=False)
class PackedWindow:
    """The packs of one window, ready to be written.

    Args:
        batches: packs as rows, made as they are asked for, about 16 MiB each; none when the window had no tokens.
        patterns: what these packs look like.
        plan: of the window, including the packs that are carried on; None when there was nothing to plan.
        ledger: the account of the rows read since the window before.
    """

    batches: Iterator[pa.RecordBatch]
    patterns: Patterns
    plan: PackPlan | None
    ledger: Ledger


def no_progress(rows: int) -> None:
    """What is called with the number of rows that were read, when nobody wants to know."""


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
    return schema, _pack(windows, settings, schema)


def _pack(windows: Iterator[_Window], settings: PackSettings, schema: pa.Schema) -> Iterator[PackedWindow]:
    carried: list[Rows] = []
    for number, window in enumerate(windows):
        if not carried and not window.parts:
            yield PackedWindow(iter(()), Patterns.empty(), None, window.ledger)
            continue
        rows = concatenate([*carried, *window.parts])
        window.parts.clear()  # copied: what is not held any longer need not be in memory twice
        lengths = rows.lengths
        window_plan = plan(lengths, settings.max_length, settings.max_sequences, settings.algorithm)
        assignment = assign(window_plan, lengths, settings.seed, epoch=number)
        packs = _Packs(assignment.sequence_ids, assignment.pack_offsets)
        patterns, carried = window_plan.patterns, []
        if not window.last and window_plan.algorithm not in DATA_ORDER:
            packs, left = _split_off_least_filled(packs, lengths, settings)
            carried = [rows.take(left)]
            patterns = Patterns.from_packs(lengths[packs.sequence_ids], packs.pack_offsets)
        batches = _batches(rows, packs, schema)
        yield PackedWindow(batches, patterns, window_plan, window.ledger)


@dataclass(frozen=True, slots=True, eq=False)
class _Packs:
    """Some of the packs of an assignment."""

    sequence_ids: IntArray
    pack_offsets: IntArray


def _split_off_least_filled(packs: _Packs, lengths: IntArray, settings: PackSettings) -> tuple[_Packs, IntArray]:
    """The packs to write, and the sequences of those to carry on.

    Carried on are the least filled, up to an eighth of the tokens and at least one that is not full.
    """
    sizes = np.diff(packs.pack_offsets)
    filled = np.add.reduceat(lengths[packs.sequence_ids], packs.pack_offsets[:-1])
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
    tokens = weight = first_row = 0
    ledger = Ledger()
    for batch in source.read([*columns.packed, *columns.kept]):
        rows = read_rows(source.name, batch, list(columns.packed), list(columns.kept), first_row)
        try:
            fragments, account = settings.policy.cut(rows.lengths, first_row)
        except CapacityError:
            raise _overflow_of_all(source, settings) from None
        if not np.array_equal(fragments.lengths, rows.lengths):  # something was cut or left out
            rows = rows.gather(fragments.rows, fragments.starts, fragments.lengths)
        ledger += account
        first_row += batch.num_rows
        progress(batch.num_rows)
        weights = np.concatenate([[0], np.cumsum(rows.weights())])
        start = 0
        while start < len(rows):
            if tokens >= most_tokens or weight >= WINDOW_BYTES:
                yield _Window(parts, ledger, last=False)
                parts, tokens, weight, ledger = [], 0, 0, Ledger()
            end = min(
                int(np.searchsorted(rows.offsets, rows.offsets[start] + most_tokens - tokens)),
                int(np.searchsorted(weights, weights[start] + WINDOW_BYTES - weight)),
                len(rows),
            )
            parts.append(rows.slice(start, end))
            tokens += int(rows.offsets[end] - rows.offsets[start])
            weight += int(weights[end] - weights[start])
            start = end
    yield _Window(parts, ledger, last=True)


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
