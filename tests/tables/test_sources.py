"""What goes into a file comes out of its source: every format, every way of chunking, every projection."""

import json
import os

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

import brimful.tables.batches
from brimful.errors import DataError
from brimful.tables.batches import make_source
from brimful.tables.sources import dataset_source, open_source, table_source

ROWS = [
    {"ids": [1, 2, 3], "text": "é", "turns": [{"role": "user", "n": 1}]},
    {"ids": [], "text": None, "turns": []},
    {"ids": [4], "text": "2024-01-31", "turns": [{"role": "bot", "n": None}, {"role": "user", "n": 2}]},
]
SCHEMA = pa.schema(
    {
        "ids": pa.list_(pa.int64()),
        "text": pa.string(),
        "turns": pa.list_(pa.struct({"role": pa.string(), "n": pa.int64()})),
    }
)
WHOLE = pa.Table.from_pylist(ROWS * 5, schema=SCHEMA)
TABLES = {
    "plain": WHOLE,
    "sliced": WHOLE.slice(4, 7),
    "chunked": pa.concat_tables([WHOLE.slice(0, 1), WHOLE.slice(1, 0), WHOLE.slice(1)]),
    "empty": WHOLE.slice(0, 0),
    "no chunks": SCHEMA.empty_table(),
}


def write_parquet(table, path):
    pq.write_table(table, path, row_group_size=4)


def write_parquet_plain(table, path):
    pq.write_table(table, path, use_dictionary=False, compression="none")


def write_file(table, path):
    with ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def write_stream(table, path):
    with ipc.new_stream(path, table.schema) as writer:
        writer.write_batch(pa.RecordBatch.from_pylist([], schema=table.schema))
        writer.write_table(table, max_chunksize=2)


def write_compressed(table, path):
    with ipc.new_stream(path, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)


