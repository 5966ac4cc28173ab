"""Every check passes on what was packed, and fails when its promise is broken, and says where."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful.errors import DataError
from brimful.tables.check import check_packed
from brimful.tables.manifest import Manifest
from brimful.tables.output import pack_to_folder
from brimful.tables.same_sequences import same_sequences
from brimful.tables.settings import PackSettings
from brimful.tables.sources import table_source
from tests.reference.overflow import pieces

LENGTHS = np.random.default_rng(7).integers(1, 30, 80)
TABLE = pa.table(
    {
        "input_ids": [list(range(i, i + n)) for i, n in enumerate(LENGTHS.tolist())],
        "weights": [[0.5 * i] * n for i, n in enumerate(LENGTHS.tolist())],
        "words": [[f"w{i}"] * n for i, n in enumerate(LENGTHS.tolist())],
        "name": [None if i == 5 else f"row {i}" for i in range(80)],
    }
)
SETTINGS = PackSettings(32, max_sequences=6, keep_columns=("name",), window_tokens=500)
NAMES = [
    "manifest",
    "shards",
    "columns",
    "boundaries",
    "max_length",
    "max_sequences",
    "nothing empty",
    "kept columns",
    "no nulls",
    "ledger",
    "figures",
    "plan",
]


@pytest.fixture(params=["parquet", "arrow"])
def folder(tmp_path, request):
    """A good packed folder of several shards."""
    pack_to_folder(table_source(TABLE), SETTINGS, tmp_path / "packed", request.param, shard_bytes=4000)
    return tmp_path / "packed"


@pytest.fixture
def parquet_folder(tmp_path):
    pack_to_folder(table_source(TABLE), SETTINGS, tmp_path / "packed", shard_bytes=4000)
    return tmp_path / "packed"


def failed(folder):
    return {check.name: check.detail for check in check_packed(folder) if not check.passed}


def shards(folder):
    return sorted([*folder.rglob("*.parquet"), *folder.rglob("*.arrow")])


def edit_manifest(folder, change):
    path = folder / "brimful.json"
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def edit_row(folder, column, change):
    """Change one row's list in the second shard, whose number of rows stays."""
    path = shards(folder)[1]
    table = pq.read_table(path)
    rows = table[column].to_pylist()
    rows[2] = change(rows[2])
    place = table.schema.get_field_index(column)
    pq.write_table(
        table.set_column(place, table.schema.field(column), pa.array(rows, table.schema.field(column).type)), path
    )


def test_good_folder_passes_every_check(folder):
    assert [check.name for check in check_packed(folder)] == NAMES
    assert failed(folder) == {}
    assert same_sequences(table_source(TABLE), folder).passed
    assert len(shards(folder)) > 2


def test_empty_input_passes(tmp_path):
    empty = TABLE.slice(0, 0)
    pack_to_folder(table_source(empty), SETTINGS, tmp_path / "packed")
    assert failed(tmp_path / "packed") == {}
    assert same_sequences(table_source(empty), tmp_path / "packed").passed


