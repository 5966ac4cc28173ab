"""A small dataset in every format, and a way to run the command."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from brimful.cli import main


@dataclass(frozen=True)
class Ended:
    """How a run ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def json(self):
        """The one object on standard output."""
        assert self.status in {0, 1}, self.err
        lines = self.out.splitlines()
        assert len(lines) == 1, "one JSON object and nothing else"
        return json.loads(lines[0])

    @property
    def error(self) -> str:
        """The one line of a refusal."""
        assert self.status == 2, (self.status, self.out, self.err)
        assert self.out == ""
        assert self.err.startswith("error: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, "one line, and no traceback"
        return self.err.removeprefix("error: ").strip()


@pytest.fixture
def run(capsys) -> Callable[..., Ended]:
    """Run `brimful` with these words."""

    def run(*words) -> Ended:
        capsys.readouterr()
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return Ended(status, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def table() -> pa.Table:
    """200 rows of 1 to 60 tokens, with labels and a name each; lengths 1 to 60 in no order."""
    lengths = np.random.default_rng(3).integers(1, 61, 200)
    ids = [list(range(number, number + length)) for number, length in enumerate(lengths.tolist())]
    return pa.table(
        {
            "input_ids": ids,
            "labels": [[-token for token in row] for row in ids],
            "name": [f"row {i}" for i in range(200)],
        }
    )


def write_jsonl(table: pa.Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()


@pytest.fixture(scope="session")
def files(table, tmp_path_factory) -> dict[str, Path]:
    """The table in each format."""
    folder = tmp_path_factory.mktemp("inputs")
    paths = {name: folder / f"rows.{name}" for name in ("parquet", "arrow", "jsonl", "jsonl.gz")}
    pq.write_table(table, paths["parquet"])
    with ipc.new_file(paths["arrow"], table.schema) as writer:
        writer.write_table(table)
    paths["jsonl"].write_bytes(write_jsonl(table))
    paths["jsonl.gz"].write_bytes(gzip.compress(write_jsonl(table)))
    paths["text"] = folder / "text.jsonl"
    paths["text"].write_text('{"text": "héllo"}\n{"text": "a longer line"}\n{"text": ""}\n')
    paths["histogram"] = folder / "lengths.csv"
    paths["histogram"].write_text("length,count\n2,10\n7,3\n60,4\n")
    return paths


@pytest.fixture(scope="session")
def parquet(files: dict[str, Path]) -> Path:
    return files["parquet"]


FORMATS = ("parquet", "arrow", "jsonl", "jsonl.gz")

FIGURES = {
    "algorithm",
    "max_length",
    "max_sequences",
    "sequences",
    "tokens",
    "packs",
    "efficiency",
    "packing_factor",
    "speedup_limit",
    "align",
    "aligned_tokens",
    "lower_bound",
    "gap",
    "seconds",
}
"""The keys that figures carry by the contract of the command line."""