def write_jsonl(table, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")


FORMATS = {
    "a.parquet": write_parquet,
    "b.pq": write_parquet_plain,
    "a.arrow": write_file,
    "b.arrow": write_stream,
    "a.feather": write_compressed,
    "a.IPC": write_file,
    "a.jsonl": write_jsonl,
}


def rows(source, columns=None):
    return [row for batch in source.read(columns) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("file", "table"),
    [  # an empty JSONL file has no columns
        pytest.param(file, table, id=f"{file}-{name}")
        for file in FORMATS
        for name, table in TABLES.items()
        if table.num_rows or file != "a.jsonl"
    ],
)
def test_a_file_gives_back_its_rows_in_order_as_often_as_asked(tmp_path, file, table):
    FORMATS[file](table, tmp_path / file)
    source = open_source([tmp_path / file])
    assert source.schema == SCHEMA
    assert rows(source) == table.to_pylist()
    assert rows(source) == table.to_pylist()
    assert source.n_rows in (None, table.num_rows)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_table_gives_back_its_rows(table):
    source = table_source(table)
    assert (source.name, source.n_rows, source.schema) == ("table", table.num_rows, SCHEMA)
    assert rows(source) == table.to_pylist()


@pytest.mark.parametrize("file", FORMATS)
def test_columns_come_as_asked_for_and_in_that_order(tmp_path, file):
    FORMATS[file](WHOLE, tmp_path / file)
    source = open_source([tmp_path / file])
    for columns in (["text"], ["turns", "ids"], ["text", "ids", "turns"]):
        assert next(source.read(columns)).schema.names == columns
        assert rows(source, columns) == WHOLE.select(columns).to_pylist()
    assert sum(batch.num_rows for batch in source.read([])) == WHOLE.num_rows


@pytest.mark.parametrize("file", [file for file in FORMATS if file != "a.jsonl"])
def test_the_number_of_rows_is_known_before_reading_unless_a_stream_hides_it(tmp_path, file):
    FORMATS[file](WHOLE, tmp_path / file)
    counts = file.endswith((".parquet", ".pq")) or hasattr(ipc.RecordBatchFileReader, "count_rows")
    expected = 15 if counts and FORMATS[file] not in (write_stream, write_compressed) else None
    assert open_source([tmp_path / file]).n_rows == expected


def test_types_are_kept_and_metadata_dropped(tmp_path):
    field = pa.field("ids", pa.large_list(pa.uint16()), metadata={"a": "b"})
    table = pa.table([[[1], [2]]], schema=pa.schema([field], metadata={"huggingface": "{}"}))
    for file in ("a.parquet", "a.arrow"):
        FORMATS[file](table, tmp_path / file)
        source = open_source([tmp_path / file])
        assert source.schema.field("ids").type == pa.large_list(pa.uint16())
        for schema in (source.schema, next(source.read(None)).schema):
            assert schema.metadata is None
            assert schema.field("ids").metadata is None


@pytest.mark.parametrize("file", ["a.parquet", "b.pq", "a.arrow", "b.arrow"])
def test_no_batch_is_larger_than_the_bound_unless_it_is_one_row(tmp_path, monkeypatch, file):
    for module in (brimful.tables.batches, brimful.tables.parquet):
        monkeypatch.setattr(module, "BATCH_BYTES", 4000)
    lengths = [0, 3, 1, 100, 700, 1] * 50
    table = pa.table({"ids": [list(range(length)) for length in lengths], "text": ["x" * length for length in lengths]})
    FORMATS[file](table, tmp_path / file)
    for source in (open_source([tmp_path / file]), table_source(table)):
        batches = list(source.read(None))
        assert pa.Table.from_batches(batches).to_pylist() == table.to_pylist()
        assert all(batch.nbytes <= 4000 or batch.num_rows == 1 for batch in batches)
        assert len(batches) < len(lengths)


def test_a_text_that_recurs_is_weighed_by_its_size_in_memory(tmp_path):
    """20,000 copies of one text are stored once: 1 KB in the file, 200 MB in memory."""
    pq.write_table(pa.table({"text": ["x" * 10_000] * 20_000}), tmp_path / "a.parquet")
    before = pa.total_allocated_bytes()
    most = 0
    for batch in open_source([tmp_path / "a.parquet"]).read(None):
        assert batch.nbytes <= 16 << 20
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 64 << 20


def test_large_batches_in_memory_are_cut_without_copying():
    table = pa.table({"ids": np.arange(10_000_000)})
    before = pa.total_allocated_bytes()
    assert sum(batch.num_rows for batch in table_source(table).read(None)) == 10_000_000
    assert all(batch.nbytes <= 16 << 20 for batch in table_source(table).read(None))
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize("kind", [pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_buffers_that_all_rows_share_do_not_shatter_a_batch(kind):
    table = pa.table({"text": pa.array([f"{i:050d}" for i in range(500_000)], pa.string()).cast(kind)})
    batches = list(table_source(table).read(None))
    assert 1 < len(batches) < 10
    assert pa.Table.from_batches(batches) == table


def test_rows_of_many_tokens_are_decoded_a_few_at_a_time(tmp_path):
    """80 MB in one row group: cutting a batch afterwards would leave its pieces in one buffer of 80 MB."""
    ids = pa.ListArray.from_arrays(np.arange(0, 20_000_001, 1000, dtype=np.int32), np.zeros(20_000_000, np.int32))
    pq.write_table(pa.table({"ids": ids}), tmp_path / "a.parquet")
    batches = open_source([tmp_path / "a.parquet"]).read(None)
    assert all(8 << 20 < batch.get_total_buffer_size() < 32 << 20 for batch, _ in zip(batches, range(4), strict=False))


def test_one_column_of_a_mapped_file_is_read_without_copying_the_batch(tmp_path):
    table = pa.table({"wide": np.arange(4_000_000), "narrow": np.zeros(4_000_000, np.int8)})
    write_file(table, tmp_path / "a.arrow")
    before = pa.total_allocated_bytes()
    batch = next(open_source([tmp_path / "a.arrow"]).read(["narrow"]))
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert batch.schema.names == ["narrow"]


def test_one_column_of_compressed_data_is_read_without_decompressing_the_others(tmp_path):
    path = tmp_path / "a.arrow"
    write_compressed(pa.table({"bad": np.arange(1000), "good": np.arange(1000)}), path)
    frame = path.read_bytes().index(b"\x28\xb5\x2f\xfd")
    data = bytearray(path.read_bytes())
    data[frame : frame + 8] = b"\xff" * 8
    path.write_bytes(data)
    source = open_source([path])
    assert [row["good"] for row in rows(source, ["good"])] == list(range(1000))
    with pytest.raises(DataError, match=r"a\.arrow: cannot be read: [^\n]+$"):
        rows(source)


def test_a_source_that_lists_other_rows_than_it_holds_is_refused():
    source = make_source("a", SCHEMA, 16, lambda _: iter(WHOLE.to_batches()))
    with pytest.raises(DataError, match="lists 16 and holds 15; write it again"):
        rows(source)


def test_a_damaged_column_does_not_matter_to_the_others(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"bad": np.arange(1000), "good": np.arange(1000)}), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36
    path.write_bytes(data)
    source = open_source([path])
    assert [row["good"] for row in rows(source, ["good"])] == list(range(1000))
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read: [^\n]+$"):
        rows(source)


@pytest.mark.parametrize("file", [file for file in FORMATS if file != "a.jsonl"])
def test_no_file_that_was_cut_short_passes_for_a_whole_one(tmp_path, file):
    FORMATS[file](WHOLE.select(["ids", "text"]).slice(0, 4), tmp_path / file)
    data = (tmp_path / file).read_bytes()
    for size in range(len(data)):
        (tmp_path / file).write_bytes(data[:size])
        with pytest.raises(DataError) as caught:
            rows(open_source([tmp_path / file]))
        assert str(caught.value).startswith(f"{tmp_path / file}: ")
        assert "\n" not in str(caught.value)


def test_a_stream_without_end_mark_or_with_a_second_stream_is_refused(tmp_path):
    write_stream(WHOLE, tmp_path / "b.arrow")
    data = (tmp_path / "b.arrow").read_bytes()
    (tmp_path / "b.arrow").write_bytes(data[:-8])
    with pytest.raises(DataError, match=r"stops after \d+ bytes without it; rows may be missing"):
        rows(open_source([tmp_path / "b.arrow"]))
    (tmp_path / "b.arrow").write_bytes(data + data)
    with pytest.raises(DataError, match=rf"{len(data)} bytes follow its end mark .* split joined streams"):
        rows(open_source([tmp_path / "b.arrow"]))


@pytest.mark.parametrize("file", ["a.parquet", "a.arrow", "b.arrow"])
def test_a_flipped_byte_ends_in_an_error_or_in_rows_never_in_a_crash(tmp_path, file):
    FORMATS[file](WHOLE.select(["ids", "text"]).slice(0, 3), tmp_path / file)
    data = (tmp_path / file).read_bytes()
    refused = 0
    for place in range(0, len(data), 3):
        (tmp_path / file).write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            rows(open_source([tmp_path / file]))
        except DataError:
            refused += 1
    assert refused > len(data) / 12


@pytest.mark.parametrize("file", ["a.parquet", "a.arrow", "a.feather"])
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, file):
    (tmp_path / file).write_text("id,text\n" + "1,hello\n" * 100, encoding="utf-8")
    with pytest.raises(DataError, match=rf"{file}: (is no Parquet file|cannot be read)"):
        open_source([tmp_path / file])


def test_an_unknown_column_is_refused_with_the_columns_there_are():
    source = table_source(pa.table({"input_ids": [1], "text": ["a"]}), name="corpus")
    source.require("text")
    expected = (
        r"corpus: there is no column 'input_id' \(did you mean 'input_ids'\?\); its columns are: 'input_ids', 'text'"
    )
    with pytest.raises(DataError, match=expected):
        source.require("input_id")
    with pytest.raises(DataError, match=expected):
        source.read(["input_id"])


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(DataError, match="'a' stands for several columns; rename them"):
        table_source(pa.table([[1], [2]], names=["a", "a"]))


def test_column_names_with_dots_are_not_paths(tmp_path):
    pq.write_table(pa.table({"a": [1], "a.b": [2], "c": [{"b": 3}]}), tmp_path / "a.parquet")
    source = open_source([tmp_path / "a.parquet"])
    assert rows(source, ["a"]) == [{"a": 1}]
    assert rows(source, ["a.b"]) == [{"a.b": 2}]
    assert rows(source, ["c"]) == [{"c": {"b": 3}}]


def test_paths_that_cannot_be_read_are_refused_in_one_line(tmp_path):
    (tmp_path / "table.csv").write_text("a", encoding="utf-8")
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "folder.parquet").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    for path, message in {
        "none.parquet": "there is no such file or folder",
        "table.csv": r"must show in its ending, but 'table.csv' has none of \.parquet, .*\.jsonl\.zst",
        "empty.parquet": r"is empty \(0 bytes\)",
        "folder.parquet": "holds no Parquet, Arrow or JSONL file",
        "pipe.jsonl": "must be a regular file",
    }.items():
        with pytest.raises(DataError, match=rf"{path}: .*{message}"):
            open_source([tmp_path / path])
    with pytest.raises(DataError, match="at least one input"):
        open_source([])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path):
    write_parquet(WHOLE, tmp_path / "a.parquet")
    (tmp_path / "a.parquet").chmod(0)
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read: Permission denied"):
        open_source([tmp_path / "a.parquet"])