def test_plan_may_be_left_out(folder):
    edit_manifest(folder, lambda value: value.update(plan=None))
    assert failed(folder) == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(format="other"),
        lambda value: value.update(version=2),
        lambda value: value.pop("settings"),
        lambda value: value.pop("plan"),
        lambda value: value["settings"].update(max_length=0),
        lambda value: value["settings"].update(overflow="explode"),
        lambda value: value["settings"].update(unheard_of=1),
        lambda value: value.update(shards=[{}]),
        lambda value: value.update(figures=3),
        lambda value: value["figures"].update(packs=[1]),
        lambda value: value.update(version=True),
        lambda value: value.update(settings=[]),
        lambda value: value["settings"].pop("seed"),
        lambda value: value["settings"].update(token_column=["x"]),
        lambda value: value["settings"].update(keep_columns=[["x"]]),
        lambda value: value["settings"].update(keep_columns="name"),
        lambda value: value["settings"].update(keep_columns=["input_ids"]),
        lambda value: value["settings"].update({"token_column": "seq_lengths"}),
        lambda value: value["settings"].update(max_length=32.0),
        lambda value: value["settings"].update(overflow=["drop"]),
        lambda value: value["settings"].update(seed=None),
        lambda value: value.update(shards={}),
        lambda value: value.update(shards=[]),
        lambda value: value.update(shards=["a.parquet"]),
        lambda value: value["shards"][0].update(rows=float("inf")),
        lambda value: value["shards"][0].update(rows="1"),
        lambda value: value["shards"][0].update(tokens=-1),
        lambda value: value["shards"][0].update(tokens=True),
        lambda value: value["shards"][0].update(path=3),
        lambda value: value["shards"][0].update(path=""),
        lambda value: value["shards"][0].update(path="."),
        lambda value: value["shards"][0].update(path="data"),
        lambda value: value["shards"][0].update(path="brimful.json"),
        lambda value: value["shards"][0].update(path="data//x.parquet"),
        lambda value: value["ledger"].pop("rows_read"),
        lambda value: value["ledger"].update(more=1),
        lambda value: value["ledger"].update(tokens_read=2**62),
        lambda value: value["ledger"].update(tokens_read="many"),
    ],
)
def test_manifest_that_cannot_be_trusted_is_the_only_check(folder, change):
    edit_manifest(folder, change)
    (check,) = check_packed(folder)
    assert (check.name, check.passed) == ("manifest", False)
    assert check.detail.startswith(f"{folder / 'brimful.json'}: ")
    assert "\n" not in check.detail
    with pytest.raises(DataError):
        Manifest.load(folder)
    assert not same_sequences(table_source(TABLE), folder).passed


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, '"x"', "\udc80"])
def test_manifest_that_is_none(folder, text):
    (folder / "brimful.json").write_bytes(text.encode(errors="surrogateescape"))
    assert list(failed(folder)) == ["manifest"]
    with pytest.raises(DataError, match=r"brimful\.json: "):
        Manifest.load(folder)
    (folder / "brimful.json").unlink()
    assert list(failed(folder)) == ["manifest"]


def test_missing_shard(folder):
    shards(folder)[1].unlink()
    assert set(failed(folder)) == {"shards", "ledger", "figures", "plan"}
    assert "no such file" in failed(folder)["shards"]
    assert not same_sequences(table_source(TABLE), folder).passed


def test_damaged_shard(folder):
    path = shards(folder)[1]
    path.write_bytes(path.read_bytes()[:-9])
    assert "shards" in failed(folder)
    assert path.name in failed(folder)["shards"]


def test_shard_that_is_not_listed(folder):
    extra = shards(folder)[0]
    (extra.parent / f"train-99{extra.suffix}").write_bytes(extra.read_bytes())
    assert list(failed(folder)) == ["shards"]
    assert f"train-99{extra.suffix} is not listed" in failed(folder)["shards"]


def test_cache_of_datasets_is_no_shard(folder):
    (folder / "cache-1234.arrow").write_bytes(b"")
    assert failed(folder) == {}


def test_shard_with_other_rows_than_listed(folder):
    edit_manifest(folder, lambda value: value["shards"][1].update(rows=1))
    assert list(failed(folder)) == ["shards"]
    assert "is listed with 1 packs" in failed(folder)["shards"]


def test_shard_outside_of_the_folder_is_not_read(folder):
    for path in ("../" + shards(folder)[0].name, str(shards(folder)[0]), "a/../../b.parquet", "..\\b.parquet"):
        edit_manifest(folder, lambda value, path=path: value["shards"][0].update(path=path))
        assert "is a path that may lead outside" in failed(folder)["manifest"]
        assert "is a path that may lead outside" in same_sequences(table_source(TABLE), folder).detail


def test_folder_in_the_place_of_a_shard_is_not_read(folder):
    path = shards(folder)[0]
    path.rename(path.with_name("moved"))
    path.mkdir()
    path.with_name("moved").rename(path / path.name)
    assert "must be a file, but is a folder" in failed(folder)["shards"]
    assert not same_sequences(table_source(TABLE), folder).passed


@pytest.mark.parametrize("depth", [50, 500, 900, 990])
def test_deep_nesting_is_no_crash(folder, depth):
    """Deep enough for Python to refuse to read it, or to read it and then refuse to show it."""
    deep = "[" * depth + "]" * depth
    path = folder / "brimful.json"
    good = json.loads(path.read_text())
    for key, value in (
        ("version", deep),
        ("settings", deep),
        ("plan", deep),
        ("plan", f'{{"format": "brimful-plan", "version": {deep}}}'),
    ):
        rest = json.dumps({name: part for name, part in good.items() if name != key})
        path.write_text(f'{{"{key}": {value}, {rest[1:]}')
        assert set(failed(folder)) <= {"manifest", "plan"}
        assert failed(folder)


