"""Which columns are packed, kept as one value per sequence, or dropped: decided from the schema, never in silence."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from brimful.errors import DataError
from brimful.tables.batches import Source
from brimful.tables.types import is_list, plain_type, require_token_lists

SEQ_LENGTHS = "seq_lengths"


@dataclass(frozen=True, slots=True)
class Columns:
    """The part that each column of an input plays.

    Args:
        packed: list columns whose items are concatenated; the first is the one with the tokens.
        kept: columns collected into lists, one value per sequence of a pack.
    """

    packed: tuple[str, ...]
    kept: tuple[str, ...]


def choose_columns(source: Source, tokens: str, keep: Collection[str], drop: Collection[str]) -> Columns:
    """Give every column of the source its part.

    Args:
        source: what is to be packed.
        tokens: the list column whose lists are the sequences, usually input_ids.
        keep: columns to collect into lists, one value per sequence.
        drop: columns to leave out.

    Raises:
        DataError: a column that there is not, one that has no part (with all such columns and what to do), tokens that
            are no lists of whole numbers, or data that is packed already.
    """
    for name in (tokens, *keep, *drop):
        source.require(name)
    if clash := sorted({tokens} & {*keep, *drop} | set(keep) & set(drop)):
        raise DataError(f"column {clash[0]!r} can only be one of: the tokens, kept, or dropped")
    left = [field for field in source.schema if field.name not in {*keep, *drop}]
    if SEQ_LENGTHS in {*(field.name for field in left), *keep}:
        raise DataError(
            f"{source.name}: packed already, for it has a column {SEQ_LENGTHS!r}; pack the unpacked data instead, "
            "or drop that column to treat every row as one sequence"
        )
    require_token_lists(source, tokens)
    loose = [field for field in left if not is_list(field.type)]
    if loose:
        names = ", ".join(f"{field.name} ({field.type})" for field in loose)
        raise DataError(
            f"{source.name}: not a list, so it cannot be packed: {names}; keep such columns as one value per sequence "
            "(keep_columns, --keep-columns) or drop them (drop_columns, --drop-columns)"
        )
    packed = (tokens, *(field.name for field in left if field.name != tokens))
    return Columns(packed, tuple(dict.fromkeys(keep)))


def packed_schema(source: Source, columns: Columns) -> pa.Schema:
    """The schema of the packed data: packed columns, kept columns as lists, and seq_lengths.

    A list stays a list and a large_list a large_list; other layouts become lists.
    """

    def packed_type(kind: pa.DataType) -> pa.DataType:
        large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
        value = plain_type(kind.value_type)
        return pa.large_list(value) if large else pa.list_(value)

    return pa.schema(
        [
            *(pa.field(name, packed_type(source.schema.field(name).type)) for name in columns.packed),
            *(pa.field(name, pa.list_(plain_type(source.schema.field(name).type))) for name in columns.kept),
            pa.field(SEQ_LENGTHS, pa.list_(pa.int32())),
        ]
    )
