"""Where rows come from: files by their endings, folders, and what is in memory already."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from brimful.errors import DataError
from brimful.tables.arrow_ipc import arrow_source
from brimful.tables.batches import BATCH_BYTES, Source, make_source, reading
from brimful.tables.folders import files_of
from brimful.tables.jsonl import jsonl_source
from brimful.tables.parquet import parquet_source
from brimful.tables.schemas import common_schema

if TYPE_CHECKING:
    import datasets

__all__ = ["Source", "dataset_source", "open_source", "table_source"]

_KINDS = {
    "Parquet": (".parquet", ".pq"),
    "Arrow": (".arrow", ".feather", ".ipc"),
    "JSONL": tuple(
        ending + compressed for ending in (".jsonl", ".ndjson", ".json-lines") for compressed in ("", ".gz", ".zst")
    ),
}
_OPENERS: dict[str, Callable[[Path], Source]] = {
    "Parquet": parquet_source,
    "Arrow": arrow_source,
    "JSONL": jsonl_source,
}


def open_source(paths: Sequence[str | Path]) -> Source:
    """The rows of these files and folders, one after the other.

    Args:
        paths: Parquet (.parquet, .pq), Arrow (.arrow, .feather, .ipc) and JSONL (.jsonl, .ndjson, .json-lines, also
            with .gz or .zst); a folder stands for the files in it (see `files_of`), a dataset saved by Hugging Face
            datasets included.

    Returns:
        A source with the columns of the first file. Where types differ between files they meet in the wider one.

    Raises:
        DataError: a path that is missing, empty, unreadable, damaged or of no known kind; files whose columns differ.

    Example:
        >>> import pyarrow.parquet as pq, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pq.write_table(pa.table({"ids": [[1, 2], [3]]}), f"{folder}/a.parquet")
        ...     pq.write_table(pa.table({"ids": [[4]]}), f"{folder}/b.parquet")
        ...     source = open_source([folder])
        ...     source.n_rows, [batch["ids"].to_pylist() for batch in source.read(["ids"])]
        (3, [[[1, 2], [3]], [[4]]])

    Cost: opening reads the metadata of each file (of JSONL the first 16 MiB). Memory while reading is a few batches of
    16 MiB, however large the files are.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not given:
        raise DataError("there must be at least one input, but no path is given; name a file or a folder")
    files = [file for path in given for file in _files(path)]
    parts = [_open_file(file) for file in files]
    return parts[0] if len(parts) == 1 else _joined(parts)


def table_source(table: pa.Table, name: str = "table") -> Source:
    """The rows of a table in memory.

    Args:
        table: any pyarrow table.
        name: what to call it in messages.

    Example:
        >>> source = table_source(pa.table({"ids": [[1, 2], [3]], "text": ["ab", "c"]}))
        >>> source.n_rows, [batch.to_pydict() for batch in source.read(["text"])]
        (2, [{'text': ['ab', 'c']}])

    Cost: nothing is copied.
    """

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        yield from table.select(columns).to_batches()

    return make_source(name, table.schema, table.num_rows, batches)


def dataset_source(dataset: datasets.Dataset) -> Source:
    """The rows of a Hugging Face dataset in the order that it shows: select, shuffle and filter are respected.

    Args:
        dataset: a `datasets.Dataset`. Its columns are read as Arrow; a format or transform set on it plays no part.

    Raises:
        DataError: a DatasetDict or an IterableDataset, with what to do instead; anything else.

    Example:
        >>> import datasets
        >>> rows = datasets.Dataset.from_dict({"ids": [[1], [2, 2], [3]]}).select([2, 0])
        >>> [batch["ids"].to_pylist() for batch in dataset_source(rows).read(None)]
        [[[3], [1]]]

    Cost: rows in stored order are mapped, not copied; rows in another order are gathered batch by batch.
    """
    import datasets

    if isinstance(dataset, datasets.DatasetDict | datasets.IterableDatasetDict):
        splits = ", ".join(repr(split) for split in dataset)
        raise DataError(
            f"a dataset must be one split, but this {type(dataset).__name__} has {splits}; give dataset[split]"
        )
    if isinstance(dataset, datasets.IterableDataset):
        raise DataError(
            "a dataset must be readable more than once and in bounded batches, but an IterableDataset is a stream; "
            "load it without streaming=True, or save it as Parquet and give the path"
        )
    if not isinstance(dataset, datasets.Dataset):
        raise DataError(f"a dataset must be a datasets.Dataset, but this is a {type(dataset).__name__}")

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        stored = dataset.data.table.select(columns)
        if dataset._indices is None:
            yield from stored.to_batches()
            return
        row_bytes = stored.nbytes / max(1, stored.num_rows)
        step = max(1, min(1 << 16, int(BATCH_BYTES / max(1.0, row_bytes))))
        view = dataset.select_columns(columns or dataset.column_names[:1]).with_format("arrow")
        for start in range(0, len(view), step):
            yield from view[start : start + step].combine_chunks().to_batches()  # gathering leaves a chunk a row

    return make_source("dataset", dataset.data.table.schema, len(dataset), batches)


def _kind_of(path: Path) -> str | None:
    return next((kind for kind, endings in _KINDS.items() if path.name.lower().endswith(endings)), None)


def _files(path: Path) -> list[Path]:
    """The files that a path stands for: itself, or what is in the folder."""
    with reading(str(path)):
        if not path.exists():
            raise DataError(f"{path}: there is no such file or folder")
        return files_of(path, _kind_of) if path.is_dir() else [path]


def _open_file(path: Path) -> Source:
    kind = _kind_of(path)
    if kind is None:
        known = ", ".join(ending for endings in _KINDS.values() for ending in endings)
        raise DataError(f"{path}: what a file holds must show in its ending, but {path.name!r} has none of {known}")
    with reading(str(path)):
        if not path.is_file():
            raise DataError(f"{path}: must be a regular file that can be read more than once; save the data to one")
        if path.stat().st_size == 0:
            raise DataError(f"{path}: is empty (0 bytes), so it has no columns; leave it out or write it again")
    return _OPENERS[kind](path)


def _joined(parts: list[Source]) -> Source:
    """The rows of all parts in order, cast to the schema that holds them all."""
    schema = common_schema([(part.name, part.schema) for part in parts])
    counts = [part.n_rows for part in parts if part.n_rows is not None]

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        fields = pa.schema([schema.field(column) for column in columns])
        for part in parts:
            with reading(part.name):
                for batch in part.read(columns):
                    yield batch.cast(fields) if columns else batch

    n_rows = sum(counts) if len(counts) == len(parts) else None
    return make_source(f"{parts[0].name} and {len(parts) - 1} more", schema, n_rows, batches)