def test_one_path_may_be_given_without_a_list(tmp_path):
    write_parquet(WHOLE, tmp_path / "a.parquet")
    assert rows(open_source(str(tmp_path / "a.parquet"))) == WHOLE.to_pylist()


def test_several_files_follow_one_another_and_their_types_meet(tmp_path):
    pq.write_table(
        pa.table({"ids": pa.array([[1]], pa.list_(pa.int32())), "note": pa.nulls(1)}), tmp_path / "a.parquet"
    )
    other = pa.table({"note": pa.array(["x"], pa.string_view()), "ids": pa.array([[2**40]], pa.large_list(pa.int64()))})
    write_file(other, tmp_path / "b.arrow")
    (tmp_path / "c.jsonl").write_text('{"note": "y", "ids": []}\n{"ids": [4]}', encoding="utf-8")
    paths = [tmp_path / "a.parquet", tmp_path / "b.arrow"]
    source = open_source(paths)
    assert source.schema == pa.schema({"ids": pa.large_list(pa.int64()), "note": pa.string_view()})
    source = open_source([*paths, tmp_path / "c.jsonl"])
    assert source.n_rows is None
    assert source.schema == pa.schema({"ids": pa.large_list(pa.int64()), "note": pa.large_string()})
    assert rows(source) == [
        {"ids": [1], "note": None},
        {"ids": [2**40], "note": "x"},
        {"ids": [], "note": "y"},
        {"ids": [4], "note": None},
    ]
    assert rows(source, ["note"]) == [{"note": note} for note in (None, "x", "y", None)]
    assert {batch.schema for batch in source.read(["ids"])} == {pa.schema({"ids": pa.large_list(pa.int64())})}


