"""What kind of column is this? The questions that are asked of Arrow types, each answered once for all layouts."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as kinds

from brimful.errors import DataError
from brimful.tables.batches import Source


def is_text(kind: pa.DataType) -> bool:
    """Is this text, in any layout?

    Example:
        >>> is_text(pa.string_view()), is_text(pa.binary())
        (True, False)
    """
    return any(test(kind) for test in (kinds.is_string, kinds.is_large_string, kinds.is_string_view))


def is_list(kind: pa.DataType) -> bool:
    """Is this a list, in any of the five layouts?

    Example:
        >>> is_list(pa.list_(pa.int32(), 4)), is_list(pa.map_(pa.string(), pa.int32()))
        (True, False)
    """
    tests = (
        kinds.is_list,
        kinds.is_large_list,
        kinds.is_fixed_size_list,
        kinds.is_list_view,
        kinds.is_large_list_view,
    )
    return any(test(kind) for test in tests)


def tells_apart(kind: pa.DataType) -> bool:
    """Are two values of this type equal beyond doubt, or different? So of whole numbers, texts and bytes.

    Example:
        >>> tells_apart(pa.string()), tells_apart(pa.float64())
        (True, False)
    """
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary, kinds.is_fixed_size_binary)
    return kinds.is_integer(kind) or any(test(kind) for test in texts)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The same values, or lists of them, in the layout that every part of pyarrow can handle.

    Views become what they are views of, and dictionaries what they hold: those of several files may not fit into one.

    Example:
        >>> plain_type(pa.list_(pa.string_view())), plain_type(pa.dictionary(pa.int8(), pa.int64()))
        (ListType(list<item: string>), DataType(int64))
    """
    if kinds.is_dictionary(kind):
        return plain_type(kind.value_type)
    if kinds.is_string_view(kind):
        return pa.string()
    if kinds.is_binary_view(kind):
        return pa.binary()
    return pa.list_(plain_type(kind.value_type)) if kinds.is_list(kind) else kind


def require_token_lists(source: Source, column: str) -> None:
    """Nothing, if the column holds lists of token ids; otherwise a DataError that says what it holds.

    Lists of nulls pass: that is what a column of empty lists may be.

    Raises:
        DataError: no such column, or one of another type.
    """
    source.require(column)
    kind = source.schema.field(column).type
    if is_list(kind) and (kinds.is_integer(kind.value_type) or kinds.is_null(kind.value_type)):
        return
    hint = f"; it is text: tokenize it (--text-column {column} --tokenizer FILE|bytes)" if is_text(kind) else ""
    raise DataError(f"{source.name}: column {column!r} holds {kind}, not lists of token ids{hint}")
