"""pack_to_folder: shards that datasets loads, a manifest that tells the truth, and never half a folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest

import brimful
from brimful import CapacityError, LengthHistogram, OutputError, PackPlan, SettingError
from brimful.tables.output import ShardWriter, pack_to_folder
from brimful.tables.report import ReportBuilder
from brimful.tables.settings import PackSettings
from brimful.tables.sources import open_source, table_source
from brimful.tables.windows import packed_windows
from tests.tables.packed_rows import check_rows, same_multiset, sequences_of

ROWS = [[n] * (n % 7 + 1) for n in range(200)]
TABLE = pa.table({"input_ids": pa.array(ROWS, pa.list_(pa.int32()))})


def load(folder, form):
    if form == "parquet":
        return datasets.load_dataset(str(folder), split="train", cache_dir=str(folder.parent / "cache"))
    return datasets.load_from_disk(str(folder))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("shard_bytes", [1, 2**20])
def test_datasets_loads_what_was_packed(tmp_path, form, shard_bytes):
    settings = PackSettings(20, window_tokens=100)
    report = pack_to_folder(table_source(TABLE), settings, tmp_path / "out", form, shard_bytes)
    loaded = load(tmp_path / "out", form).with_format("arrow")[:]
    check_rows(loaded, 20)
    assert same_multiset([piece[0] for piece in sequences_of(loaded)], [tuple(row) for row in ROWS])
    assert loaded.num_rows == report.figures["packs"]
    assert (len(list((tmp_path / "out").rglob(f"*.{form}"))) > 1) == (shard_bytes == 1)


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_no_rows_still_make_a_shard_with_all_columns(tmp_path, form):
    pack_to_folder(table_source(TABLE.slice(0, 0)), PackSettings(20), tmp_path / "out", form)
    source = open_source([tmp_path / "out"])
    assert source.schema.names == ["input_ids", "seq_lengths"]
    assert list(source.read(None)) == []


def test_the_manifest_holds_plan_ledger_settings_versions_and_shards(tmp_path):
    settings = PackSettings(20, max_sequences=5, overflow="truncate", seed=3, window_tokens=150)
    report = pack_to_folder(table_source(TABLE), settings, tmp_path / "out", shard_bytes=1)
    manifest = json.loads((tmp_path / "out" / "brimful.json").read_text())
    assert PackPlan.from_json(manifest["plan"]) == report.plan
    assert manifest["figures"] == report.figures
    assert manifest["ledger"]["tokens_read"] == sum(map(len, ROWS))
    assert PackSettings(**{**manifest["settings"], "keep_columns": (), "drop_columns": ()}) == settings
    assert manifest["versions"]["brimful"] == brimful.__version__
    found = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.parquet"))
    assert [shard["path"] for shard in manifest["shards"]] == found
    assert sum(shard["rows"] for shard in manifest["shards"]) == report.figures["packs"]
    assert sum(shard["tokens"] for shard in manifest["shards"]) == report.ledger.tokens_packed


def test_a_plan_too_large_for_the_manifest_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("brimful.tables.report._MOST_PATTERNS", 2)
    pack_to_folder(table_source(TABLE), PackSettings(20), tmp_path / "out")
    assert json.loads((tmp_path / "out" / "brimful.json").read_text())["plan"] is None


def test_many_windows_add_up_to_one_plan_however_their_patterns_are_merged(monkeypatch):
    """The plan of all windows covers what all windows packed; past the limit figures stay and the plan is left out."""
    rng = np.random.default_rng(0)
    rows = [[0] * length for length in rng.integers(1, 60, 3000).tolist()]
    source = table_source(pa.table({"input_ids": pa.array(rows, pa.list_(pa.int8()))}))
    settings = PackSettings(100, window_tokens=1000)

    def report():
        builder = ReportBuilder(settings)
        for _ in builder.batches(packed_windows(source, settings)[1]):
            pass
        return builder.report()

    whole = report()
    assert whole.plan is not None
    assert whole.windows > 50
    assert whole.plan.histogram == LengthHistogram.from_lengths([len(row) for row in rows])
    assert whole.plan.figures() == whole.figures
    monkeypatch.setattr("brimful.tables.report._MOST_PATTERNS", 100)
    without = report()
    assert without.plan is None
    assert {**without.figures, "seconds": 0} == {**whole.figures, "seconds": 0}


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(SettingError, match="format is one of parquet, arrow, not 'csv'"):
        pack_to_folder(table_source(TABLE), PackSettings(20), tmp_path / "out", "csv")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_exists_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("precious")
    with pytest.raises(OutputError, match=r"out: exists already; choose another"):
        pack_to_folder(table_source(TABLE), PackSettings(20), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out" / "mine").read_text() == "precious"


def test_a_file_where_a_folder_should_be_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("precious")
    with pytest.raises(OutputError, match="cannot be written"):
        pack_to_folder(table_source(TABLE), PackSettings(20), tmp_path / "file" / "out")


@pytest.mark.parametrize("window_tokens", [None, 50])
def test_when_packing_fails_nothing_is_left_behind(tmp_path, window_tokens):
    table = pa.concat_tables([TABLE, pa.table({"input_ids": pa.array([[0] * 21], pa.list_(pa.int32()))})])
    with pytest.raises(CapacityError, match="row 200"):
        pack_to_folder(table_source(table), PackSettings(20, window_tokens=window_tokens), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_when_writing_fails_nothing_is_left_behind(tmp_path, monkeypatch):
    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ShardWriter, "write", no_space)
    with pytest.raises(OutputError, match="No space left on device"):
        pack_to_folder(table_source(TABLE), PackSettings(20), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_fault_in_the_writing_thread_is_raised_and_leaves_nothing(tmp_path, monkeypatch):
    class Broken:
        def __init__(self, *_):
            pass

        def write(self, _):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr("brimful.tables.output.pq.ParquetWriter", Broken)
    with pytest.raises(OutputError, match="No space left on device"):
        pack_to_folder(table_source(TABLE), PackSettings(20, window_tokens=50), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


PEAK = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from brimful.tables.output import pack_to_folder
from brimful.tables.report import ReportBuilder
from brimful.tables.sources import open_source
from brimful.tables.settings import PackSettings
from brimful.tables.windows import packed_windows
path, groups = sys.argv[1], int(sys.argv[2])
offsets = pa.array(np.arange(0, 2**22 + 1, 128), pa.int32())
lists = pa.ListArray.from_arrays(offsets, pa.array(np.arange(2**22) % 30000, pa.int32()))
batch = pa.record_batch({"input_ids": lists, "labels": lists})
with pq.ParquetWriter(path, batch.schema) as writer:
    for _ in range(groups):
        writer.write_batch(batch)
pack_to_folder(open_source([path]), PackSettings(4096), path + ".packed")
# Not ru_maxrss: a child starts with that of its parent.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]) * 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of one process")
def test_peak_memory_does_not_grow_with_the_input_and_stays_well_below_a_gigabyte(tmp_path):
    """32 MiB per group in memory: 8 groups are one window, 40 groups (1.3 GB) are ten."""

    def peak(groups):
        path = tmp_path / f"{groups}.parquet"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", PEAK, str(path), str(groups)], check=True, capture_output=True, env=environment
        )
        return int(done.stdout)

    small, large = peak(8), peak(40)
    assert large < 700 * 2**20
    assert large < small + 200 * 2**20


def test_token_offsets_beyond_32_bits_do_not_overflow():
    """Rows of a million zeros up to token 2^31 + 2^20: untouched pages of a virtual array cost no memory."""
    offsets = np.arange(0, 2**31 + 2**20 + 1, 2**20, dtype=np.int64)
    rows = pa.LargeListArray.from_arrays(offsets, pa.array(np.zeros(offsets[-1], np.int8)))
    _, windows = packed_windows(table_source(pa.table({"input_ids": rows})), PackSettings(2**21))
    packs = [len(row) for window in windows for batch in window.batches for row in batch["input_ids"]]
    assert sum(packs) == offsets[-1]
    assert len(packs) == 1025
