"""Arrow IPC files and streams (.arrow, .feather, .ipc), memory-mapped.

The two formats hold the same messages. A file ends in a footer that tells where each batch is; a stream just ends,
and its writer marks the end with eight bytes. Readers take a missing mark for an end as well, so that a stream which
was cut between two batches looks whole. Here it does not: without the mark, the last batches may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc

from brimful.errors import DataError
from brimful.tables.batches import Source, make_source, reading

_FILE_MAGIC = b"ARROW1"
_FILE_HEAD_BYTES = 8  # the magic bytes and two of padding
_FEATHER_V1_MAGIC = b"FEA1"


def arrow_source(path: Path) -> Source:
    """The rows of one Arrow IPC file or stream; which of the two it is, its first bytes tell.

    Args:
        path: a file written by pyarrow, polars, datasets or another Arrow library.

    Returns:
        A source that touches only the columns asked for; uncompressed data is mapped, not copied. `n_rows` is known
        for the file format where this pyarrow can count it (26 can), and None for a stream.

    Raises:
        DataError: not Arrow data, or damaged. When read: a stream without end mark, or with data after it.

    Cost: opening reads the headers of the batches. One record batch is the unit of reading: a compressed one is
    decompressed whole, so memory is bounded by the largest batch in the file.
    """
    name = str(path)
    with reading(name), path.open("rb") as file:
        magic = file.read(len(_FILE_MAGIC))
    if magic.startswith(_FEATHER_V1_MAGIC):
        raise DataError(f"{name}: is a Feather version 1 file, which cannot be mapped; write it again as version 2")
    with reading(name), pa.memory_map(name) as mapped:
        if magic == _FILE_MAGIC:
            file = ipc.open_file(mapped)
            n_rows = file.count_rows() if hasattr(file, "count_rows") else None  # older versions of pyarrow cannot
            return _source(name, file.schema, n_rows, _FILE_HEAD_BYTES)
        return _source(name, ipc.open_stream(mapped).schema, None, 0)


def _source(name: str, schema: pa.Schema, n_rows: int | None, start: int) -> Source:
    """A source over the stream that begins at byte `start`; in a file it lies between magic bytes and footer.

    A file is read as a stream too, because pyarrow copies batches of a mapped file when columns are left out.
    """

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        with pa.memory_map(name) as mapped:
            mapped.seek(start)
            stream = ipc.open_stream(mapped, options=_only(columns, schema))
            end_of_batch = mapped.tell()
            for batch in stream:
                end_of_batch = mapped.tell()
                batch.validate(full=True)
                yield batch
            if n_rows is None:
                _check_end(mapped, end_of_batch, name, alone=start == 0)

    return make_source(name, schema, n_rows, batches)


def _check_end(mapped: pa.MemoryMappedFile, end_of_batch: int, name: str, *, alone: bool) -> None:
    """A whole stream has its end mark after the last batch, and nothing after the mark when it is alone."""
    end, size = mapped.tell(), mapped.size()
    if end == end_of_batch:
        raise DataError(
            f"{name}: an Arrow stream must finish with its end mark, but this one stops after {size} bytes without it; "
            "rows may be missing: write it again and close the writer"
        )
    if alone and end < size:
        raise DataError(
            f"{name}: an Arrow stream must be alone in its file, but {size - end} bytes follow its end mark at byte "
            f"{end}; split joined streams into one file each"
        )


def _only(columns: list[str], schema: pa.Schema) -> ipc.IpcReadOptions:
    """Options that leave every other column untouched. (No column at all would mean all of them.)"""
    included = sorted(schema.get_field_index(column) for column in columns) or [0]
    return ipc.IpcReadOptions(included_fields=included if len(schema) else None)
