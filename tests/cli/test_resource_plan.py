"""brimful plan --capacity: the figures of the library, from a histogram or from columns, and clear refusals."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brimful.resources import ALGORITHMS, PRIORITIES, ResourceHistogram, ResourcePlan, plan_resources

FIGURES = {
    "algorithm",
    "priority",
    "capacities",
    "max_sequences",
    "sequences",
    "totals",
    "packs",
    "efficiency",
    "packing_factor",
    "speedup_limit",
    "lower_bounds",
    "lower_bound",
    "gap",
    "seconds",
}
CAPACITIES = ("--capacity", "tokens=64", "--capacity", "images=3")


@pytest.fixture
def sizes(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("tokens,images,count\n2,0,10\n7,1,3\n60,3,4\n31,0,5\n")
    return path


@pytest.mark.parametrize("algorithm", ["auto", *ALGORITHMS])
@pytest.mark.parametrize("priority", [None, *PRIORITIES])
def test_figures_are_those_of_the_library(run, sizes, algorithm, priority):
    words = ("--max-sequences", 4, "--algorithm", algorithm, *(("--priority", priority) if priority else ()))
    value = run("plan", "--histogram", sizes, *CAPACITIES, *words, "--json").json
    expected = plan_resources(
        ResourceHistogram.from_csv(sizes),
        {"tokens": 64, "images": 3},
        4,
        "best_fit" if algorithm == "auto" else algorithm,
        priority or "sum",
    )
    assert set(value) == FIGURES | {"lower_bound_kind", "patterns", "rows_empty", "output"}
    figures = expected.figures()
    assert {name: value[name] for name in FIGURES - {"seconds"}} == {
        name: figures[name] for name in FIGURES - {"seconds"}
    }
    assert (value["lower_bound_kind"], value["patterns"]) == (expected.bound.kind, len(expected.patterns))
    assert (value["rows_empty"], value["output"]) == (0, None)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_columns_of_numbers_and_of_lists_are_sizes(run, tmp_path, kind):
    """A row without any size is skipped and counted; the order of the capacities is that of the resources."""
    random = np.random.default_rng(1)
    images = [*random.integers(0, 4, 60).tolist(), 0, 0]
    ids = [*([1] * length for length in random.integers(1, 30, 60).tolist()), [], []]
    rows = [{"text": "x", "ids": row, "images": image} for row, image in zip(ids, images, strict=True)]
    path = tmp_path / f"rows.{kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    words = ("--capacity", "images=8", "--capacity", "ids=64")
    value = run("plan", path, *words, "--json").json
    expected = plan_resources({"images": images[:60], "ids": [len(row) for row in ids[:60]]}, {"images": 8, "ids": 64})
    assert value["packs"] == expected.packs
    assert value["totals"] == expected.histogram.totals
    assert value["rows_empty"] == 2
    said = run("plan", path, *words)
    assert "2 rows without any size, skipped" in said.out


def test_plan_file_loads_equal_and_is_not_overwritten(run, sizes, tmp_path):
    path = tmp_path / "new" / "plan.json"
    words = ("plan", "--histogram", sizes, *CAPACITIES, "-o", path)
    assert run(*words, "--json").json["output"] == str(path)
    expected = plan_resources(ResourceHistogram.from_csv(sizes), {"tokens": 64, "images": 3})
    assert ResourcePlan.load(path) == expected
    sizes.write_text("no histogram")
    assert "exists already" in run(*words).error, "before anything is read"
    expected.histogram.to_csv(sizes)
    path.unlink()
    said = run(*words)
    assert f"brimful.resources.ResourcePlan.load({str(path)!r})" in said.out


def test_prints_each_figure_for_each_resource(run, sizes):
    said = run("plan", "--histogram", sizes, *CAPACITIES)
    for words in (
        "22 of 436 tokens, 15 images",
        "7 of 64 tokens, 3 images",
        "97.32% of the tokens, 71.43% of the images",
        "7 packs (total for tokens)",
        "7 packs for the tokens, 5 packs for the images",
        "0.00% above that bound at most",
    ):
        assert words in said.out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            (),
            "Missing option '--max-length', or --capacity NAME=N for each of several resources; see",
        ),
        (("--max-length", 8, "--priority", "max"), "--priority is for several resources; give --capacity NAME=N for"),
        (
            (*CAPACITIES, "--max-length", 8),
            "either --max-length or --capacity, not both; --max-length is for packs of o",
        ),
        (
            (*CAPACITIES, "--overflow", "drop"),
            "either --overflow or --capacity, not both; --overflow is for packs of on",
        ),
        ((*CAPACITIES, "--min-fragment", 2), "either --min-fragment or --capacity, not both"),
        ((*CAPACITIES, "--time-limit", 0), "either --time-limit or --capacity, not both"),
        ((*CAPACITIES, "--token-column", "x"), "either --token-column or --capacity, not both"),
        ((*CAPACITIES, "--text-column", "x"), "either --text-column or --capacity, not both"),
        ((*CAPACITIES, "--tokenizer", "bytes"), "either --tokenizer or --capacity, not both"),
        ((*CAPACITIES, "--capacity", "tokens=8"), "--capacity tokens is given twice; give each resource one capacity"),
        ((*CAPACITIES, "--algorithm", "lpfhp"), "there is no algorithm 'lpfhp' for several resources; there are best_"),
        ((*CAPACITIES, "--priority", "min"), "there is no priority 'min'; there are sum, max, product"),
        ((*CAPACITIES, "--max-sequences", 0), "max_sequences is a whole number from 1 to 2147483647, not 0"),
        ((*CAPACITIES, "rows.parquet"), "either input files or --histogram, not both"),
        (("--capacity", "tokens=64"), "every resource has a capacity, but images has none; say how much of it a pack"),
        ((*CAPACITIES, "--capacity", "pics=1"), "there is no resource 'pics'; there are tokens, images"),
        (("--capacity", "tokens"), "a capacity is written NAME=N, such as tokens=2048, not 'tokens'"),
        (("--capacity", "=3"), "a capacity is written NAME=N, such as tokens=2048, not '=3'"),
        (("--capacity", "tokens=0"), "the capacity of tokens is a whole number from 1 to 2147483647, not 0"),
        (("--capacity", "tokens=1.5"), "the capacity of tokens is a whole number from 1 to 2147483647, not '1.5'"),
        (
            ("--capacity", "tokens=59", "--capacity", "images=3"),
            "4 of 22 sequences have more tokens than the 59 that a",
        ),
    ],
)
def test_contradictions_are_refused(run, sizes, words, error):
    assert error in run("plan", "--histogram", sizes, *words).error


def test_something_to_read_is_needed(run):
    assert "nothing to read: name input files, or a histogram" in run("plan", *CAPACITIES).error


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"tokens": [1, 2]}, "there is no column 'images'; its columns are: 'tokens'"),
        (
            {"tokens": [1, 2], "images": ["a", "b"]},
            "column 'images' holds string; the sizes of a resource are whole nu",
        ),
        (
            {"tokens": [1, 2], "images": [1.0, 2.0]},
            "column 'images' holds double; the sizes of a resource are whole nu",
        ),
        ({"tokens": [1, 2], "images": [True, False]}, "column 'images' holds bool; the sizes of a resource are whole"),
        (
            {"tokens": [1, 2], "images": [1, None]},
            "column 'images': row 1 is null; give it a size, or leave the row out",
        ),
        (
            {"tokens": [[1], None], "images": [1, 1]},
            "column 'tokens': row 1 is null; give it a size, or leave the row o",
        ),
        ({"tokens": [1, 2], "images": [1, -2]}, "column 'images': row 1 is -2; a size is at least 0 and below 2^63"),
        ({"tokens": [1, 99], "images": [1, 1]}, "1 of 2 sequences have more tokens than the 64 that a pack holds (the"),
    ],
)
def test_columns_that_are_no_sizes_are_refused(run, tmp_path, table, error):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(table), path)
    assert error in run("plan", path, *CAPACITIES).error


def test_a_bad_row_is_counted_over_all_inputs(run, tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, images in zip(paths, ([1, 1], [1, None]), strict=True):
        pq.write_table(pa.table({"tokens": [1, 2], "images": images}), path)
    assert "column 'images': row 3 is null" in run("plan", *paths, *CAPACITIES).error


def test_numbers_beyond_int64_are_no_sizes(run, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"tokens": pa.array([1, 2**63], pa.uint64()), "images": [0, 0]}), path)
    assert "row 1 is 9223372036854775808; a size is at least 0 and below 2^63" in run("plan", path, *CAPACITIES).error
