"""Why a line of JSON cannot be read: the slow second look, with Python's json module, at one line that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

_RULE = "each line must be one JSON object"
_ALIKE = "write it alike on every line, or convert to Parquet"
_FIRST = "put a line that has it at the top, or convert to Parquet"


class _RepeatedKeyError(Exception):
    """A key that stands twice in one object."""


def explain(line: bytes, schema: pa.Schema | None, *, inferring: bool, others_ignored: bool) -> str | None:
    """What is wrong with a line, or None when this look does not find it.

    Args:
        line: UTF-8 text without its line end.
        schema: the columns so far, None when this is the first line.
        inferring: types are still open: new fields, and numbers with a fraction after whole ones, are fine.
        others_ignored: fields that are not in the schema are fine.

    Example:
        >>> ids = pa.schema({"ids": pa.list_(pa.int64())})
        >>> explain(b'{"ids": [1, "2"]}', ids, inferring=False, others_ignored=False)
        "field 'ids[1]' is text here but int64 in the lines before; write it alike on every line, or convert to Parquet"
        >>> explain(b'{"ids": [1, 2', ids, inferring=False, others_ignored=False)
        "each line must be one JSON object, but this one is not JSON: Expecting ',' delimiter at character 14"

    Cost: one line through the json module.
    """
    try:
        row = json.loads(line, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        return f"{_RULE}, but this one is not JSON: {error.msg} at character {error.pos + 1}"
    except _RepeatedKeyError as error:
        return f"a key must be unique in its object, but {error} stands twice; remove one"
    except RecursionError:
        return f"{_RULE}, but this one is nested too deeply"
    if not isinstance(row, dict):
        return f"{_RULE}, but this one is {_kind(row)}"
    return next(_misfits(row, pa.struct(list(schema or [])), "", inferring, others_ignored), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(repr(next(key for key in keys if keys.count(key) > 1)))
    return row


def _misfits(value: Any, kind: pa.DataType, path: str, inferring: bool, others_ignored: bool) -> Iterator[str]:
    """One message for each place where a value is not of its type."""
    if value is None or (inferring and kinds.is_null(kind)):
        return
    if kinds.is_struct(kind) and isinstance(value, dict):
        for key, inner in value.items():
            place = f"{path}.{key}" if path else key
            index = kind.get_field_index(key)
            if index >= 0:
                yield from _misfits(inner, kind.field(index).type, place, inferring, False)
            elif not inferring and not others_ignored:
                yield f"field {place!r} is new: the first 16 MiB, which tell the columns, do not have it; {_FIRST}"
    elif kinds.is_list(kind) and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _misfits(inner, kind.value_type, f"{path}[{index}]", inferring, False)
    elif kinds.is_null(kind):
        yield f"field {path!r} is {_kind(value)} here but null in all lines before; {_FIRST}"
    elif not _fits(value, kind, inferring):
        known = "text" if kinds.is_string(kind) or kinds.is_timestamp(kind) else kind
        yield f"field {path!r} is {_kind(value)} here but {known} in the lines before; {_ALIKE}"


def _fits(value: Any, kind: pa.DataType, inferring: bool) -> bool:
    """Whether a bool, a number or a text may stand in a column of this type."""
    if isinstance(value, bool) or kinds.is_boolean(kind):
        return isinstance(value, bool) and bool(kinds.is_boolean(kind))
    if isinstance(value, int) and kinds.is_integer(kind):
        return inferring or -(2**63) <= value < 2**63
    if isinstance(value, int | float):
        return bool(kinds.is_floating(kind) or (inferring and kinds.is_integer(kind)))
    return isinstance(value, str) and bool(kinds.is_string(kind) or kinds.is_timestamp(kind))


def _kind(value: Any) -> str:
    """What JSON calls a value; a number as it is, since its size or its fraction may be the fault."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return f"the number {value}"
    return {dict: "an object", list: "a list", str: "text", type(None): "null"}[type(value)]
