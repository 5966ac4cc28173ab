"""pack_dataset: whole sequences, every one once, no pack too full, whatever the layout of the input and the windows."""

from typing import Any, cast

import datasets
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import CapacityError, DataError, LengthError, OutputError, SettingError, pack_dataset, packing_report, plan
from brimful.tables import windows as windows_module
from tests.tables.packed_rows import check_rows, same_multiset, sequences_of

FOUR = [[1, 2, 3, 4], [5, 6], [7, 8, 9], [10]]


def ids(rows, kind=None):
    return pa.table({"input_ids": pa.array(rows, kind or pa.list_(pa.int32()))})


def tokens(packed):
    return [sequence[0] for sequence in sequences_of(packed)]


@given(
    rows=st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=40),
    max_length=st.sampled_from([12, 13, 50]),
    max_sequences=st.sampled_from([None, 1, 3]),
    algorithm=st.sampled_from(["auto", "spfhp", "next_fit", "none"]),
    window_tokens=st.sampled_from([None, 1, 7, 30]),
    chunks=st.integers(1, 5),
)
@settings(deadline=None)
def test_every_sequence_comes_out_once_with_its_labels(
    rows, max_length, max_sequences, algorithm, window_tokens, chunks
):
    table = pa.table(
        {
            "input_ids": pa.array(rows, pa.list_(pa.int32())),
            "labels": pa.array([[-token for token in row] for row in rows], pa.list_(pa.int64())),
        }
    )
    step = max(1, -(-len(rows) // chunks))
    chunked = pa.concat_tables([table.slice(at, step) for at in range(0, max(len(rows), 1), step)])
    packed = pack_dataset(chunked, max_length, max_sequences, algorithm, window_tokens=window_tokens)
    check_rows(packed, max_length, max_sequences)
    expected = [(tuple(row), tuple(-token for token in row)) for row in rows if row]
    found = sequences_of(packed.select(["input_ids", "seq_lengths"]))
    assert same_multiset([piece[0] for piece in found], [row for row, _ in expected])
    labels = [label for row in packed["labels"].to_pylist() for label in row]
    assert labels == [-token for row in packed["input_ids"].to_pylist() for token in row]
    report = packing_report(packed)
    assert report["figures"]["packs"] == packed.num_rows
    assert report["ledger"]["rows_empty"] == rows.count([])
    assert report["ledger"]["tokens_packed"] == sum(map(len, rows)) == len(labels)


def test_the_same_rows_in_other_chunks_give_the_same_packs():
    rows = [[n] * (n % 9 + 1) for n in range(100)]
    one = pack_dataset(ids(rows), 20, window_tokens=64)
    parts = pa.concat_tables([ids(rows[:1]), ids(rows[1:50]), ids([]), ids(rows[50:])])
    assert pack_dataset(parts, 20, window_tokens=64).equals(one)


def test_seeds_differ_and_repeat():
    rows = [[n] for n in range(50)]
    assert pack_dataset(ids(rows), 8, seed=1).equals(pack_dataset(ids(rows), 8, seed=1))
    assert not pack_dataset(ids(rows), 8, seed=1).equals(pack_dataset(ids(rows), 8, seed=2))


def test_one_window_makes_the_packs_that_plan_promises():
    rows = [[0] * length for length in [9, 2, 3, 7, 5, 5, 8, 1]]
    assert pack_dataset(ids(rows), 10).num_rows == plan([len(row) for row in rows], 10).packs


# Overflow


def test_error_is_the_default_and_names_row_length_and_count():
    with pytest.raises(CapacityError, match=r"^table: row 0 .* has 4 tokens, more than max_length 3; 1 of 4 rows"):
        pack_dataset(ids(FOUR), 3)


@pytest.mark.parametrize("window_tokens", [None, 1])
@pytest.mark.parametrize(
    ("overflow", "expected", "lost"),
    [
        ("drop", [(5, 6), (7, 8, 9), (10,)], {"rows_dropped": 1, "tokens_dropped": 4}),
        ("truncate", [(1, 2, 3), (5, 6), (7, 8, 9), (10,)], {"rows_truncated": 1, "tokens_truncated": 1}),
        ("split", [(1, 2, 3), (4,), (5, 6), (7, 8, 9), (10,)], {"rows_split": 1}),
    ],
)
def test_four_rows_at_three_under_each_policy(overflow, expected, lost, window_tokens):
    packed = pack_dataset(ids(FOUR), 3, overflow=overflow, window_tokens=window_tokens)
    check_rows(packed, 3)
    assert same_multiset(tokens(packed), expected)
    ledger = packing_report(packed)["ledger"]
    total = sum(map(len, packed["input_ids"].to_pylist()))
    assert ledger["tokens_read"] == 10 == total + ledger["tokens_truncated"] + ledger["tokens_dropped"]
    assert {name: ledger[name] for name in lost} == lost


@pytest.mark.parametrize(
    ("overflow", "sizes"), [("drop", [100]), ("truncate", [4096, 100]), ("split", [4096, 904, 100])]
)
def test_5000_and_100_at_4096_under_each_policy(overflow, sizes):
    packed = pack_dataset(ids([range(5000), range(100)]), 4096, overflow=overflow)
    assert same_multiset([len(sequence) for sequence in tokens(packed)], sizes)
    assert packed.num_rows == -(-sum(sizes) // 4096)


def test_121_at_60_is_split_into_60_60_1_and_a_short_remainder_is_dropped_on_request():
    row = list(range(121))
    packed = pack_dataset(ids([row]), 60, overflow="split")
    assert same_multiset(tokens(packed), [tuple(row[:60]), tuple(row[60:120]), (120,)])
    ledger = packing_report(pack_dataset(ids([row]), 60, overflow="split", min_fragment=2))["ledger"]
    assert (ledger["fragments_dropped"], ledger["tokens_dropped"], ledger["tokens_packed"]) == (1, 1, 120)


def test_too_long_rows_are_counted_over_the_whole_input_not_over_a_window():
    rows = [[0] * 5] * 10 + [[0] * 11] + [[0] * 5] * 10 + [[0] * 12] * 2
    chunks = pa.concat_tables([ids(rows[:10]), ids(rows[10:15]), ids(rows[15:])])
    with pytest.raises(CapacityError, match=r"row 10 .* has 11 tokens, .* 3 of 23 rows"):
        pack_dataset(chunks, 10, window_tokens=5)


# Boundaries, windows, capacities


def test_boundaries_come_from_lengths_alone_even_where_an_end_token_is_missing():
    eos = 2
    packed = pack_dataset(ids([[1, 3, 4, 5, 6], [9, 9, eos]]), 8)
    assert packed.num_rows == 1
    assert packed["seq_lengths"].to_pylist() == [[5, 3]]
    assert packed["input_ids"].to_pylist() == [[1, 3, 4, 5, 6, 9, 9, eos]]


def test_eight_tokens_fill_a_pack_of_eight_and_the_next_document_does_not_leak_in():
    packed = pack_dataset(ids([[1, 2, 3, 4, 5, 6, 7, 8], [9, 9, 2]]), 8)
    assert same_multiset(tokens(packed), [(1, 2, 3, 4, 5, 6, 7, 8), (9, 9, 2)])
    assert sorted(map(len, packed["input_ids"].to_pylist())) == [3, 8]


@pytest.mark.parametrize("rows", [[], [[]], [[], [], []]])
@pytest.mark.parametrize("window_tokens", [None, 1])
def test_nothing_to_pack_gives_an_empty_table_with_all_columns(rows, window_tokens):
    packed = pack_dataset(ids(rows), 8, window_tokens=window_tokens)
    assert packed.num_rows == 0
    assert packed.schema.names == ["input_ids", "seq_lengths"]
    assert packing_report(packed)["ledger"]["rows_empty"] == len(rows)


def test_rows_that_are_empty_without_a_type_are_skipped_too():
    packed = pack_dataset(pa.table({"input_ids": pa.array([[], []])}), 8)
    assert packed.num_rows == 0
    assert packing_report(packed)["ledger"]["rows_empty"] == 2


@pytest.mark.parametrize("window_tokens", [None, 1, 2])
def test_a_second_batch_that_is_all_empty_changes_nothing(window_tokens):
    table = pa.concat_tables([ids([[1, 2], [3]]), ids([[], [], []])])
    packed = pack_dataset(table, 3, window_tokens=window_tokens)
    assert packed["seq_lengths"].to_pylist() == [[2, 1]]
    assert packing_report(packed)["ledger"]["rows_empty"] == 3


def test_ten_times_twenty_tokens_at_2048_make_one_pack_not_zero():
    assert pack_dataset(ids([[7] * 20] * 10), 2048)["seq_lengths"].to_pylist() == [[20] * 10]


@pytest.mark.parametrize("window_tokens", [None, 1, 8, 20, 33, 64])
def test_max_sequences_holds_in_every_window_and_windows_cost_no_packs(window_tokens):
    packed = pack_dataset(ids([[7]] * 100), 128, max_sequences=8, window_tokens=window_tokens)
    check_rows(packed, 128, 8)
    assert packed.num_rows == 13


@pytest.mark.parametrize("window_tokens", [None, 1, 10, 55, 100, 101, 333, 999])
def test_a_hundred_times_ten_at_a_hundred_make_exactly_ten_packs_wherever_windows_end(window_tokens):
    packed = pack_dataset(ids([[7] * 10] * 100), 100, window_tokens=window_tokens)
    assert packed["seq_lengths"].to_pylist() == [[10] * 10] * 10


def test_what_is_left_at_the_end_of_data_is_packed():
    packed = pack_dataset(ids([[n] for n in range(9)]), 4, window_tokens=4)
    assert same_multiset(tokens(packed), [(n,) for n in range(9)])
    assert packed.num_rows == 3


def test_small_windows_stay_close_to_one_large_window():
    rng = np.random.default_rng(0)
    rows = [[0] * length for length in np.clip(rng.lognormal(3, 1, 5000), 1, 256).astype(int).tolist()]
    whole = pack_dataset(ids(rows), 256).num_rows
    assert whole <= pack_dataset(ids(rows), 256, window_tokens=20 * 256).num_rows <= 1.02 * whole


@pytest.mark.parametrize("max_length", [1, 2, 13, 8193, 131_072])
def test_lengths_up_to_any_max_length(max_length):
    sizes = sorted({1, max_length // 2 or 1, max_length - 1 or 1, max_length})
    rows = [np.full(size, number, np.int32) for number, size in enumerate(sizes)]
    packed = pack_dataset(ids(rows), max_length)
    check_rows(packed, max_length)
    assert same_multiset(tokens(packed), [tuple(row.tolist()) for row in rows])


def test_a_batch_that_would_grow_too_large_is_cut_without_losing_a_pack(monkeypatch):
    monkeypatch.setattr(windows_module, "_BATCH_BYTES", 40)
    packed = pack_dataset(ids([[n] * 3 for n in range(30)]), 9)
    assert packed["input_ids"].num_chunks > 5
    assert same_multiset(tokens(packed), [(n, n, n) for n in range(30)])


# Layouts and columns

LAYOUTS = [
    pa.list_(pa.int8()),
    pa.list_(pa.uint16()),
    pa.large_list(pa.int64()),
    pa.list_(pa.uint64()),
    pa.list_view(pa.int32()),
    pa.large_list_view(pa.int32()),
]


@pytest.mark.parametrize("kind", LAYOUTS, ids=str)
def test_every_list_layout_and_integer_width_is_packed(kind):
    rows = [[1, 2, 3], [4], [], [5, 6]]
    table = ids([[9, 9], *rows, [9]], kind).slice(1, 4)
    packed = pack_dataset(table, 4)
    assert same_multiset(tokens(packed), [(1, 2, 3), (4,), (5, 6)])
    assert packed.schema.field("input_ids").type.value_type == kind.value_type
    large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    assert pa.types.is_large_list(packed.schema.field("input_ids").type) == large


def test_fixed_size_lists_are_packed_even_when_sliced():
    table = ids([[9, 9], [1, 2], [3, 4], [5, 6], [9, 9]], pa.list_(pa.int32(), 2)).slice(1, 3)
    assert same_multiset(tokens(pack_dataset(table, 4)), [(1, 2), (3, 4), (5, 6)])


@pytest.mark.parametrize("mean", [3, 80])
@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.list_(pa.int32(), 4)], ids=str
)
def test_other_packed_columns_may_hold_anything(kind, mean):
    """Both ways of gathering (block by block, token by token) keep values beside their tokens."""
    rng = np.random.default_rng(mean)
    rows = [rng.integers(0, 2, size).tolist() for size in rng.integers(1, 2 * mean, 30)]
    as_value: Any = {pa.string(): str, pa.list_(pa.int32(), 4): lambda token: [token] * 4}.get(
        kind, lambda token: token
    )
    other = pa.array([[as_value(token) for token in row] for row in rows]).cast(pa.list_(kind))
    packed = pack_dataset(pa.table({"input_ids": pa.array(rows), "other": other}), 2 * mean)
    assert packed.schema.field("other").type == pa.list_(kind)
    flat_ids = packed["input_ids"].combine_chunks().flatten().to_pylist()
    expected = pa.array([as_value(token) for token in flat_ids]).cast(kind)
    assert packed["other"].combine_chunks().flatten().equals(expected)


def test_columns_without_a_part_are_named_with_their_types_and_what_to_do():
    table = ids(FOUR).append_column("source", pa.array(list("abcd"))).append_column("id", pa.array(range(4)))
    with pytest.raises(DataError, match=r"source \(string\), id \(int64\); keep .*keep_columns.* or drop"):
        pack_dataset(table, 4)


def test_dropped_columns_go_and_kept_columns_become_lists_in_the_order_of_the_sequences():
    table = ids(FOUR).append_column("source", pa.array(list("abcd"))).append_column("id", pa.array(range(4)))
    packed = pack_dataset(table, 4, keep_columns=["source"], drop_columns=["id"])
    assert packed.schema.names == ["input_ids", "source", "seq_lengths"]
    expected = dict(zip(map(tuple, FOUR), "abcd", strict=True))
    for row in packed.to_pylist():
        at = 0
        for source, length in zip(row["source"], row["seq_lengths"], strict=True):
            assert expected[tuple(row["input_ids"][at : at + length])] == source
            at += length


def test_kept_columns_follow_the_fragments_of_split_rows_and_may_hold_nulls_and_lists():
    table = ids([[1, 2, 3], [4]]).append_column("meta", pa.array([[1, 1], None]))
    packed = pack_dataset(table, 2, overflow="split", keep_columns=["meta"])
    found = [(ids, meta) for row in packed.to_pylist() for ids, meta in zip_sequences(row)]
    assert sorted(found, key=str) == sorted([((1, 2), [1, 1]), ((3,), [1, 1]), ((4,), None)], key=str)


def zip_sequences(row):
    at = 0
    for meta, length in zip(row["meta"], row["seq_lengths"], strict=True):
        yield tuple(row["input_ids"][at : at + length]), meta
        at += length


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1] * 4, None, [2] * 3, [3]]), r"'other': row 1 is null; give it a list"),
        (pa.array([[1] * 4, [1, None], [2] * 3, [3]]), r"'other': row 1 holds a null among its items"),
        (pa.array([[1] * 4, [1] * 2, [2] * 2, [3]]), r"'other': row 2 has 2 items, but 'input_ids' has 3; keep"),
    ],
)
def test_lists_that_do_not_match_the_tokens_are_refused_by_row(column, message):
    parts = [ids(FOUR[:1]), ids(FOUR[1:])]
    table = pa.concat_tables(parts).append_column("other", column)
    with pytest.raises(DataError, match=message):
        pack_dataset(table, 4)


