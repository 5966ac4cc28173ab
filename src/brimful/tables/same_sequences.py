"""Are the sequences of a packed folder those of its input, each as often as there?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brimful.errors import BrimfulError
from brimful.tables.batches import Source
from brimful.tables.columns import SEQ_LENGTHS
from brimful.tables.manifest import Manifest
from brimful.tables.row_rules import Check
from brimful.tables.sources import open_source
from brimful.tables.windows import PackSettings

_NAME = "same sequences"
_DIGEST_BYTES = 16


def same_sequences(source: Source, folder: str | Path) -> Check:
    """Compare input and packed folder as multisets of sequences, cut by the overflow policy that the manifest names.

    A sequence counts with all its packed columns and the values kept for it. Each is hashed to 128 bits (blake2b), and
    the hashes of all sequences of one length are added up as whole numbers. The order plays no part in a sum; a
    sequence that stands twice counts twice (an exclusive or would lose it). Sums of 64-bit hashes would do against
    accidents, but leave one chance in 2^64 for each comparison and no margin for crafted data; 128 bits cost the same.
    Sums modulo nothing are no proof against an adversary who picks millions of sequences to that end.

    Args:
        source: the input, with the columns that were packed and kept.
        folder: what `pack_to_folder` made of it.

    Returns:
        The check "same sequences"; a failure names the first length at which they differ.

    Cost: one pass over both, about five microseconds a sequence; memory for a batch.
    """
    folder = Path(folder)
    try:
        manifest = Manifest.load(folder)
        settings = manifest.settings
        packed = open_source([folder / path for path, _, _ in manifest.shards])
        kept = list(settings.keep_columns)
        columns = [name for name in packed.schema.names if name not in {SEQ_LENGTHS, *kept}]
        there, here = _Multiset(), _Multiset()
        for batch in source.read([*columns, *kept]):
            _add_rows(there, batch, columns, kept, settings)
        for batch in packed.read(None):
            _add_packs(here, batch, columns, kept)
    except (BrimfulError, OSError, KeyError, TypeError, ValueError) as fault:
        return Check(_NAME, False, f"cannot be compared: {' '.join(str(fault).split())}")
    different = sorted(length for length in {*there.sums, *here.sums} if there.sums[length] != here.sums[length])
    if different:
        return Check(
            _NAME,
            False,
            f"the input gives {there.sequences:,} and the folder holds {here.sequences:,}; those of {different[0]} "
            f"tokens differ, and those of {len(different) - 1:,} more lengths",
        )
    return Check(_NAME, True, f"all {here.sequences:,} of the input are there, each as often")


@dataclass(slots=True)
class _Multiset:
    """Sequences without order: for each length the sum of their hashes."""

    sequences: int = 0
    sums: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, length: int, parts: list[bytes | memoryview]) -> None:
        """One sequence, in parts whose sizes follow from the length, the last one excepted."""
        digest = blake2b(digest_size=_DIGEST_BYTES)
        for part in parts:
            digest.update(part)
        self.sequences += 1
        self.sums[length] += int.from_bytes(digest.digest(), "little")


def pieces(length: int, settings: PackSettings) -> Iterator[tuple[int, int]]:
    """Where the overflow policy cuts a row: start and end of each sequence that is packed.

    Example:
        >>> list(pieces(12, PackSettings(max_length=5, overflow="split")))
        [(0, 5), (5, 10), (10, 12)]
        >>> list(pieces(12, PackSettings(max_length=5, overflow="truncate")))
        [(0, 5)]
    """
    most = settings.max_length
    if length <= most:
        if length:
            yield 0, length
    elif settings.overflow == "truncate":
        yield 0, most
    elif settings.overflow == "split":
        for start in range(0, length, most):
            end = min(start + most, length)
            if start == 0 or end - start >= settings.min_fragment:
                yield start, end


def _add_rows(
    multiset: _Multiset, batch: pa.RecordBatch, columns: list[str], kept: list[str], settings: PackSettings
) -> None:
    cut = [_Values(batch.column(name).flatten()) for name in columns]
    values = _kept(batch, kept)
    start = 0
    for row, length in enumerate(pc.list_value_length(batch.column(columns[0])).to_pylist()):
        for first, last in pieces(length, settings):
            parts = [column.part(start + first, start + last) for column in cut]
            multiset.add(last - first, [*parts, repr([column[row] for column in values]).encode()])
        start += length


def _add_packs(multiset: _Multiset, batch: pa.RecordBatch, columns: list[str], kept: list[str]) -> None:
    cut = [_Values(batch.column(name).flatten()) for name in columns]
    values = [batch.column(name).flatten().to_pylist() for name in kept]
    start = 0
    for index, length in enumerate(batch.column(SEQ_LENGTHS).flatten().to_pylist()):
        parts = [column.part(start, start + length) for column in cut]
        multiset.add(length, [*parts, repr([column[index] for column in values]).encode()])
        start += length


def _kept(batch: pa.RecordBatch, names: list[str]) -> list[list[Any]]:
    return [batch.column(name).to_pylist() for name in names]


class _Values:
    """The flat values of a column as bytes: numbers as they lie in memory, others as Python writes them."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._width = 0
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
            numbers = np.ascontiguousarray(values.to_numpy(zero_copy_only=False))
            self._bytes = memoryview(numbers.view(np.uint8).data)
            self._width = numbers.dtype.itemsize

    def part(self, start: int, end: int) -> bytes | memoryview:
        if self._width:
            return self._bytes[start * self._width : end * self._width]
        return repr(self._values.slice(start, end - start).to_pylist()).encode()
