"""The picture of table 1 shows every row of the two datasets it is of, and is that of the figures in docs."""

import json
import re
import shutil
import sys

import pytest

from experiments.table1 import DOCS, LIMITS, WHOLE, main
from experiments.table1_picture import drawn, headline

DATASETS = {name for name, _ in WHOLE}


@pytest.fixture(scope="module")
def figures():
    return json.loads((DOCS / "table1.json").read_text(encoding="utf-8"))


def test_picture_has_a_point_for_every_row_in_both_panels(figures, tmp_path, monkeypatch):
    shutil.copy(DOCS / "table1.json", tmp_path)
    monkeypatch.setattr("experiments.table1.DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["table1", "--picture"])
    monkeypatch.setattr("experiments.table1.rows", None)  # nothing is computed
    main()
    svg = (tmp_path / "table1.svg").read_text(encoding="utf-8")
    groups = re.findall(r'<g class="mark-symbol role-mark[^>]*>(.*?)</g>', svg, re.DOTALL)
    n_rows = sum(row["data"] in DATASETS for row in figures)
    assert len(groups) == 4
    assert sum(group.count("<path") for group in groups) == 2 * n_rows
    assert 'fill="white"' in svg


def test_rows_keep_their_figures_and_get_the_name_of_their_limit(figures):
    rows = drawn(figures)
    assert [{key: row[key] for key in row if key != "limit"} for row in rows] == [
        row for row in figures if row["data"] in DATASETS
    ]
    assert {row["limit"] for row in rows} == {str(limit or "any") for limit in LIMITS}


def test_headline_tells_the_worst_of_both():
    def row(algorithm, packs, lower_bound):
        gap = packs / lower_bound - 1
        return {"algorithm": algorithm, "packs": packs, "lower_bound": lower_bound, "gap": gap}

    rows = [row("optimal", 1003, 1000), row("optimal", 11, 10), row("lpfhp", 1100, 1000), row("lpfhp", 12, 10)]
    assert (
        headline(rows) == "At every limit, optimal is within 3 packs of the proven least; lpfhp is up to 20.0% above it"
    )


def test_the_picture_in_docs_is_that_of_the_figures_in_docs(figures):
    assert headline(drawn(figures)) in (DOCS / "table1.svg").read_text(encoding="utf-8")
    assert "](table1.svg)" in (DOCS / "results.md").read_text(encoding="utf-8")