def test_views_of_text_are_packed_and_kept_as_plain_text():
    table = pa.table(
        {
            "input_ids": pa.array(FOUR),
            "words": pa.array([[str(token) for token in row] for row in FOUR], pa.list_(pa.string_view())),
            "source": pa.array(list("abcd"), pa.string_view()),
        }
    )
    packed = pack_dataset(table, 5, keep_columns="source")
    assert packed.schema.field("words").type == pa.list_(pa.string())
    for row in packed.to_pylist():
        assert row["words"] == [str(token) for token in row["input_ids"]]
    assert sorted(value for row in packed["source"].to_pylist() for value in row) == list("abcd")


def test_windows_are_cut_by_weight_at_the_same_rows_in_any_chunks(monkeypatch):
    """Long kept texts weigh more than tokens: they close windows too, and not by the batches that they come in."""
    monkeypatch.setattr(windows_module, "WINDOW_BYTES", 5000)
    rows = [[n % 7] * (n % 5 + 1) for n in range(200)]
    table = ids(rows).append_column("text", pa.array(["x" * (n % 90) for n in range(200)]))
    whole = pack_dataset(table, 20, keep_columns="text")
    assert packing_report(whole)["windows"] > 5
    parts = pa.concat_tables([table.slice(0, 3), table.slice(3, 90), table.slice(93)])
    assert pack_dataset(parts, 20, keep_columns="text").equals(whole)


