"""Rows of a group share a pack, in their order, through windows, batches and files; a torn group is found."""

import json
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import CapacityError, DataError, SettingError, pack_dataset, packing_report
from brimful.tables.batches import Source
from brimful.tables.check import check_packed
from brimful.tables.output import pack_to_folder
from brimful.tables.same_sequences import same_sequences
from brimful.tables.settings import PackSettings
from brimful.tables.sources import table_source
from brimful.tables.windows import packed_windows


def table_of(groups, chunk=None):
    """A table with a row of distinct tokens for each length of each group."""
    rows, pairs, token = [], [], 0
    for number, lengths in enumerate(groups):
        for length in lengths:
            rows.append(list(range(token, token + length)))
            pairs.append(f"pair {number}")
            token += length
    table = pa.table({"input_ids": pa.array(rows, pa.list_(pa.int32())), "pair": pa.array(pairs, pa.string())})
    if not chunk or not len(table):
        return table
    return pa.concat_tables([table.slice(at, chunk) for at in range(0, len(table), chunk)])


def groups_in(packed):
    """The token lists of each group, by pack: cut by seq_lengths, told apart by the kept column."""
    found = []
    for row in packed.to_pylist():
        at, pieces = 0, []
        for length, pair in zip(row["seq_lengths"], row["pair"], strict=True):
            pieces.append((pair, row["input_ids"][at : at + length]))
            at += length
        found += [
            (pair, [tokens for _, tokens in members]) for pair, members in groupby(pieces, lambda piece: piece[0])
        ]
    return found


groups_of_lengths = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), max_size=25)


@given(
    groups=groups_of_lengths,
    align=st.sampled_from([1, 4]),
    window_tokens=st.sampled_from([None, 1, 30]),
    chunk=st.sampled_from([None, 1, 2, 7]),
    algorithm=st.sampled_from(["auto", "next_fit", "optimal"]),
)
@settings(deadline=None)
def test_every_group_is_whole_and_in_order(groups, align, window_tokens, chunk, algorithm):
    table = table_of(groups, chunk)
    packed = pack_dataset(table, 32, algorithm=algorithm, align=align, group_column="pair", window_tokens=window_tokens)
    expected = [(f"pair {n}", [row["input_ids"] for row in rows]) for n, rows in _by_pair(table)]
    assert sorted(groups_in(packed)) == sorted(expected)
    for lengths in packed["seq_lengths"].to_pylist():
        assert sum(-(-length // align) * align for length in lengths) <= 32
    figures = packing_report(packed)["figures"]
    assert figures["lower_bound"] <= figures["packs"] == packed.num_rows
    assert figures["sequences"] == sum(map(len, groups))


def _by_pair(table):
    for number, (_, rows) in enumerate(groupby(table.to_pylist(), lambda row: row["pair"])):
        yield number, list(rows)


def test_the_bound_knows_of_groups():
    figures = packing_report(pack_dataset(table_of([[3, 3]] * 4), 10, group_column="pair"))["figures"]
    assert (figures["packs"], figures["lower_bound"]) == (4, 4)


@pytest.mark.parametrize("ids", [pa.array([5, 5, 6]), pa.array(["a", "a", "b"]).dictionary_encode()])
def test_groups_are_told_apart_by_numbers_or_texts(ids):
    table = pa.table({"input_ids": [[1], [2, 2], [3]], "pair": ids})
    packed = pack_dataset(table, 3, group_column="pair")
    assert sorted(packed["seq_lengths"].to_pylist()) == [[1], [1, 2]]


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    table = table_of([random.integers(1, 6, random.integers(1, 4)).tolist() for _ in range(200)])
    settings = PackSettings(32, align=4, group_column="pair", window_tokens=300)
    pack_to_folder(table_source(table), settings, tmp_path / "packed", shard_bytes=2000)
    return table, tmp_path / "packed"


def test_a_packed_folder_passes_its_checks(folder):
    table, path = folder
    assert [check for check in check_packed(path) if not check.passed] == []
    assert same_sequences(table_source(table), path).passed


def test_a_torn_group_is_found(folder):
    table, path = folder
    shard = min(path.rglob("*.parquet"))
    rows = pq.read_table(shard).to_pylist()
    torn = next(row for row in rows if len(set(row["pair"])) > 1 and row["pair"][0] == row["pair"][1])
    length = torn["seq_lengths"][0]  # the first sequence of a group goes to the end of its pack
    for name, first in (("input_ids", length), ("seq_lengths", 1), ("pair", 1)):
        torn[name] = torn[name][first:] + torn[name][:first]
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(shard)), shard)
    assert not same_sequences(table_source(table), path).passed


def test_a_pack_that_only_alignment_overfills_is_found(folder):
    _, path = folder
    manifest = json.loads((path / "brimful.json").read_text())
    manifest["settings"]["align"] = 16
    (path / "brimful.json").write_text(json.dumps(manifest))
    assert "token slots, more than 32" in next(c.detail for c in check_packed(path) if c.name == "max_length")


def test_a_group_too_long_is_named_or_dropped_whole():
    table = table_of([[2, 2], [6, 5], [3]])
    with pytest.raises(CapacityError, match=r"the group of rows 2 to 3 \(the first is 0\) needs 11 token slots, more"):
        pack_dataset(table, 10, group_column="pair")
    packed = pack_dataset(table, 10, group_column="pair", overflow="drop")
    assert sorted(pair for pair, _ in groups_in(packed)) == ["pair 0", "pair 2"]
    ledger = packing_report(packed)["ledger"]
    assert (ledger["rows_dropped"], ledger["tokens_dropped"], ledger["sequences_packed"]) == (2, 11, 3)


