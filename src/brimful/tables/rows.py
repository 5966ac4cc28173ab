"""Rows with ragged columns: several lists per row that share their boundaries, and values kept beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from brimful.errors import DataError
from brimful.groups import SequenceGroups
from brimful.tables.types import plain_type
from brimful.validation import IntArray

_ROW_BYTES = 128  # of offsets, ids and orders that a row needs while it is packed
_TEXT_BYTES = 16
_BLOCK_COPY_FROM = 64  # mean length, in tokens, from which copying blocks beats gathering token by token


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of a table as flat values with one set of boundaries for all packed columns.

        input_ids  [[1 2 3] [4]]         offsets  0 3 4
        labels     [[7 8 9] [0]]    ->   packed   input_ids: 1 2 3 4    labels: 7 8 9 0
        source     ["a" "b"]             kept     source: "a" "b"

    Args:
        offsets: (rows + 1,) int64, row i has tokens offsets[i] to offsets[i + 1]; offsets[0] is 0.
        packed: flat values of each packed column, offsets[-1] of them.
        kept: one value per row of each kept column.
        groups: (rows,) int64, equal for consecutive rows that must share a pack; None where there are no groups.
    """

    offsets: IntArray
    packed: dict[str, pa.Array]
    kept: dict[str, pa.Array]
    groups: IntArray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        """(rows,) tokens of each row."""
        lengths: IntArray = np.diff(self.offsets)
        return lengths

    def grouped(self) -> SequenceGroups:
        """The rows by group; every row alone where there are no groups."""
        if self.groups is None or not len(self):
            return SequenceGroups(np.arange(len(self) + 1))
        return SequenceGroups(np.flatnonzero(np.diff(self.groups, prepend=-1, append=-1)))

    def weights(self) -> IntArray:
        """(rows,) int64: about how many bytes of memory it takes to have each row packed."""
        weights = np.full(len(self), _ROW_BYTES, np.int64)
        for values in self.packed.values():
            size = item_bytes(values)
            if isinstance(size, int):
                weights += size * self.lengths
            else:
                before = np.concatenate([[0], np.cumsum(size)])
                weights += before[self.offsets[1:]] - before[self.offsets[:-1]]
        for values in self.kept.values():
            weights += item_bytes(values)
        return weights

    def slice(self, start: int, end: int) -> Rows:
        """Rows start to end, without copying tokens."""
        first, last = int(self.offsets[start]), int(self.offsets[end])
        return Rows(
            self.offsets[start : end + 1] - first,
            {name: values.slice(first, last - first) for name, values in self.packed.items()},
            {name: values.slice(start, end - start) for name, values in self.kept.items()},
            None if self.groups is None else self.groups[start:end],
        )

    def take(self, rows: IntArray) -> Rows:
        """These rows, in this order."""
        return self.gather(rows, np.zeros_like(rows), self.lengths[rows])

    def gather(self, rows: IntArray, starts: IntArray, lengths: IntArray) -> Rows:
        """New rows, each a piece of one of these: tokens starts[i] to starts[i] + lengths[i] of row rows[i].

        Cost: one block copy per piece and column, or for short pieces one step per token.
        """
        first = self.offsets[rows] + starts
        return Rows(
            np.concatenate([[0], np.cumsum(lengths)]),
            dict(zip(self.packed, _gather(list(self.packed.values()), first, lengths), strict=True)),
            {name: _take(values, rows) for name, values in self.kept.items()},
            None if self.groups is None else self.groups[rows],
        )


