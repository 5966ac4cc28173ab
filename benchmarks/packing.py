"""Packing tokens, beside TRL's pack_dataset, and beside reading and writing the same file with nothing in between."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import brimful
from benchmarks.lengths import log_normal, token_table
from benchmarks.measure import table, take_turns
from brimful.tables.output import pack_to_folder
from brimful.tables.settings import PackSettings
from brimful.tables.sources import open_source

N_FOR_TRL = 200_000
N_FOR_FILES = 10**6


def sections() -> Iterator[list[str]]:
    """In memory beside TRL; from file to file beside pyarrow."""
    for where in ("in memory", "on disk"):
        yield beside_trl(f"200,000 sequences {where}, mean 199 tokens, max_length 512", 165, 0.7, 512, where)
        yield beside_trl(f"200,000 sequences {where}, mean 879 tokens, max_length 8192", 545, 1.0, 8192, where)
    with tempfile.TemporaryDirectory() as folder:
        yield beside_plain_copy(Path(folder))


def beside_trl(title: str, median: float, spread: float, max_length: int, where: str) -> list[str]:
    """One column of tokens; TRL with its default batches of 1,000 rows, and with ten thousand for fuller packs."""
    with tempfile.TemporaryDirectory() as folder:
        return _beside_trl(title, median, spread, max_length, Path(folder) if where == "on disk" else None)


def _beside_trl(title: str, median: float, spread: float, max_length: int, folder: Path | None) -> list[str]:
    import datasets
    import trl

    datasets.disable_progress_bars()
    lengths = log_normal(N_FOR_TRL, median, spread, max_length)
    tokens = token_table(lengths).select(["input_ids"])
    dataset = datasets.Dataset(tokens)
    if folder is not None:
        dataset.save_to_disk(folder / "tokens")
        dataset = datasets.load_from_disk(folder / "tokens")
    fingerprint = itertools.count()

    def with_trl(batch_size: int) -> int:
        # A new fingerprint each time, lest the answer come from a cache. As with brimful, the result stays where the
        # data is: in memory, or in a file beside it.
        options = {"batch_size": batch_size, "new_fingerprint": f"bench{next(fingerprint)}"}
        options["keep_in_memory"] = folder is None
        return len(trl.pack_dataset(dataset, max_length, strategy="bfd", map_kwargs=options))

    def plan_and_assign() -> int:
        return brimful.assign(brimful.plan(lengths, max_length, algorithm="lpfhp"), lengths).packs

    timings = take_turns(
        {
            "brimful pack_dataset, lpfhp": lambda: len(brimful.pack_dataset(dataset, max_length, algorithm="lpfhp")),
            "brimful pack_dataset, auto": lambda: len(brimful.pack_dataset(dataset, max_length)),
            "brimful plan + assign, lpfhp": plan_and_assign,
            "trl pack_dataset bfd, batches of 1,000": lambda: with_trl(1000),
            "trl pack_dataset bfd, batches of 10,000": lambda: with_trl(10_000),
        },
        turns=3,
    )
    return table(title, timings, "brimful pack_dataset, lpfhp", len(lengths))


def beside_plain_copy(folder: Path) -> list[str]:
    """Two columns of tokens, a million sequences: pack a Parquet file, and copy it through pyarrow."""
    import pyarrow.parquet as pq

    lengths = log_normal(N_FOR_FILES, 165, 0.7, 512)
    source = folder / "tokens.parquet"
    pq.write_table(token_table(lengths), source, row_group_size=50_000)
    outputs = itertools.count()

    def pack(form: str, algorithm: str = "lpfhp") -> int:
        settings = PackSettings(512, algorithm=algorithm)
        report = pack_to_folder(open_source([source]), settings, folder / str(next(outputs)), form)  # type: ignore[arg-type]
        return int(report.figures["packs"])

    def copy_whole() -> None:
        pq.write_table(pq.read_table(source), folder / f"{next(outputs)}.parquet")

    def copy_in_batches() -> None:
        file = pq.ParquetFile(source)
        with pq.ParquetWriter(folder / f"{next(outputs)}.parquet", file.schema_arrow) as writer:
            for batch in file.iter_batches(20_000):
                writer.write_batch(batch)

    timings = take_turns(
        {
            "brimful pack, Parquet to Parquet": lambda: pack("parquet"),
            "brimful pack, Parquet to Parquet, auto": lambda: pack("parquet", "auto"),
            "brimful pack, Parquet to Arrow": lambda: pack("arrow"),
            "pyarrow read_table + write_table": copy_whole,
            "pyarrow batch by batch": copy_in_batches,
        },
        turns=2,
    )
    megabytes = source.stat().st_size / 1e6
    title = f"{N_FOR_FILES:,} sequences × 2 columns from file to file ({megabytes:,.0f} MB of Parquet), max_length 512"
    return table(title, timings, "brimful pack, Parquet to Parquet", len(lengths))
