"""Parquet files, read in batches whose size follows from the metadata of each row group.

A fixed number of rows would not do: 65,536 rows of 100,000 tokens are 26 GB. How many values a column has in a row
group is written in the file's footer, so the number of rows that fit into a batch is known before a byte is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from brimful.errors import DataError
from brimful.tables.batches import BATCH_BYTES, Source, make_source, reading

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}  # bytes in memory
_READ_BYTES = 1 << 20  # of a column chunk held at a time, instead of the whole chunk
_MOST_ROWS = 1 << 16
_PROBE_ROWS = 64


def parquet_source(path: Path) -> Source:
    """The rows of one Parquet file.

    Args:
        path: a file that starts and ends with PAR1.

    Returns:
        A source that decodes only the columns asked for; `n_rows` comes from the footer.

    Raises:
        DataError: not a Parquet file, cut short, or encrypted. When read: a damaged page.

    Cost: opening reads the footer; memory while reading is a few batches, whatever the size of file and row groups.
    """
    name = str(path)
    with reading(name), path.open("rb") as file:
        if file.read(4) != b"PAR1":
            raise DataError(f"{name}: is no Parquet file: it does not start with PAR1; name it by what it holds")
    with reading(name), _open(path) as parquet:
        schema, n_rows = parquet.schema_arrow, parquet.metadata.num_rows

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _open(path) as parquet:
            for group in range(parquet.num_row_groups):
                rows = _rows_per_batch(parquet, group, columns)
                for batch in parquet.iter_batches(batch_size=rows, row_groups=[group], columns=columns):
                    batch.validate(full=True)
                    yield batch

    return make_source(name, schema, n_rows, batches)


def _open(path: Path) -> pq.ParquetFile:
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=_READ_BYTES, page_checksum_verification=True)


def _rows_per_batch(parquet: pq.ParquetFile, group: int, columns: list[str]) -> int:
    """How many rows of these columns weigh about BATCH_BYTES on the average of this row group."""
    chunks = parquet.metadata.row_group(group)
    if not chunks.num_rows:
        return 1
    size = 0.0
    probe = []
    for index in range(chunks.num_columns):
        chunk = chunks.column(index)
        column = _top_level(chunk.path_in_schema, columns)
        if column is None:
            continue
        if chunk.physical_type in _WIDTHS:
            size += chunk.num_values * _WIDTHS[chunk.physical_type] + 8 * chunks.num_rows  # 8: a large list's offset
        elif chunk.has_dictionary_page and column not in probe:
            probe.append(column)  # a long text that recurs is stored once: its size in memory is not in the footer
        else:
            size += chunk.total_uncompressed_size + 8 * chunk.num_values
    rows_share = size / chunks.num_rows
    if probe:
        first = next(parquet.iter_batches(batch_size=_PROBE_ROWS, row_groups=[group], columns=probe))
        rows_share += first.nbytes / first.num_rows
    return min(_MOST_ROWS, max(1, int(BATCH_BYTES / max(rows_share, 1))))


def _top_level(path: str, columns: list[str]) -> str | None:
    """The column wanted to which the leaf `path`, like "ids.list.element", belongs."""
    return next((column for column in columns if path == column or path.startswith(f"{column}.")), None)
