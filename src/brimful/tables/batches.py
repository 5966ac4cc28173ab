"""A source of rows: any number of passes over record batches that are never large.

What a format must supply is little: a schema and a generator of record batches. `make_source` wraps it in what every
format owes its reader: unknown columns are refused by name, batches are cut to size, and whatever pyarrow raises while
reading becomes one line that names the file.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from brimful.errors import DataError

BATCH_BYTES = 16 << 20
"""What a record batch weighs at most, in bytes: small beside any machine's memory, large beside the cost of a call."""


@dataclass(frozen=True, slots=True)
class Source:
    """Rows to be read in order, as often as wanted, in record batches of bounded size.

    Attributes:
        name: what to call it in messages: the path, or "table".
        schema: the columns, without metadata.
        n_rows: how many rows; None where only reading can tell (JSONL, Arrow streams).
        read: the batches, with the columns named and in that order (None: all). Each call starts afresh.
    """

    name: str
    schema: pa.Schema
    n_rows: int | None
    read: Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]

    def require(self, column: str) -> None:
        """Raise DataError, listing the columns there are, unless `column` is one of them."""
        _require(column, self.schema, self.name)


def make_source(
    name: str,
    schema: pa.Schema,
    n_rows: int | None,
    batches: Callable[[list[str]], Iterator[pa.RecordBatch]],  # column names wanted -> batches that hold at least those
) -> Source:
    """A source from a schema and a generator of record batches of any size.

        batches   [aaaaaaaaaaaaaaaaaaaa][b][ccc]        as they come
        read      [aaaaaaa][aaaaaaa][aaaaaa][b][ccc]    each ≤ BATCH_BYTES, or a single row

    Args:
        name: what to call it in messages.
        schema: the columns that every batch has; metadata is dropped, types are kept.
        n_rows: how many rows, None when unknown.
        batches: a generator function; it may yield more columns than asked for, in any order.

    Returns:
        The source. Its batches have exactly the columns asked for, are cut without copying, and hold ≥ 1 row.

    Raises:
        DataError: two columns share a name. When read: an unknown column, data that pyarrow cannot read, or more or
            fewer rows than `n_rows`.

    Example:
        >>> table = pa.table({"ids": [[1, 2], [3]]})
        >>> source = make_source("table", table.schema, 2, lambda columns: iter(table.to_batches()))
        >>> [batch.to_pydict() for batch in source.read(["ids"])]
        [{'ids': [[1, 2], [3]]}]

    Cost: a few microseconds a batch.
    """
    repeated = sorted({column for column in schema.names if schema.names.count(column) > 1})
    if repeated:
        raise DataError(
            f"{name}: a column name must be unique, but {repeated[0]!r} stands for several columns; rename them"
        )
    plain = plain_schema(schema)

    def read(columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        wanted = plain.names if columns is None else list(columns)
        for column in wanted:
            _require(column, plain, name)
        return _read(wanted)

    def _read(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        fields = pa.schema([plain.field(column) for column in wanted])
        rows = 0
        with reading(name):
            for batch in batches(wanted):
                rows += batch.num_rows
                yield from _cut(_with_schema(batch, fields))
        if n_rows is not None and rows != n_rows:
            raise DataError(
                f"{name}: must hold the rows that it lists, but lists {n_rows} and holds {rows}; write it again"
            )

    return Source(name, plain, n_rows, read)


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn whatever pyarrow or the system raises inside into a DataError of one line that names the source.

    Example:
        >>> with reading("broken.parquet"):
        ...     raise pa.ArrowInvalid("magic bytes\\n  not found")
        Traceback (most recent call last):
            ...
        brimful.errors.DataError: broken.parquet: cannot be read: magic bytes not found
    """
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{name}: cannot be read: {' '.join(reason.split()) or type(error).__name__}") from error


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The same columns and types, without the metadata of the schema and of its fields."""
    return pa.schema([field.remove_metadata() for field in schema])


def _require(column: str, schema: pa.Schema, name: str) -> None:
    if column in schema.names:
        return
    near = difflib.get_close_matches(column, schema.names, n=1)
    guess = f" (did you mean {near[0]!r}?)" if near else ""
    there = ", ".join(repr(other) for other in schema.names) or "none"
    raise DataError(f"{name}: there is no column {column!r}{guess}; its columns are: {there}")


def _with_schema(batch: pa.RecordBatch, fields: pa.Schema) -> pa.RecordBatch:
    """Just these columns, in this order; with no columns, the number of rows stays."""
    missing = set(fields.names) - set(batch.schema.names)
    if missing:
        raise pa.ArrowInvalid(f"a batch lacks the columns {sorted(missing)}")
    batch = batch.select(fields.names)
    if not fields.names:
        return batch
    return pa.RecordBatch.from_arrays(batch.columns, schema=fields)


def _cut(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces of at most BATCH_BYTES, or of one row; an empty batch in no piece. Nothing is copied."""
    rows, size = batch.num_rows, _weight(batch)
    if rows == 0:
        return
    if rows == 1 or size <= BATCH_BYTES:
        yield batch
        return
    halves = batch.slice(0, rows // 2), batch.slice(rows // 2)
    if sum(map(_weight, halves)) < 1.5 * size:
        for half in halves:
            yield from _cut(half)
        return
    # What weighs is shared by all rows (a dictionary, the buffers of a view): halving would go on for ever.
    step = max(1, rows * BATCH_BYTES // size)
    for start in range(0, rows, step):
        yield batch.slice(start, step)


def _weight(batch: pa.RecordBatch) -> int:
    """Bytes of these rows; of whole buffers where this pyarrow cannot weigh a column (a view, before 24)."""
    try:
        return int(batch.nbytes)
    except pa.ArrowException:
        return int(batch.get_total_buffer_size())
