"""brimful analyze: the same figures for every format, a table that fits, and advice that works as typed."""

import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brimful.cli.inputs import cut_histogram
from brimful.lengths import LengthHistogram
from brimful.overflow import OverflowPolicy
from brimful.planning import ALGORITHMS, LEAST_SQUARES
from tests.cli.conftest import FIGURES, FORMATS

SHOWN = set(ALGORITHMS) - LEAST_SQUARES


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_figures(run, files, table, kind):
    value = run("analyze", files[kind], "--max-length", 64, "--json").json
    lengths = table["input_ids"].combine_chunks().value_lengths().to_numpy()
    assert value["ledger"]["rows_read"] == 200
    assert value["histogram"]["sequences"] == 200
    assert value["histogram"]["tokens"] == value["ledger"]["tokens_packed"] == lengths.sum()
    assert value["padding_fraction"] == pytest.approx(1 - lengths.mean() / 64)
    assert {figures["algorithm"] for figures in value["plans"]} == SHOWN
    assert all(set(figures) == FIGURES for figures in [*value["plans"], value["best"]])
    assert all(figures["packs"] >= value["lower_bound"] for figures in value["plans"])
    assert value["best"]["packs"] == min(figures["packs"] for figures in value["plans"])


def test_tables_fit_into_eighty_columns_and_name_the_best(run, parquet):
    said = run("analyze", parquet, "--max-length", 64)
    assert said.status == 0
    assert said.err == ""
    report = [line for line in said.out.splitlines() if not line.startswith(("Next:", str(parquet)))]
    assert max(len(line) for line in report) <= 80
    starred = [line.split()[0] for line in report if line.rstrip().endswith(" *")]
    assert len(set(starred)) == 1
    assert "Proven: no packing needs fewer than" in said.out


def test_advice_works_as_typed(run, parquet, tmp_path, monkeypatch):
    """The column of names is no list: packing without a word about it would fail, so the advice has one."""
    monkeypatch.chdir(tmp_path)
    said = run("analyze", parquet, "--max-length", 32, "--overflow", "split", "--min-fragment", 2, "--max-sequences", 3)
    advice = shlex.split(said.out.splitlines()[-1].removeprefix("Next: "))
    assert advice[:2] == ["brimful", "pack"]
    assert run(*advice[1:]).status == 0
    assert (tmp_path / "packed" / "brimful.json").exists()


def test_advice_keeps_lists_that_are_not_as_long_as_the_tokens(run, tmp_path, monkeypatch):
    """Packed with the tokens are only lists with an item for each: one of another length, or a null, is refused."""
    columns = {
        "input_ids": [[1, 2, 3], [4, 5]],
        "labels": [[1, 2, 3], [4, 5]],
        "spans, -x": [[[0, 1], [1, 3]], [[0, 2]]],
        "vector": pa.array([[0.5, 1.5], [2.5, 3.5]], pa.list_(pa.float32(), 2)),
        "tags": [["a", None, "b"], ["c", "d"]],
        "perhaps": [None, [1, 2]],
        "notes": [[{"by": "x"}], []],
        "-name": ["one", "two"],
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    monkeypatch.chdir(tmp_path)
    advice = shlex.split(run("analyze", "rows.parquet", "--max-length", 8, "--json").json["next"])
    assert run(*advice[1:]).status == 0
    packed = pq.read_table(tmp_path / "packed" / "data").to_pydict()
    assert sorted(packed) == sorted([*columns, "seq_lengths"])
    assert packed["labels"] == packed["input_ids"] == [[1, 2, 3, 4, 5]]
    assert packed["perhaps"] == [[None, [1, 2]]]
    assert packed["vector"] == [[[0.5, 1.5], [2.5, 3.5]]]


def test_a_file_with_the_name_of_an_option_is_advised_so_that_it_is_none(run, parquet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--json.parquet").write_bytes(parquet.read_bytes())
    advice = shlex.split(run("analyze", "./--json.parquet", "--max-length", 64, "--json").json["next"])
    assert run(*advice[1:]).status == 0
    assert (tmp_path / "packed" / "brimful.json").exists()
    (tmp_path / "-x.csv").write_text("length,count\n2,10\n")
    advice = shlex.split(run("analyze", "--histogram", "-x.csv", "--max-length", 64, "--json").json["next"])
    assert run(*advice[1:]).status == 0
    assert (tmp_path / "plan.json").exists()


def test_a_histogram_has_no_data_order(run, files):
    said = run("analyze", "--histogram", files["histogram"], "--max-length", 64)
    assert "no data order" in next(line for line in said.out.splitlines() if line.startswith("next_fit"))
    value = run("analyze", "--histogram", files["histogram"], "--max-length", 64, "--json").json
    assert "next_fit" not in {figures["algorithm"] for figures in value["plans"]}
    assert value["next"].startswith("brimful plan --histogram")


def test_says_why_the_published_algorithm_collapses(run, tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("length,count\n10,100\n9,100\n")
    assert "opens one pack for each sequence" in run("analyze", "--histogram", path, "--max-length", 100).out
    assert "opens one pack for each sequence" not in run("analyze", "--histogram", path, "--max-length", 10).out


def test_text_is_tokenized(run, files):
    value = run(
        "analyze", files["text"], "--max-length", 20, "--text-column", "text", "--tokenizer", "bytes", "--json"
    ).json
    assert value["histogram"]["tokens"] == len("héllo".encode()) + len("a longer line")
    assert value["ledger"]["rows_empty"] == 1


def test_nothing_to_pack_is_said_and_no_error(run, tmp_path):
    path = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"input_ids": pa.array([[], []], pa.list_(pa.int32()))}), path)
    said = run("analyze", path, "--max-length", 8)
    assert (said.status, said.err) == (0, "")
    assert "no sequences to pack" in said.out
    assert run("analyze", path, "--max-length", 8, "--json").json["ledger"]["rows_empty"] == 2


@pytest.mark.parametrize(("kind", "min_fragment"), [("drop", 1), ("truncate", 1), ("split", 1), ("split", 4)])
def test_policies_on_a_histogram_are_those_on_its_rows(kind, min_fragment):
    rows = np.random.default_rng(1).integers(1, 40, 500)
    policy = OverflowPolicy(kind, 12, min_fragment)
    fragments, ledger = policy.cut(rows)
    assert cut_histogram(LengthHistogram.from_lengths(rows), policy) == (
        LengthHistogram.from_lengths(fragments.lengths),
        ledger,
    )
