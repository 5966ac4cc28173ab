"""A folder of shards with its manifest, which appears complete or not at all."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import brimful
from brimful.errors import OutputError, SettingError, shown
from brimful.tables.background import BackgroundWriter
from brimful.tables.batches import Source
from brimful.tables.manifest import FORMAT, MANIFEST, VERSION, Shard
from brimful.tables.report import PackReport, ReportBuilder
from brimful.tables.sequences import no_progress
from brimful.tables.settings import PackSettings
from brimful.tables.windows import packed_windows

Format: TypeAlias = Literal["parquet", "arrow"]

_SHARD_BYTES = 2**29


def pack_to_folder(
    source: Source,
    settings: PackSettings,
    folder: str | Path,
    format: Format = "parquet",  # noqa: A002
    shard_bytes: int = _SHARD_BYTES,
    progress: Callable[[int], None] = no_progress,
) -> PackReport:
    """Pack a source into a folder that `datasets` loads.

        parquet   FOLDER/data/train-00000-of-00002.parquet …   datasets.load_dataset("FOLDER")
        arrow     FOLDER/data-00000-of-00002.arrow …           datasets.load_from_disk("FOLDER")
        both      FOLDER/brimful.json                          figures, ledger, settings, versions, shards, plan

    The plan is left out of the manifest (null) when the report has none.

    Args:
        source: the rows.
        settings: how to pack them.
        folder: must not exist; its parent folders are made. It appears when everything is written, or never.
        format: "parquet" or "arrow".
        shard_bytes: what a shard weighs in memory, about; ≥ 1.
        progress: called with the number of rows that each batch brought.

    Returns:
        Figures, ledger, and the plan.

    Raises:
        OutputError: the folder exists, or cannot be written; nothing is left behind.
        SettingError: an unknown format.
        BrimfulError: what `packed_windows` raises.

    Cost: each token is read once, copied once or twice, written once; memory for about three windows.
    """
    if format not in get_args(Format):
        raise SettingError(f"format is one of {', '.join(get_args(Format))}, not {shown(format)}")
    with complete_or_nothing(Path(folder)) as partial:
        schema, windows = packed_windows(source, settings, progress)
        builder = ReportBuilder(settings)
        with ShardWriter(partial, schema, settings.token_column, format, shard_bytes) as shards:
            for batch in builder.batches(windows):
                shards.write(batch)
        report = builder.report()
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "input": source.name,
            "settings": asdict(settings),
            **report.to_json(),
            "shards": [asdict(shard) for shard in shards.finished],
            "versions": {
                "brimful": brimful.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "pyarrow": pa.__version__,
            },
            "plan": None if report.plan is None else report.plan.to_json(),
        }
        (partial / MANIFEST).write_text(json.dumps(manifest) + "\n", encoding="utf-8")
    return report


@contextlib.contextmanager
def complete_or_nothing(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which gets its name when the block ends well and vanishes when it does not.

    Raises:
        OutputError: the folder exists already, or the system refuses to write.
    """
    if folder.exists() or folder.is_symlink():
        raise OutputError(f"{folder}: exists already; choose another output folder, or remove this one")
    there = next(parent for parent in folder.absolute().parents if parent.exists())
    partial = there / f".{folder.name}-partial-{uuid.uuid4().hex[:8]}"
    try:
        partial.mkdir()
        yield partial
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(folder)
    except OSError as fault:
        raise OutputError(f"{folder}: cannot be written ({fault.strerror or fault})") from fault
    finally:
        shutil.rmtree(partial, ignore_errors=True)


class ShardWriter:
    """Writes record batches into numbered files of about equal size."""

    def __init__(self, folder: Path, schema: pa.Schema, tokens: str, format: Format, shard_bytes: int) -> None:  # noqa: A002
        self._folder, self._schema, self._tokens, self._format = folder, schema, tokens, format
        self._shard_bytes = shard_bytes
        self._file: BackgroundWriter | None = None
        self._rows = self._shard_tokens = self._bytes = 0
        self._sizes: list[tuple[int, int]] = []
        self.finished: list[Shard] = []

    def __enter__(self) -> Self:
        return self

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows to the current shard, or to a new one if it is full."""
        if self._file is None or self._bytes >= self._shard_bytes:
            self._close()
            self._file = self._open()
        self._file.write(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        self._shard_tokens += len(batch.column(self._tokens).flatten())

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with contextlib.suppress(Exception):  # the first fault is the one to report
                self._close()
            return
        if self._file is None and not self._sizes:
            self._file = self._open()
        self._close()
        self._name_shards()

    def _open(self) -> BackgroundWriter:
        path = self._folder / f"{len(self._sizes)}.partial"
        self._rows = self._shard_tokens = self._bytes = 0
        if self._format == "parquet":
            return BackgroundWriter(pq.ParquetWriter(path, self._schema))
        return BackgroundWriter(pa.ipc.new_stream(path, self._schema))

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._sizes.append((self._rows, self._shard_tokens))
            self._file = None

    def _name_shards(self) -> None:
        """The final names tell how many shards there are; for Arrow, also write what load_from_disk looks for."""
        stem = "data/train" if self._format == "parquet" else "data"
        for number, (rows, tokens) in enumerate(self._sizes):
            name = f"{stem}-{number:05}-of-{len(self._sizes):05}.{self._format}"
            (self._folder / name).parent.mkdir(exist_ok=True)
            (self._folder / f"{number}.partial").rename(self._folder / name)
            self.finished.append(Shard(name, rows, tokens))
        if self._format == "arrow":
            state: dict[str, object] = {
                "_data_files": [{"filename": shard.path} for shard in self.finished],
                "_fingerprint": uuid.uuid4().hex[:16],
                "_format_columns": None,
                "_format_kwargs": {},
                "_format_type": None,
                "_output_all_columns": False,
                "_split": None,
            }
            (self._folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
            (self._folder / "dataset_info.json").write_text("{}", encoding="utf-8")
