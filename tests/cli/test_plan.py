"""brimful plan: figures by the contract, and a plan file that loads and is never overwritten."""

import json
import subprocess
import sys

import pytest

import brimful
from brimful.cli.plan import write_plan
from brimful.planning import ALGORITHMS
from tests.cli.conftest import FIGURES, FORMATS


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
def test_figures_are_those_of_the_library(run, files, table, kind, algorithm):
    words = ("--max-length", 64, "--max-sequences", 5, "--algorithm", algorithm, "--json")
    value = run("plan", files[kind], *words).json
    lengths = table["input_ids"].combine_chunks().value_lengths().to_numpy()
    expected = brimful.plan(lengths, 64, 5, algorithm).figures()
    assert set(value) >= FIGURES | {"ledger", "lower_bound_kind", "patterns", "output"}
    assert {name: value[name] for name in FIGURES - {"seconds"}} == {
        name: expected[name] for name in FIGURES - {"seconds"}
    }


def test_json_is_all_that_a_solver_lets_out(tmp_path):
    """What a library in C prints does not pass through sys.stdout; these lengths need its help."""
    path = tmp_path / "lengths.csv"
    path.write_text("length,count\n2,2\n3,3\n5,3\n7,1\n")
    words = [sys.executable, "-m", "brimful", "plan", "--histogram", str(path), "--max-length", "9"]
    ended = subprocess.run([*words, "--algorithm", "optimal", "--json"], capture_output=True, check=True)  # noqa: S603
    assert json.loads(ended.stdout)["algorithm"] == "optimal"
    assert ended.stderr == b""


def test_plan_file_loads_equal_and_is_not_overwritten(run, files, tmp_path):
    path = tmp_path / "new" / "plan.json"
    words = ("plan", "--histogram", files["histogram"], "--max-length", 64, "-o", path)
    assert run(*words).status == 0
    assert brimful.PackPlan.load(path) == brimful.plan(brimful.LengthHistogram.from_csv(files["histogram"]), 64)
    path.write_text("mine")
    assert "exists already" in run(*words).error
    assert path.read_text() == "mine"
    assert [entry.name for entry in path.parent.iterdir()] == ["plan.json"]


def test_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    save = brimful.PackPlan.save

    def save_slowly(made, partial):
        save(made, partial)
        path.write_text("mine")

    monkeypatch.setattr(brimful.PackPlan, "save", save_slowly)
    for links in (True, False):
        if not links:
            monkeypatch.setattr("brimful.cli.plan.os.link", no_links)
        with pytest.raises(brimful.OutputError, match="exists already"):
            write_plan(brimful.plan([1], 2), path)
        assert path.read_text() == "mine"
        path.unlink()
        assert list(tmp_path.iterdir()) == []


def test_file_system_without_links(tmp_path, monkeypatch):
    monkeypatch.setattr("brimful.cli.plan.os.link", no_links)
    write_plan(brimful.plan([1], 2), tmp_path / "plan.json")
    assert brimful.PackPlan.load(tmp_path / "plan.json").packs == 1


def no_links(*_):
    raise PermissionError(1, "Operation not permitted")


def test_prints_figures_and_how_to_load(run, files, tmp_path):
    said = run("plan", "--histogram", files["histogram"], "--max-length", 64, "-o", tmp_path / "p.json")
    for word in ("efficiency", "packing factor", "lower bound", "gap", "brimful.PackPlan.load("):
        assert word in said.out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "nothing to read"),
        (("in.parquet", "--time-limit", "soon"), "'--time-limit'"),
        (("in.parquet", "--histogram", "h.csv"), "not both"),
        (("--histogram", "h.csv", "--token-column", "x"), "a histogram has no columns"),
        (("--histogram", "h.csv", "--algorithm", "next_fit"), "next_fit packs in data order"),
        (("--histogram", "h.csv", "--algorithm", "magic"), "there is no algorithm 'magic'; there are auto, lpfhp"),
    ],
)
def test_contradictions_are_refused(run, words, error):
    assert error in run("plan", *words, "--max-length", 8).error


def test_aligned_plan_is_that_of_the_library(run, files, tmp_path):
    path = tmp_path / "plan.json"
    words = ("plan", "--histogram", files["histogram"], "--max-length", 64, "--align", 8)
    value = run(*words, "-o", path, "--json").json
    made = brimful.PackPlan.load(path)
    assert made == brimful.plan(brimful.LengthHistogram.from_csv(files["histogram"]), 64, align=8)
    assert (value["align"], value["aligned_tokens"]) == (8, made.aligned_tokens)