def read_rows(source: str, batch: pa.RecordBatch, packed: list[str], kept: list[str], first_row: int) -> Rows:
    """The rows of a record batch.

    Args:
        source: what to call the input in messages.
        batch: has all these columns.
        packed: list columns of any kind (list, large_list, fixed_size_list, views); the first sets the boundaries.
        kept: columns of any type.
        first_row: the number of the first row in the whole input, for messages.

    Raises:
        DataError: a null row or a null token, or a row whose lists differ in length; names column, row and remedy.
    """
    offsets = None
    values = {}
    for name in packed:
        column = batch.column(name)
        if column.null_count:
            raise DataError(
                f"{source}: column {name!r}: row {first_row + _first_null(column)} is null; "
                "give it a list, or leave the row out (an empty list is skipped and counted)"
            )
        lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
        if offsets is None:
            offsets = np.concatenate([[0], np.cumsum(lengths)])
        elif (differs := np.flatnonzero(lengths != np.diff(offsets))).size:
            row = int(differs[0])
            raise DataError(
                f"{source}: column {name!r}: row {first_row + row} has {lengths[row]} items, but {packed[0]!r} has "
                f"{offsets[row + 1] - offsets[row]}; keep the column as one value per sequence (keep_columns) "
                "or drop it (drop_columns)"
            )
        values[name] = _plain(column.flatten())
        if values[name].null_count:
            row = int(np.searchsorted(offsets, _first_null(values[name]), side="right")) - 1
            raise DataError(
                f"{source}: column {name!r}: row {first_row + row} holds a null among its items; give it a value"
            )
    if offsets is None:
        raise DataError("there is no column to pack")
    return Rows(offsets, values, {name: _plain(batch.column(name)) for name in kept})


def _plain(values: pa.Array) -> pa.Array:
    kind = plain_type(values.type)
    return values if kind.equals(values.type) else values.cast(kind)


def concatenate(parts: list[Rows]) -> Rows:
    """The rows of all parts, which have the same columns, one after the other."""
    if len(parts) == 1:
        return parts[0]
    bases = np.cumsum([0, *(part.offsets[-1] for part in parts)])
    return Rows(
        np.concatenate([[0], *(part.offsets[1:] + base for part, base in zip(parts, bases, strict=False))]),
        {name: pa.concat_arrays([part.packed[name] for part in parts]) for name in parts[0].packed},
        {name: pa.concat_arrays([part.kept[name] for part in parts]) for name in parts[0].kept},
        None if parts[0].groups is None else np.concatenate([part.groups for part in parts if part.groups is not None]),
    )


def item_bytes(values: pa.Array) -> int | IntArray:
    """What an item weighs: one number where all are alike, (items,) for texts, the mean for what is nested deeper."""
    kind = values.type
    if pa.types.is_primitive(kind):
        return max(1, int(kind.bit_width) // 8)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        sizes: IntArray = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return sizes + _TEXT_BYTES
    return int(values.nbytes // max(len(values), 1)) + _TEXT_BYTES


def _first_null(array: pa.Array) -> int:
    return int(pc.index(array.is_null(), True).as_py())


def _gather(columns: list[pa.Array], starts: IntArray, lengths: IntArray) -> list[pa.Array]:
    """Pieces of flat columns, one after the other; all columns are cut at the same places."""
    n_tokens = int(lengths.sum())
    blocks = n_tokens >= _BLOCK_COPY_FROM * len(lengths)
    if not blocks or not all(_is_plain(values.type) for values in columns):
        places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        places += np.arange(n_tokens)
    return [
        _copy_blocks(values, starts, lengths) if blocks and _is_plain(values.type) else _take(values, places)
        for values in columns
    ]


def _take(values: pa.Array, places: IntArray) -> pa.Array:
    try:
        return values.take(pa.array(places))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as fault:
        raise DataError(
            f"values of type {values.type} cannot be brought into another order ({' '.join(str(fault).split())}); "
            "cast the column to another type, or drop it"
        ) from fault


def _is_plain(kind: pa.DataType) -> bool:
    """Are the values numbers of a whole number of bytes?"""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _copy_blocks(values: pa.Array, starts: IntArray, lengths: IntArray) -> pa.Array:
    """The pieces of numbers by block copies, which for long pieces is several times faster than one by one."""
    source: npt.NDArray[np.generic] = values.to_numpy(zero_copy_only=True)
    target = np.empty(int(lengths.sum()), source.dtype)
    read, write = source.view(np.uint8).data, target.view(np.uint8).data
    width = source.dtype.itemsize
    begins = (starts * width).tolist()
    sizes = (lengths * width).tolist()
    at = 0
    for begin, size in zip(begins, sizes, strict=True):
        write[at : at + size] = read[begin : begin + size]
        at += size
    return pa.array(target, type=values.type)