def test_lengths_beyond_any_histogram(parquet_folder):
    path = shards(parquet_folder)[0]
    table = pq.read_table(path)
    huge = pa.array([[2**62, 2**62]] * table.num_rows, pa.list_(pa.int64()))
    pq.write_table(table.set_column(table.schema.get_field_index("seq_lengths"), "seq_lengths", huge), path)
    assert {"boundaries", "figures", "plan"} <= set(failed(parquet_folder))
    assert not same_sequences(table_source(TABLE), parquet_folder).passed


def test_shard_listed_twice(folder):
    edit_manifest(folder, lambda value: value["shards"].append(value["shards"][0]))
    assert "listed twice" in failed(folder)["shards"]


def test_list_for_datasets_that_differs(tmp_path):
    pack_to_folder(table_source(TABLE), SETTINGS, tmp_path / "packed", "arrow", shard_bytes=4000)
    path = tmp_path / "packed" / "state.json"
    state = json.loads(path.read_text())
    state["_data_files"].pop()
    path.write_text(json.dumps(state))
    assert list(failed(tmp_path / "packed")) == ["shards"]


def test_shards_with_other_columns(parquet_folder):
    path = shards(parquet_folder)[1]
    pq.write_table(pq.read_table(path).drop_columns("weights"), path)
    assert "other columns than the shards before it" in failed(parquet_folder)["columns"]
    path = shards(parquet_folder)[0]
    pq.write_table(pq.read_table(path).drop_columns("seq_lengths"), path)
    assert "missing ['seq_lengths']" in failed(parquet_folder)["columns"]


@pytest.mark.parametrize(
    ("column", "change", "broken", "detail"),
    [
        ("weights", lambda row: row[:-1], "boundaries", "'weights' has"),
        ("seq_lengths", lambda row: [row[0] + 1, *row[1:]], "boundaries", "but seq_lengths add up to"),
        ("input_ids", lambda row: row + [1] * 40, "max_length", "more than 32"),
        ("seq_lengths", lambda row: [1] * sum(row), "max_sequences", "sequences, more than 6"),
        ("seq_lengths", lambda row: [*row, 0], "nothing empty", "a sequence without tokens"),
        ("seq_lengths", lambda _: [], "nothing empty", "no sequence"),
        ("name", lambda row: [*row, "more"], "kept columns", "'name' has"),
        ("name", lambda _: None, "no nulls", "'name' holds a null"),
        ("input_ids", lambda row: [None, *row[1:]], "no nulls", "'input_ids' holds a null"),
        ("seq_lengths", lambda _: None, "no nulls", "'seq_lengths' holds a null"),
        ("seq_lengths", lambda row: [-1, *row[1:]], "nothing empty", "a sequence without tokens"),
        ("seq_lengths", lambda _: [2**31 - 1] * 6, "boundaries", "but seq_lengths add up to"),
    ],
)
def test_row_that_breaks_a_rule_is_found(parquet_folder, column, change, broken, detail):
    edit_row(parquet_folder, column, change)
    assert detail in failed(parquet_folder)[broken]
    assert "00001-of-" in failed(parquet_folder)[broken]
    assert "pack 2 (the first is 0)" in failed(parquet_folder)[broken]
    compared = same_sequences(table_source(TABLE), parquet_folder)
    assert not compared.passed
    assert "a rule is broken" in compared.detail


def test_boundary_that_moved_between_two_sequences(parquet_folder):
    """Sums stay right, so only the plan knows."""
    edit_row(parquet_folder, "seq_lengths", lambda row: [row[0] - 1, row[1] + 1, *row[2:]])
    assert "plan" in failed(parquet_folder)
    assert not {"boundaries", "ledger", "shards"} & set(failed(parquet_folder))


@pytest.mark.parametrize("name", ["tokens_packed", "sequences_packed", "tokens_dropped"])
def test_ledger_that_does_not_add_up(folder, name):
    edit_manifest(folder, lambda value: value["ledger"].update({name: value["ledger"][name] + 1}))
    assert list(failed(folder)) == ["ledger"]


def test_ledger_that_balances_but_is_wrong(folder):
    def change(value):
        value["ledger"]["tokens_packed"] += 5
        value["ledger"]["tokens_read"] += 5

    edit_manifest(folder, change)
    assert "but the packs hold" in failed(folder)["ledger"]


@pytest.mark.parametrize(
    "name",
    [
        "max_length",
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
    ],
)
def test_figure_that_is_wrong(folder, name):
    edit_manifest(folder, lambda value: value["figures"].update({name: value["figures"][name] + 1}))
    assert list(failed(folder)) == ["figures"]
    assert failed(folder)["figures"].startswith(f"{name} is said to be")


