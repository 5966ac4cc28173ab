"""brimful plan: figures by the contract, and a plan file that loads and is never overwritten."""

import pytest

import brimful
from tests.cli.conftest import FIGURES, FORMATS


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("algorithm", ["auto", "lpfhp", "spfhp", "next_fit", "none"])
def test_figures_are_those_of_the_library(run, files, table, kind, algorithm):
    words = ("--max-length", 64, "--max-sequences", 5, "--algorithm", algorithm, "--json")
    value = run("plan", files[kind], *words).json
    lengths = table["input_ids"].combine_chunks().value_lengths().to_numpy()
    expected = brimful.plan(lengths, 64, 5, algorithm).figures()
    assert set(value) >= FIGURES | {"ledger", "lower_bound_kind", "patterns", "output"}
    assert {name: value[name] for name in FIGURES - {"seconds"}} == {
        name: expected[name] for name in FIGURES - {"seconds"}
    }


def test_plan_file_loads_equal_and_is_not_overwritten(run, files, tmp_path):
    path = tmp_path / "new" / "plan.json"
    words = ("plan", "--histogram", files["histogram"], "--max-length", 64, "-o", path)
    assert run(*words).status == 0
    assert brimful.PackPlan.load(path) == brimful.plan(brimful.LengthHistogram.from_csv(files["histogram"]), 64)
    path.write_text("mine")
    assert "exists already" in run(*words).error
    assert path.read_text() == "mine"
    assert [entry.name for entry in path.parent.iterdir()] == ["plan.json"]


def test_prints_figures_and_how_to_load(run, files, tmp_path):
    said = run("plan", "--histogram", files["histogram"], "--max-length", 64, "-o", tmp_path / "p.json")
    for word in ("efficiency", "packing factor", "lower bound", "gap", "brimful.PackPlan.load("):
        assert word in said.out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "nothing to read"),
        (("in.parquet", "--histogram", "h.csv"), "not both"),
        (("--histogram", "h.csv", "--column", "x"), "a histogram has no columns"),
        (("--histogram", "h.csv", "--algorithm", "next_fit"), "next_fit packs in data order"),
        (("--histogram", "h.csv", "--algorithm", "magic"), "there is no algorithm 'magic'; there are auto, lpfhp"),
    ],
)
def test_contradictions_are_refused(run, words, error):
    assert error in run("plan", *words, "--max-length", 8).error
