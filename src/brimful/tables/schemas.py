"""One schema for several files, where no value changes on the way to it.

Shards of one dataset seldom differ in meaning and often in type: a column that is empty in one shard has the null type
there, one writer says list and another large_list, one int32 and another int64. Those meet in the wider type. What
would have to be converted (an integer to text, a large integer to a float) does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as kinds

from brimful.errors import DataError
from brimful.tables.types import is_text


def common_schema(schemas: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """The schema into which the rows of every file can be cast without loss.

    Args:
        schemas: name and schema of each file, at least one; names are used in errors.

    Returns:
        The columns of the first file, in its order, each with the narrowest type that holds them all.

    Raises:
        DataError: a file lacks a column or has one more, or the types of a column do not meet; names both files.

    Example:
        >>> small = pa.schema({"ids": pa.list_(pa.int32()), "note": pa.null()})
        >>> large = pa.schema({"note": pa.string(), "ids": pa.list_(pa.int64())})
        >>> common_schema([("a.parquet", small), ("b.parquet", large)])
        ids: list<item: int64>
          child 0, item: int64
        note: string

    Cost: files × columns.
    """
    first_name, schema = schemas[0]
    decided_by = dict.fromkeys(schema.names, first_name)
    for name, other in schemas[1:]:
        for column in sorted(set(schema.names) ^ set(other.names)):
            has, lacks = (first_name, name) if column in schema.names else (name, first_name)
            raise DataError(
                f"all inputs must have the same columns, but {column!r} is in {has} and not in {lacks}; "
                "read them one by one, or write them with equal columns"
            )
        fields = []
        for field in schema:
            theirs = other.field(field.name)
            common = common_type(field.type, theirs.type)
            if common is None:
                raise DataError(
                    f"all inputs must have the same columns, but {field.name!r} is {field.type} in "
                    f"{decided_by[field.name]} and {theirs.type} in {name}; convert one of them"
                )
            if common != field.type:
                decided_by[field.name] = name
            fields.append(pa.field(field.name, common, nullable=field.nullable or theirs.nullable))
        schema = pa.schema(fields)
    return schema


def common_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds the values of both exactly, or None.

    Example:
        >>> common_type(pa.int32(), pa.uint32()), common_type(pa.int64(), pa.float64())
        (DataType(int64), None)
    """
    if one == other or kinds.is_null(other):
        return one
    if kinds.is_null(one):
        return other
    if kinds.is_dictionary(one) or kinds.is_dictionary(other):
        return common_type(_decoded(one), _decoded(other))
    if kinds.is_integer(one) and kinds.is_integer(other):
        return _common_integer(one, other)
    if kinds.is_floating(one) and kinds.is_floating(other):
        return max(one, other, key=_bit_width)
    if is_text(one) and is_text(other):
        return pa.large_string()
    if _is_bytes(one) and _is_bytes(other):
        return pa.large_binary()
    if _is_list_that_casts(one) and _is_list_that_casts(other):
        value = common_type(one.value_type, other.value_type)
        wide = kinds.is_large_list(one) or kinds.is_large_list(other)
        return value and (pa.large_list(value) if wide else pa.list_(value))
    if kinds.is_struct(one) and kinds.is_struct(other):
        return _common_struct(one, other)
    return None


def _common_integer(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    if kinds.is_signed_integer(one) == kinds.is_signed_integer(other):
        return max(one, other, key=_bit_width)
    signed, unsigned = (one, other) if kinds.is_signed_integer(one) else (other, one)
    holders = (pa.int16(), pa.int32(), pa.int64())
    return next(
        (kind for kind in holders if kind.bit_width > unsigned.bit_width and kind.bit_width >= signed.bit_width), None
    )


def _common_struct(one: pa.StructType, other: pa.StructType) -> pa.DataType | None:
    """Field by field; the fields must have the same names in the same order, since a cast goes by place."""
    if [field.name for field in one] != [field.name for field in other]:
        return None
    fields = [(field.name, common_type(field.type, theirs.type)) for field, theirs in zip(one, other, strict=True)]
    return None if any(kind is None for _, kind in fields) else pa.struct(fields)


def _bit_width(kind: pa.DataType) -> int:
    width: int = kind.bit_width
    return width


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if kinds.is_dictionary(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_binary_view(kind))


def _is_list_that_casts(kind: pa.DataType) -> bool:
    """Not a list of any layout: pyarrow (26) casts list views to arrays that are not valid."""
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind))