def test_files_whose_columns_differ_are_refused_by_file_and_column(tmp_path):
    for name, table in {
        "ids": pa.table({"ids": [1]}),
        "both": pa.table({"ids": [1], "text": ["a"]}),
        "text": pa.table({"ids": ["1"]}),
    }.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match=r"'text' is in .*both\.parquet and not in .*ids\.parquet"):
        open_source([tmp_path / "ids.parquet", tmp_path / "both.parquet"])
    with pytest.raises(DataError, match=r"'ids' is int64 in .*ids\.parquet and string in .*text\.parquet"):
        open_source([tmp_path / "ids.parquet", tmp_path / "text.parquet"])


def test_a_folder_is_its_files_by_path_without_hidden_and_unfinished_ones(tmp_path):
    for name, value in {"b.parquet": 2, "a/z.pq": 1, ".hid/x.parquet": 9, "_tmp/y.parquet": 9, "_c.parquet": 9}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"v": [value]}), tmp_path / name)
    (tmp_path / "README.md").write_text("words", encoding="utf-8")
    assert open_source([tmp_path]).n_rows == 2
    assert rows(open_source([tmp_path])) == [{"v": 1}, {"v": 2}]
    (tmp_path / "c.jsonl").write_text('{"v": 3}', encoding="utf-8")
    with pytest.raises(DataError, match=r"one kind, but there are Parquet \(a/z\.pq\), JSONL \(c\.jsonl\)"):
        open_source([tmp_path])