def test_figure_that_is_missing(folder):
    edit_manifest(folder, lambda value: value["figures"].pop("gap"))
    assert list(failed(folder)) == ["figures"]


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan["histogram"]["counts"].__setitem__(0, 99),
        lambda plan: plan.update(max_sequences=7),
        lambda plan: plan.update(format="x"),
    ],
)
def test_plan_that_is_not_the_one_packed(folder, change):
    edit_manifest(folder, lambda value: change(value["plan"]))
    assert list(failed(folder)) == ["plan"]


def test_bound_that_prices_prove_is_proven_again(tmp_path):
    """35 tokens would fill four packs of 9, but no four packs hold these lengths: only prices tell."""
    lengths = [2, 2, 3, 3, 3, 5, 5, 5, 7]
    table = pa.table({"input_ids": [[1] * length for length in lengths]})
    report = pack_to_folder(table_source(table), PackSettings(9, algorithm="optimal"), tmp_path / "packed")
    assert failed(tmp_path / "packed") == {}
    assert report.figures["lower_bound"] == report.figures["packs"] == 5
    edit_manifest(tmp_path / "packed", lambda value: value["figures"].update(lower_bound=4))
    assert list(failed(tmp_path / "packed")) == ["figures"]


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("input_ids", lambda row: [row[0] + 1, *row[1:]]),
        ("weights", lambda row: [row[0] + 1, *row[1:]]),
        ("words", lambda row: ["other", *row[1:]]),
        ("name", lambda row: ["other", *row[1:]]),
        ("input_ids", lambda row: row[::-1]),
    ],
)
def test_sequence_that_changed_breaks_only_the_comparison(parquet_folder, column, change):
    edit_row(parquet_folder, column, change)
    assert failed(parquet_folder) == {}
    compared = same_sequences(table_source(TABLE), parquet_folder)
    assert not compared.passed
    assert "tokens differ" in compared.detail


def test_sequence_in_the_place_of_another_of_its_length(parquet_folder):
    """Twice one and never the other: an exclusive or of two pairs would miss it."""
    twice = TABLE.slice(0, 1)
    doubled = pa.concat_tables([twice, twice, TABLE])
    assert not same_sequences(table_source(doubled), parquet_folder).passed


def test_input_with_rows_that_would_have_been_refused(parquet_folder):
    columns = {name: TABLE[name] for name in TABLE.column_names}
    long = {"input_ids": [[1] * 40] * 80, "weights": [[0.5] * 40] * 80, "words": [["a"] * 40] * 80}
    assert "longer than 32" in same_sequences(table_source(pa.table(columns | long)), parquet_folder).detail


def test_input_without_a_column(parquet_folder):
    with pytest.raises(DataError, match="there is no column 'input_ids'"):
        same_sequences(table_source(TABLE.drop_columns("input_ids")), parquet_folder)
    assert (
        "the packs hold 'weights'" in same_sequences(table_source(TABLE.drop_columns("weights")), parquet_folder).detail
    )


def test_order_of_the_input_plays_no_part(parquet_folder):
    assert same_sequences(table_source(TABLE.take(list(range(80))[::-1])), parquet_folder).passed


@given(
    st.lists(st.lists(st.integers(0, 3), max_size=9), max_size=12),
    st.sampled_from(["drop", "truncate", "split"]),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)
def test_same_sequences_is_equality_of_multisets(tmp_path_factory, rows, overflow, min_fragment, random):
    """Against plain counting of tuples, for the true input and for one in which a token may differ."""
    settings = PackSettings(4, overflow=overflow, min_fragment=min_fragment if overflow == "split" else 1)
    folder = tmp_path_factory.mktemp("packed") / "out"
    kind = pa.list_(pa.int32())
    pack_to_folder(table_source(pa.table({"input_ids": pa.array(rows, kind)})), settings, folder)
    changed = [list(row) for row in rows]
    if changed and changed[-1]:
        changed[-1][random.randrange(len(changed[-1]))] = random.randint(0, 3)

    def counted(table_rows):
        return Counter(
            tuple(row[start : start + length])
            for row in table_rows
            for start, length in pieces(len(row), 4, overflow, settings.min_fragment)
        )

    for other in (rows, changed):
        source = table_source(pa.table({"input_ids": pa.array(other, kind)}))
        assert same_sequences(source, folder).passed == (counted(other) == counted(rows))
