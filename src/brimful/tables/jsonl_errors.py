"""Why a line of JSON cannot be read: the slow second look, with Python's json module, at one line that failed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from brimful.errors import shown

_RULE = "each line must be one JSON object"
_ALIKE = "write it alike on every line, or convert to Parquet"
_FIRST = "put such a line at the top, or convert to Parquet"
_FIRST_BLOCK = "the first 16 MiB, which tell the columns"
_AS_TEXT = "write such numbers as text, on every line"


class _RepeatedKeyError(Exception):
    """A key that stands twice in one object."""


class _HugeNumberError(Exception):
    """A number beyond all doubles."""


def explain(line: bytes, schema: pa.Schema | None, *, inferring: bool, others_ignored: bool) -> str | None:
    """What is wrong with a line, or None when this look does not find it.

    Args:
        line: UTF-8 text without its line end.
        schema: the columns so far, None when this is the first line.
        inferring: types are still open: new fields, and numbers with a fraction after whole ones, are fine. Otherwise
            the schema is that of the first block, and whole numbers must be exact in it.
        others_ignored: fields that are not in the schema are fine.

    Example:
        >>> ids = pa.schema({"ids": pa.list_(pa.int64())})
        >>> explain(b'{"ids": [1, "2"]}', ids, inferring=True, others_ignored=False)
        "field 'ids[1]' is text here but int64 in the lines before; write it alike on every line, or convert to Parquet"
        >>> explain(b'{"ids": [1, 2', ids, inferring=False, others_ignored=False)
        "each line must be one JSON object, but this one is not JSON: Expecting ',' delimiter at character 14"

    Cost: one line through the json module.
    """
    try:
        row = json.loads(line, object_pairs_hook=_object, parse_int=_whole, parse_float=_double)
    except json.JSONDecodeError as error:
        return f"{_RULE}, but this one is not JSON: {error.msg} at character {error.pos + 1}"
    except _RepeatedKeyError as error:
        return f"a key must be unique in its object, but {error} stands twice; remove one"
    except _HugeNumberError as error:
        return f"a number must be one that a double can hold, but {error} is beyond them all; {_AS_TEXT}"
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


def _double(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _HugeNumberError(shown(text))
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # of thousands of digits
        raise _HugeNumberError(shown(text)) from None


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
                yield f"field {place!r} is new: {_FIRST_BLOCK}, do not have it; {_FIRST}"
    elif kinds.is_list(kind) and isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _misfits(inner, kind.value_type, f"{path}[{index}]", inferring, False)
    else:
        yield from _leaf_misfits(value, kind, f"field {path!r}", inferring)


def _leaf_misfits(value: Any, kind: pa.DataType, field: str, inferring: bool) -> Iterator[str]:
    if kinds.is_null(kind):
        yield f"{field} is {_kind(value)} here but null in all of {_FIRST_BLOCK}; {_FIRST}"
    elif not _fits(value, kind, inferring):
        known = "text" if kinds.is_string(kind) or kinds.is_timestamp(kind) else kind
        known_from = "in the lines before" if inferring else f"by {_FIRST_BLOCK}"
        remedy = _FIRST if isinstance(value, float) and kinds.is_integer(kind) else _ALIKE
        yield f"{field} is {_kind(value)} here but {known} {known_from}; {remedy}"
    elif not inferring and (reason := _inexact(value, kind)):
        remedy = f"{_AS_TEXT}, or drop the column"
        yield f"a whole number must be kept exactly, but {field} is {shown(value)}, {reason}; {remedy}"


def _fits(value: Any, kind: pa.DataType, inferring: bool) -> bool:
    """Whether a bool, a number or a text may stand in a column of this type."""
    if isinstance(value, bool) or kinds.is_boolean(kind):
        return isinstance(value, bool) and bool(kinds.is_boolean(kind))
    if isinstance(value, int) and kinds.is_integer(kind):
        return True
    if isinstance(value, int | float):
        return bool(kinds.is_floating(kind) or (inferring and kinds.is_integer(kind)))
    return isinstance(value, str) and bool(kinds.is_string(kind) or kinds.is_timestamp(kind))


def _inexact(value: Any, kind: pa.DataType) -> str | None:
    """Why a column of numbers cannot hold a value as it is; None for what it can hold."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    if not -(2**63) <= value < 2**63:
        return "beyond int64"
    if kinds.is_floating(kind) and int(float(value)) != value:
        return "to which no double is equal, and other lines make its column double"
    return None


def _kind(value: Any) -> str:
    """What JSON calls a value; a number as it is, since its size or its fraction may be the fault."""
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return f"the number {shown(value)}"
    return {dict: "an object", list: "a list", str: "text", type(None): "null"}[type(value)]
