"""Are the sequences of a packed folder those of its input, each as often as there?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from brimful.checks import Check
from brimful.errors import BrimfulError, CapacityError, DataError
from brimful.overflow import Ledger
from brimful.tables.batches import Source
from brimful.tables.check import open_shard
from brimful.tables.columns import SEQ_LENGTHS, Columns
from brimful.tables.manifest import Manifest
from brimful.tables.row_rules import Found, check_rows, unit_starts, wrong_columns
from brimful.tables.sequences import read_sequences
from brimful.tables.types import is_list, require_token_lists
from brimful.validation import IntArray

_NAME = "same sequences"
_DIGEST_BYTES = 16


def same_sequences(source: Source, folder: str | Path) -> Check:
    """Compare input and packed folder as multisets of sequences, cut by the overflow policy that the manifest names.

    A sequence counts with all its packed columns and the values kept for it; where groups were packed, a whole group
    counts as one, so that none can have been torn. Each is hashed to 128 bits (blake2b), and
    the hashes of all sequences of one length are added up as whole numbers. The order plays no part in a sum; a
    sequence that stands twice counts twice (an exclusive or would lose it). Sums of 64-bit hashes would do against
    accidents, but leave one chance in 2^64 for each comparison and no margin for crafted data; 128 bits cost the same.
    Sums modulo nothing are no proof against an adversary who picks millions of sequences to that end.

    Args:
        source: the input, with the columns that were packed and kept.
        folder: what `pack_to_folder` made of it.

    Returns:
        The check "same sequences"; a failure names the first length at which they differ. A folder that cannot be read,
        or whose packs break a rule of `check_packed`, fails without being compared.

    Raises:
        DataError: the input lacks the column of tokens, or cannot be read.

    Cost: one pass over both, about five microseconds a sequence; memory for a batch.
    """
    folder = Path(folder)
    try:
        manifest = Manifest.load(folder)
        settings = manifest.settings
        kept = list(dict.fromkeys(settings.keep_columns))
        columns, here = _packed(folder, manifest, kept)
    except BrimfulError as fault:
        return Check(_NAME, False, f"cannot be compared: {fault}")
    if settings.token_column not in source.schema.names:
        raise DataError(
            f"{source.name}: there is no column {settings.token_column!r}, which {folder} was packed from; "
            "give the input that was packed, and if it was text, the same text column and tokenizer"
        )
    require_token_lists(source, settings.token_column)
    kinds = {field.name: field.type for field in source.schema}
    for name in (*columns, *kept):
        if name not in kinds or (name in columns and not is_list(kinds[name])):
            return Check(_NAME, False, f"the packs hold {name!r}, but the input has no such column that can be packed")
    there = _Multiset()
    try:
        ledger = Ledger()
        for rows, account in read_sequences(source, settings, Columns(tuple(columns), tuple(kept))):
            ledger += account
            units = np.arange(len(rows)) if rows.groups is None else rows.grouped().offsets[:-1]
            values = [rows.kept[name].to_pylist() for name in kept]
            there.add_all(list(rows.packed.values()), rows.offsets[:-1], rows.lengths, units, values)
    except CapacityError:
        return Check(
            _NAME,
            False,
            f"the input has rows longer than {settings.max_length:,}, which overflow policy 'error' would have refused",
        )
    for name, count in asdict(ledger).items():
        if manifest.ledger[name] != count:
            said = f"{manifest.ledger[name]:,}"
            return Check(_NAME, False, f"the ledger says {name} {said}, but the input gives {count:,}")
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

    def add_all(
        self, columns: list[pa.Array], starts: IntArray, lengths: IntArray, units: IntArray, kept: list[list[Any]]
    ) -> None:
        """Sequences as pieces of flat columns, the first one of each unit, and for each kept column their values."""
        cut = [_Values(column) for column in columns]
        first = 0
        for last in [*units[1:].tolist(), len(lengths)] if len(units) else []:
            digest = blake2b(digest_size=_DIGEST_BYTES)
            tokens = 0
            for index in range(first, last):
                start, length = int(starts[index]), int(lengths[index])
                if last - first > 1:
                    digest.update(b"%d;" % length)  # where in the unit the sequences end
                for column in cut:
                    digest.update(column.part(start, start + length))
                digest.update(repr([values[index] for values in kept]).encode())
                tokens += length
            self.sequences += last - first
            self.sums[tokens] += int.from_bytes(digest.digest(), "little")
            first = last


def _packed(folder: Path, manifest: Manifest, kept: list[str]) -> tuple[list[str], _Multiset]:
    """The packed columns, the tokens first, and the sequences of all shards; a DataError where a rule is broken."""
    settings = manifest.settings
    multiset, found = _Multiset(), Found()
    columns: list[str] | None = None
    for shard in manifest.shards:
        source = open_shard(folder, shard)
        if wrong := wrong_columns(source.schema, settings):
            raise DataError(f"{shard.path}: {wrong}")
        others = [name for name in source.schema.names if name not in {SEQ_LENGTHS, settings.token_column, *kept}]
        if columns is not None and columns != [settings.token_column, *others]:
            raise DataError(f"{shard.path} has other columns than the shards before it")
        columns = [settings.token_column, *others]
        for batch in source.read(None):
            check_rows(shard.path, 0, batch, settings, found)
            if found.faults:
                raise DataError("a rule is broken: " + next(iter(found.faults.values())))
            lengths = _numbers(batch.column(SEQ_LENGTHS).flatten())
            units = unit_starts(batch, settings, _numbers(pc.list_value_length(batch.column(SEQ_LENGTHS))))
            values = [batch.column(name).flatten().to_pylist() for name in kept]
            flat = [batch.column(name).flatten() for name in columns]
            multiset.add_all(flat, np.cumsum(lengths) - lengths, lengths, units, values)
    return columns or [], multiset


def _numbers(values: pa.Array) -> IntArray:
    numbers: IntArray = values.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


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
