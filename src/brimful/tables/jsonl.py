"""JSON lines (.jsonl, also .gz and .zst): one object a line, read in blocks that end at a line's end.

pyarrow parses a block at some 150 MB a second, but takes liberties that a training set must not depend on: it turns
texts like "2024-01-31" into timestamps, joins an object written over two lines, and infers types anew for each block.
Here the types come from the first block, once; texts stay texts; and a block that does not follow is refused by line,
as is a whole number that its column would round.

    first block    {"ids": [1, 2], "note": null}        ids: list<int64>, note: null
    later          {"ids": [3]}                         a missing field is null
                   {"ids": [4], "url": "…"}             DataError: file, line and field: url is new
                   {"ids": [2.5]}                       DataError: the same: it is int64 in the first block
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as kinds

from brimful.errors import DataError
from brimful.tables.batches import Source, make_source, reading
from brimful.tables.jsonl_errors import explain

_BLOCK_BYTES = 16 << 20  # of text
_PARALLEL_BYTES = 1 << 20  # of a block, parsed by one thread
_MOST_DEPTH = 200
_EXACT = 2**53  # up to here every whole number is a double
_LONG_WHOLE = re.compile(rb"(?<![0-9.])[0-9]{16,}+(?![.eE])")  # 2^53 has 16 digits
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_CODECS = {".gz": "gzip", ".zst": "zstd"}


def jsonl_source(path: Path) -> Source:
    """The rows of one file of JSON lines.

    Args:
        path: UTF-8 text; the endings .gz and .zst tell that it is compressed. Blank lines are skipped.

    Returns:
        A source whose columns are the fields of the first 16 MiB of text, with the types they have there: int64,
        double, bool, string, list, struct. A field that is null throughout has the null type; a list that is always
        empty is list<int64>. `n_rows` is None.

    Raises:
        DataError: no rows; a line that is not one JSON object, or whose field does not have its type; not UTF-8.
            When read: the same of later lines; a field that the first block does not have; a whole number, in a
            column that is read, beyond int64 or not equal to any double where its column is double; a compressed file
            that is cut short.

    Cost: opening reads and parses the first block. Memory is a few times the block, or the longest line.
    """
    name = str(path)
    with reading(name):
        line, block = next(_blocks(path, name), (1, b""))
        schema = _infer(block, line, name)

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        fields, unexpected = schema, "error"
        if set(columns) != set(schema.names) and not any(
            _holds_struct(schema.field(column).type) for column in columns
        ):
            fields, unexpected = pa.schema([schema.field(column) for column in columns]), "ignore"
        for line, block in _blocks(path, name):
            try:
                table = _parse(block, fields, unexpected)
            except pa.ArrowInvalid as error:
                raise _fault(block, line, name, fields, unexpected, error) from error
            _require_exact(table.select(columns), block, line, name)
            yield from table.to_batches()

    return make_source(name, schema, None, batches)


def _blocks(path: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """Whole lines, about _BLOCK_BYTES at a time, with the number of the first; blank blocks are left out."""
    line, held = 1, [b""]
    with _open(path) as stream:
        while piece := stream.read(_BLOCK_BYTES):
            if line == 1 and held == [b""]:
                piece = piece.removeprefix(codecs.BOM_UTF8)
            end = piece.rfind(b"\n") + 1
            if not end:
                held.append(piece)
                continue
            block = b"".join([*held, piece[:end]])
            held = [piece[end:]]
            yield from _text(block, line, name)
            line += block.count(b"\n")
    yield from _text(b"".join(held), line, name)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[pa.NativeFile]:
    codec = _CODECS.get(path.suffix.lower())
    with pa.OSFile(str(path)) as file:
        if codec is None:
            yield file
            return
        with pa.CompressedInputStream(file, codec) as stream:
            yield stream


def _text(block: bytes, line: int, name: str) -> Iterator[tuple[int, bytes]]:
    try:
        block.decode()
    except UnicodeDecodeError as error:
        line += block.count(b"\n", 0, error.start)
        raise DataError(
            f"{name}:{line}: JSON lines must be UTF-8, but byte 0x{block[error.start]:02x} is not; convert the file"
        ) from error
    if block and not block.isspace():
        yield line, block


def _infer(block: bytes, line: int, name: str) -> pa.Schema:
    """The columns of a block, with types that later blocks are held to."""
    if not block:
        raise DataError(
            f"{name}: holds no rows: every line is blank; a file must have one JSON object to tell its columns"
        )
    try:
        return _settled(_parse(block, None, "infer").schema)
    except pa.ArrowInvalid as error:
        raise _fault(block, line, name, None, "infer", error) from error


def _parse(block: bytes, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    """The rows of a block of whole lines; ArrowInvalid unless there is one object to each line that is not blank."""
    parse = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    objects = _count_objects(block)
    _check_depth(block)
    table = None
    if schema is not None and len(block) > _PARALLEL_BYTES:
        with contextlib.suppress(pa.ArrowInvalid):  # perhaps a line is longer than that
            table = pj.read_json(pa.BufferReader(block), pj.ReadOptions(block_size=_PARALLEL_BYTES), parse)
    if table is None:
        table = pj.read_json(pa.BufferReader(block), pj.ReadOptions(False, len(block) + 1), parse)
    if table.num_rows != objects:
        raise pa.ArrowInvalid("an object spans several lines, or a line holds several objects")
    return table


def _count_objects(block: bytes) -> int:
    """The lines that are not blank; ArrowInvalid unless each of them starts an object.

    (pyarrow would take a line `null` for a row, and crash when it is the first.)
    """
    text = np.frombuffer(block, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(text == ord("\n")) + 1])
    starts = starts[starts < len(text)]
    others = starts[text[starts] != ord("{")]
    blank = 0
    for start in others.tolist():
        line = block[start : (block.find(b"\n", start) + 1) or None].strip()
        if line and not line.startswith(b"{"):
            raise pa.ArrowInvalid("a line does not start with an object")
        blank += not line
    return len(starts) - blank


def _check_depth(block: bytes) -> None:
    """ArrowInvalid if a line is nested so deep that the parser would exhaust its stack, and the process with it."""
    text = np.frombuffer(block, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(text == ord("\n")) + 1])
    starts = starts[starts < len(text)]
    opening = np.add.reduceat((text == ord("[")) | (text == ord("{")), starts, dtype=np.int64)
    for start in starts[opening > _MOST_DEPTH].tolist():
        line = _STRING.sub(b"", block[start : (block.find(b"\n", start) + 1) or None])
        depth = 0
        for byte in line:
            depth += (byte in b"[{") - (byte in b"]}")
            if depth > _MOST_DEPTH:
                raise pa.ArrowInvalid(f"a value is nested more than {_MOST_DEPTH} deep")


def _require_exact(table: pa.Table, block: bytes, line: int, name: str) -> None:
    """Nothing, if no whole number of the block was rounded to a double; otherwise a DataError with the line.

    (pyarrow makes a column double where one number has a fraction, or is beyond int64.) The text is searched only if
    a double is so large that it may be a rounded one, and json reads only lines with digits that make such a double.
    """
    large = {number for column in table.columns for number in _large_doubles(column)}
    place = 0
    while large and (found := _LONG_WHOLE.search(block, place)):
        place = found.end()
        if float(found[0]) in large:
            start, place = block.rfind(b"\n", 0, place) + 1, block.find(b"\n", place) + 1 or len(block)
            if reason := explain(block[start:place].rstrip(), table.schema, inferring=False, others_ignored=True):
                line += block.count(b"\n", 0, start)
                raise DataError(f"{name}:{line}: {reason}")


def _large_doubles(values: pa.ChunkedArray) -> Iterator[float]:
    """The sizes of the doubles in a column, and anywhere inside of it, that a whole number may have been rounded to."""
    if kinds.is_list(values.type):
        yield from _large_doubles(pc.list_flatten(values))
    elif kinds.is_struct(values.type):
        for field in range(values.type.num_fields):
            yield from _large_doubles(pc.struct_field(values, field))
    elif kinds.is_floating(values.type):
        sizes = np.abs(values.to_numpy())
        yield from sizes[sizes >= _EXACT].tolist()


def _fault(
    block: bytes, line: int, name: str, schema: pa.Schema | None, unexpected: str, error: pa.ArrowInvalid
) -> DataError:
    """What is wrong with a block that does not parse, and in which line: the last of the shortest prefix that fails."""
    lines = block.split(b"\n")
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _parse_lines(lines[:middle], schema, unexpected)
            good = middle
        except pa.ArrowInvalid as earlier:
            bad, error = middle, earlier
    before = _parse_lines(lines[:good], schema, unexpected)
    settled = schema if schema is not None else before and before.schema
    reason = explain(lines[bad - 1], settled, inferring=schema is None, others_ignored=unexpected == "ignore")
    return DataError(f"{name}:{line + bad - 1}: {reason or ' '.join(str(error).split())}")


def _parse_lines(lines: list[bytes], schema: pa.Schema | None, unexpected: str) -> pa.Table | None:
    block = b"\n".join(lines)
    return _parse(block, schema, unexpected) if block and not block.isspace() else None


def _settled(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _settled_type(field.type)) for field in schema])


def _settled_type(kind: pa.DataType) -> pa.DataType:
    """The type that a field keeps: texts that look like dates are texts, and an empty list is one of token ids."""
    if kinds.is_timestamp(kind):
        return pa.string()
    if kinds.is_list(kind):
        return pa.list_(pa.int64() if kinds.is_null(kind.value_type) else _settled_type(kind.value_type))
    if kinds.is_struct(kind):
        return pa.struct([pa.field(field.name, _settled_type(field.type)) for field in kind])
    return kind


def _holds_struct(kind: pa.DataType) -> bool:
    """Whether ignoring the other columns would ignore fields inside of this one as well."""
    return bool(kinds.is_struct(kind) or (kinds.is_list(kind) and _holds_struct(kind.value_type)))