def test_a_folder_written_by_brimful_is_its_shards(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "brimful.json").write_text("{}", encoding="utf-8")
    write_parquet(WHOLE, tmp_path / "data" / "part-0.parquet")
    write_parquet(WHOLE, tmp_path / "other.parquet")
    assert rows(open_source([tmp_path])) == WHOLE.to_pylist()


def test_a_saved_hugging_face_dataset_is_the_files_of_its_state_in_that_order(tmp_path):
    dataset = datasets.Dataset.from_dict({"ids": [[i] for i in range(30)]}).shuffle(seed=0)
    dataset.save_to_disk(tmp_path / "d", num_shards=3)
    write_stream(pa.table({"indices": [1]}), tmp_path / "d" / "cache-1.arrow")
    assert rows(open_source([tmp_path / "d"])) == dataset.to_list()
    state = json.loads((tmp_path / "d" / "state.json").read_text(encoding="utf-8"))
    state["_data_files"].reverse()
    (tmp_path / "d" / "state.json").write_text(json.dumps(state), encoding="utf-8")
    expected = [dataset[row] for part in (20, 10, 0) for row in range(part, part + 10)]
    assert rows(open_source([tmp_path / "d"])) == expected
    state["_indices_files"] = [{"filename": "indices.arrow"}]
    (tmp_path / "d" / "state.json").write_text(json.dumps(state), encoding="utf-8")
    with pytest.raises(DataError, match=r"indices mapping; call dataset\.flatten_indices\(\) and save it again"):
        open_source([tmp_path / "d"])
    for broken in ("[", "[]", "{}", '{"_data_files": [1]}'):
        (tmp_path / "d" / "state.json").write_text(broken, encoding="utf-8")
        with pytest.raises(DataError, match=r"state\.json.* save the dataset again"):
            open_source([tmp_path / "d"])


def test_a_saved_dataset_dict_is_refused_with_the_paths_of_its_splits(tmp_path):
    dataset = datasets.Dataset.from_dict({"ids": [[1]]})
    datasets.DatasetDict(train=dataset, test=dataset).save_to_disk(tmp_path / "d")
    with pytest.raises(DataError, match=r"splits train, test; give one of them: .*/d/train or .*/d/test"):
        open_source([tmp_path / "d"])
    assert rows(open_source([tmp_path / "d" / "train"])) == [{"ids": [1]}]


DATASET = datasets.Dataset.from_dict({"ids": [[i] * (i % 4) for i in range(100)], "text": [str(i) for i in range(100)]})
DATASETS = {
    "plain": DATASET,
    "shuffled": DATASET.shuffle(seed=1),
    "selected": DATASET.select([5, 3, 3]),
    "range": DATASET.select(range(10, 20)),
    "none": DATASET.select([]),
    "removed": DATASET.shuffle(seed=1).remove_columns("text"),
    "formatted": DATASET.with_format("numpy", columns=["ids"]),
    "joined": datasets.concatenate_datasets([DATASET, DATASET.shuffle(seed=3)]),
}


@pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
def test_a_dataset_gives_its_rows_in_the_order_that_it_shows(dataset):
    source = dataset_source(dataset)
    expected = dataset.with_format(None).to_list()
    assert source.n_rows == len(expected)
    assert rows(source) == expected
    assert rows(source, ["ids"]) == [{"ids": row["ids"]} for row in expected]
    assert sum(batch.num_rows for batch in source.read([])) == len(expected)


def test_what_is_no_single_dataset_is_refused_with_what_to_do():
    with pytest.raises(DataError, match=r"DatasetDict has 'train', 'test'; give dataset\[split\]"):
        dataset_source(datasets.DatasetDict(train=DATASET, test=DATASET))
    with pytest.raises(DataError, match="IterableDataset is a stream; load it without streaming=True"):
        dataset_source(DATASET.to_iterable_dataset())
    with pytest.raises(DataError, match=r"must be a datasets\.Dataset, but this is a list"):
        dataset_source([1, 2])