def test_null_rows_and_null_tokens_are_refused_by_row():
    with pytest.raises(DataError, match=r"'input_ids': row 1 is null"):
        pack_dataset(ids([[1], None]), 4)
    with pytest.raises(DataError, match=r"'input_ids': row 2 holds a null"):
        pack_dataset(ids([[1], [], [2, None]]), 4)


@pytest.mark.parametrize(
    ("table", "arguments", "error", "message"),
    [
        (pa.table({"ids": [[1]]}), {}, DataError, r"no column 'input_ids'.*its columns are: 'ids'"),
        (
            pa.table({"input_ids": ["text"]}),
            {},
            DataError,
            r"holds string, not lists of token ids; it is text",
        ),
        (pa.table({"input_ids": [[0.5]]}), {}, DataError, r"holds list<.*double>, not lists of token ids"),
        (pa.table({"input_ids": [[1]], "seq_lengths": [[1]]}), {}, DataError, r"packed already"),
        (pa.table({"input_ids": [[1]]}), {"drop_columns": ["x"]}, DataError, r"no column 'x'"),
        (pa.table({"input_ids": [[1]]}), {"drop_columns": ["input_ids"]}, DataError, r"can only be one of"),
        (
            pa.table({"input_ids": [[1]]}),
            {"algorithm": "magic"},
            SettingError,
            r"no algorithm 'magic'; there are auto, ",
        ),
        (pa.table({"input_ids": [[1]]}), {"seed": -1}, SettingError, r"seed is a whole number from 0 to .*, not -1"),
        (pa.table({"input_ids": [[1]]}), {"window_tokens": 0}, LengthError, r"window_tokens is a whole number from 1"),
        (pa.table({"input_ids": [[1]]}), {"max_sequences": 0}, LengthError, r"max_sequences is a whole number from 1"),
        (pa.table({"input_ids": [[1]]}), {"overflow": "cut"}, SettingError, r"overflow is one of"),
        ([[1]], {}, DataError, r"a pyarrow.Table or a datasets.Dataset, not list"),
    ],
)
def test_wrong_input_gets_one_clear_error(table, arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        pack_dataset(table, 4, **arguments)
    assert "\n" not in str(caught.value)


def test_packed_data_is_packed_again_only_on_request():
    packed = pack_dataset(ids(FOUR), 5)
    again = pack_dataset(packed, 10, drop_columns=["seq_lengths"])
    assert again.num_rows == 1


# Hugging Face datasets


def test_a_dataset_in_memory_comes_back_as_a_dataset():
    packed = pack_dataset(datasets.Dataset.from_dict({"input_ids": FOUR}), 5)
    assert isinstance(packed, datasets.Dataset)
    assert same_multiset(tokens(packed.data.table), [tuple(row) for row in FOUR])
    assert packing_report(packed)["ledger"]["tokens_packed"] == 10


def test_a_dataset_on_disk_is_packed_to_disk_and_respects_its_selection(tmp_path):
    datasets.Dataset.from_dict({"input_ids": [*FOUR, [99]]}).save_to_disk(tmp_path / "saved")
    loaded = datasets.load_from_disk(tmp_path / "saved").select(range(3, -1, -1))
    before = {path.name for path in (tmp_path / "saved").iterdir()}
    packed = pack_dataset(loaded, 5)
    assert packed.cache_files
    assert same_multiset(tokens(packed.data.table), [tuple(row) for row in FOUR])
    assert packing_report(packed)["figures"]["packs"] == packed.num_rows
    assert packed[0]["seq_lengths"]
    with pytest.raises(CapacityError):
        pack_dataset(loaded, 1)
    after = {path.name for path in (tmp_path / "saved").iterdir()} - before
    assert len(after) == 1, "a failed packing leaves no file behind"


def test_class_labels_keep_their_names():
    features: Any = datasets.Features(
        {
            "input_ids": datasets.Sequence(datasets.Value("int32")),
            "tags": datasets.Sequence(datasets.ClassLabel(names=["O", "B"])),
            "kind": datasets.ClassLabel(names=["prose", "verse"]),
        }
    )
    rows = {"input_ids": [[1, 2], [3]], "tags": [[0, 1], [1]], "kind": [0, 1]}
    packed = pack_dataset(datasets.Dataset.from_dict(rows, features=features), 3, keep_columns="kind")
    assert packed.features["kind"].feature.names == ["prose", "verse"]
    assert packed.features["tags"].feature.names == ["O", "B"]
    assert packed[0]["kind"] == [0, 1]


def test_a_cache_folder_that_cannot_be_written_is_one_clear_error(tmp_path, monkeypatch):
    datasets.Dataset.from_dict({"input_ids": FOUR}).save_to_disk(tmp_path / "saved")
    loaded = datasets.load_from_disk(tmp_path / "saved")
    before = sorted(tmp_path.rglob("*"))

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("brimful.tables.hugging_face.pa.ipc.new_stream", refuse)
    with pytest.raises(OutputError, match=r"cannot be written \(Permission denied"):
        pack_dataset(loaded, 5)
    assert sorted(tmp_path.rglob("*")) == before


def test_numpy_integers_are_settings_like_any_other():
    five, two, three, four = (
        cast(int, kind(n)) for n, kind in ((5, np.int64), (2, np.int32), (3, np.uint8), (4, np.int16))
    )
    packed = pack_dataset(ids(FOUR), five, two, seed=three, window_tokens=four)
    assert packing_report(packed)["figures"]["max_length"] == 5


def test_kept_columns_may_be_one_name_and_may_be_named_twice():
    table = ids(FOUR).append_column("id", pa.array(range(4)))
    once = pack_dataset(table, 5, keep_columns="id")
    assert once.schema.names == ["input_ids", "id", "seq_lengths"]
    assert pack_dataset(table, 5, keep_columns=["id", "id"]).equals(once)


def test_data_without_a_report_says_so():
    with pytest.raises(DataError, match="carries no packing report"):
        packing_report(3)
    with pytest.raises(DataError, match="carries no packing report"):
        packing_report(ids(FOUR))
    with pytest.raises(DataError, match="carries no packing report"):
        packing_report(datasets.Dataset.from_dict({"input_ids": FOUR}))