@given(
    groups=groups_of_lengths,
    chunk=st.sampled_from([None, 1, 2]),
    window_tokens=st.sampled_from([None, 5]),
    most=st.integers(1, 9),
)
@settings(deadline=None)
def test_groups_too_long_are_dropped_wherever_they_stand(groups, chunk, window_tokens, most):
    table = table_of(groups, chunk)
    packed = pack_dataset(table, most, group_column="pair", overflow="drop", window_tokens=window_tokens)
    kept = [number for number, lengths in enumerate(groups) if sum(lengths) <= most]
    assert sorted(pair for pair, _ in groups_in(packed)) == sorted(f"pair {number}" for number in kept)
    ledger = packing_report(packed)["ledger"]
    assert ledger["rows_dropped"] == sum(len(lengths) for lengths in groups if sum(lengths) > most)


def test_a_group_without_end_is_refused_before_it_is_read():
    read = []

    def batches(_):
        for number in range(1000):
            read.append(number)
            yield pa.record_batch({"input_ids": [[1] * 8] * 10, "pair": ["a"] * 10})

    schema = pa.schema({"input_ids": pa.list_(pa.int64()), "pair": pa.string()})
    _, windows = packed_windows(Source("endless", schema, None, batches), PackSettings(100, group_column="pair"))
    with pytest.raises(CapacityError, match="endless: the group of rows 0 to 19"):
        list(windows)
    assert len(read) < 5


def test_dictionaries_of_several_files_need_not_fit_into_one():
    tables = [
        pa.table(
            {"input_ids": [[1]] * 200, "pair": pa.array([f"{part} {n // 2}" for n in range(200)]).dictionary_encode()}
        )
        for part in range(2)
    ]
    narrow = pa.dictionary(pa.int8(), pa.string())
    table = pa.concat_tables([each.set_column(1, "pair", each["pair"].cast(narrow)) for each in tables])
    packed = pack_dataset(table, 16, group_column="pair")
    assert sorted(pair for row in packed["pair"].to_pylist() for pair in row) == sorted(table["pair"].to_pylist())


def test_a_dictionary_may_hold_a_value_twice():
    column = pa.DictionaryArray.from_arrays([0, 2, 2, 1], ["a", "a", "b"])
    with pytest.raises(DataError, match="table: column 'pair': the rows of group 'a' stand apart"):
        pack_dataset(pa.table({"input_ids": [[1]] * 4, "pair": column}), 2, group_column="pair")


@pytest.mark.parametrize(
    "names", [{"group_column": 5}, {"keep_columns": [1]}, {"keep_columns": None}, {"token_column": None}]
)
def test_names_of_columns_are_text(names):
    with pytest.raises(SettingError, match="column"):
        pack_dataset(table_of([[1]]), 10, **names)


def test_a_ledger_that_is_not_that_of_the_input_is_found(folder):
    table, path = folder
    manifest = json.loads((path / "brimful.json").read_text())
    manifest["ledger"]["rows_read"] += 1
    (path / "brimful.json").write_text(json.dumps(manifest))
    check = same_sequences(table_source(table), path)
    assert not check.passed
    assert check.detail.startswith("the ledger says rows_read")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_sequences": 4}, "max_sequences does not go with groups"),
        ({"overflow": "split"}, "overflow 'split' would cut groups"),
        ({"overflow": "truncate"}, "overflow 'truncate' would cut groups"),
    ],
)
def test_settings_at_odds_with_groups(settings, message):
    with pytest.raises(SettingError, match=message):
        pack_dataset(table_of([[1]]), 10, group_column="pair", **settings)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["a", None, "b"]), r"column 'pair': row 1 \(the first is 0\) is null, so it has no group"),
        (pa.array([0.5, 0.5, 1.0]), "column 'pair' holds double; groups are told apart by whole numbers or texts"),
        (pa.array(["a", "b", "a"]), "column 'pair': the rows of group 'a' stand apart"),
    ],
)
def test_columns_that_do_not_tell_groups_apart(column, message):
    table = pa.table({"input_ids": [[1], [2], [3]], "pair": column})
    with pytest.raises(DataError, match=message):
        pack_dataset(table, 10, group_column="pair")


def test_a_row_without_tokens_would_tear_its_group():
    table = pa.table({"input_ids": pa.array([[1], []], pa.list_(pa.int64())), "pair": ["a", "a"]})
    with pytest.raises(DataError, match=r"row 1 \(the first is 0\) has no tokens, but belongs to a group"):
        pack_dataset(table, 10, group_column="pair")


def test_a_group_column_that_is_not_there():
    with pytest.raises(DataError, match="there is no column 'pairs'"):
        pack_dataset(table_of([[1]]), 10, group_column="pairs")


def test_a_group_column_that_cannot_be_one_fails_the_check(tmp_path):
    table = pa.table({"input_ids": [[1], [2]], "spans": [[[1]], [[2]]]})
    pack_to_folder(table_source(table), PackSettings(4, keep_columns=("spans",)), path := tmp_path / "packed")
    manifest = json.loads((path / "brimful.json").read_text())
    manifest["settings"]["group_column"] = "spans"
    (path / "brimful.json").write_text(json.dumps(manifest))
    columns = next(check for check in check_packed(path) if check.name == "columns")
    assert not columns.passed
    assert "'spans' holds list<" in columns.detail
