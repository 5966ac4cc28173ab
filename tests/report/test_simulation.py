"""The table and the picture of a simulation: what is shown, that labels are apart, and where it may be written."""

import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful
from brimful.errors import OutputError, SettingError
from brimful.report import simulation as report
from brimful.simulate import METHODS, CostModel, simulate
from tests.report.drawing import draw

PLAN = brimful.plan([1, 3] * 3000, max_length=3)
LINEAR = simulate(PLAN, [1, 2, 2048], batch_size=2)
QUADRATIC = simulate(PLAN, [1, 2], 2, CostModel(0.1, 0.02, 0.03, 0.04, 0.5))


def test_table_has_the_speedups_and_fits():
    lines = draw(report.simulation_table(QUADRATIC))
    assert max(map(len, lines)) <= 80
    for row, line in enumerate(lines[-2:]):
        cells = [f"{QUADRATIC.speedups[name][row]:.2f}" for name in METHODS]
        assert line.split() == [str(QUADRATIC.devices[row]), *cells]


def test_what_is_the_same_where_attention_costs_nothing_is_left_out():
    assert report.shown_methods(LINEAR) == [name for name in METHODS if name != "packing_varlen"]
    assert report.shown_methods(QUADRATIC) == list(METHODS)


def test_headline_is_in_the_figures():
    start, _, end = (f"{speedup:.2f}" for speedup in LINEAR.speedups["unpadding"])
    said = report.headline(LINEAR)
    assert said.startswith("From 1 to 2,048 devices packing stays 1.50 times as fast as padding; un-padding falls")
    assert said.endswith(f"from {start} to {end}")
    backwards = simulate(PLAN, [2048, 1], batch_size=2)
    assert report.headline(backwards) == said
    alone = report.headline(simulate(PLAN, [2], batch_size=2))
    assert alone == "On 2 devices packing is 1.50 times as fast as padding, and un-padding 1.26 times"
    alike = report.headline(simulate(brimful.plan([3] * 9, 3), [1, 4], 2))
    assert alike.endswith("un-padding stays at 1.00")


def test_assumptions_name_every_cost_that_is_not_nothing():
    assert report.assumptions(LINEAR)[1] == "Theory: costs linear in tokens, and nothing beside"
    rows, costs = report.assumptions(QUADRATIC)
    assert rows == "Rows of 3 tokens, 2 on each device in a step"
    assert "attention 10.0% of a full row, step overhead 2.0%, packing overhead 3.0%, " in costs
    assert costs.endswith("un-padding overhead 4.0%, a new shape 0.5 × a padded step")


def test_picture_shows_every_line_with_its_name_and_last_figure(tmp_path):
    path = tmp_path / "curve.svg"
    report.draw(LINEAR, path)
    drawing = ET.fromstring(path.read_text())  # noqa: S314 - our own
    texts = ["".join(element.itertext()) for element in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert report.headline(LINEAR).replace("; ", ";") in texts, "in two lines"
    for name in ("packing", "un-padding", "sorting", "length grouping", "token budget"):
        assert sum(text.startswith(f"{name} ") for text in texts) == 1
    assert f"un-padding {LINEAR.speedups['unpadding'][-1]:.2f}" in texts
    assert {"1", "2", "2,048"} <= set(texts)


def test_picture_of_the_readme_has_the_figures_of_today(histograms):
    """It is drawn by the command beside it, from the lengths of BERT's Wikipedia data."""
    lengths = brimful.LengthHistogram.from_csv(histograms / "wikipedia_bert_512.csv")
    today = simulate(brimful.plan(lengths, 512), batch_size=21)
    shown = (Path(__file__).resolve().parents[2] / "docs" / "simulation.svg").read_text(encoding="utf-8")
    drawing = ET.fromstring(shown)  # noqa: S314 - our own
    texts = {"".join(element.itertext()) for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
    for method in set(METHODS) - {"packing_varlen"}:
        name = method.replace("unpadding", "un-padding").replace("_", " ")
        assert f"{name} {today.speedups[method][-1]:.2f}" in texts
    title, assumed = report.headline(today), report.assumptions(today)
    assert {title.replace("; ", ";"), "".join(assumed)} <= texts


@pytest.mark.parametrize("simulation", [LINEAR, QUADRATIC, simulate(PLAN, [5], 2)])
def test_all_that_is_drawn_is_inside_the_frame(simulation):
    picture = report.picture(simulation).to_dict()
    speedups = [point["speedup"] for data in picture["datasets"].values() for point in data if "speedup" in point]
    bottom, top = picture["layer"][-2]["encoding"]["y"]["scale"]["domain"]
    shown = [speedup for name in report.shown_methods(simulation) for speedup in simulation.speedups[name]]
    assert sorted(set(speedups)) == sorted({1, *shown})
    assert all(bottom < speedup < top for speedup in speedups)


names = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(0, 10), min_size=1, max_size=7)


@given(names, st.floats(0.01, 1))
def test_labels_keep_their_order_and_their_distance(ends, least):
    places = report._apart(ends, least)
    order = sorted(ends, key=lambda name: ends[name])
    heights = [places[name] for name in order]
    assert all(b - a >= least - 1e-9 for a, b in pairwise(heights))
    for name in ends:
        if all(abs(ends[name] - ends[other]) > 2 * least * len(ends) for other in ends if other != name):
            assert places[name] == ends[name], "nothing is moved without need"
    assert sum(places.values()) == pytest.approx(sum(ends.values()), abs=1e-6)


@pytest.mark.parametrize("ending", report.FORMATS)
def test_files_are_what_their_endings_say(tmp_path, ending):
    path = tmp_path / f"curve{ending}"
    report.draw(LINEAR, path)
    content = path.read_bytes()
    assert {".svg": b"<svg", ".png": b"\x89PNG", ".html": b"<!DOCTYPE html>"}[ending] in content[:200]
    if ending == ".html":
        assert b"https://cdn" not in content, "it needs no network"
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r": exists already; choose another output file, or remove this one$"):
        report.draw(LINEAR, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_missing_library_is_named_with_the_extra_that_brings_it(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(OutputError, match=rf"drawing needs {missing}: pip install 'brimful\[report\]'$"):
        report.draw(LINEAR, tmp_path / "curve.svg")
    assert list(tmp_path.iterdir()) == []


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"curve\.jpg: a picture ends in one of \.svg, \.png, \.html, not '\.jpg'$"):
        report.draw(LINEAR, tmp_path / "curve.jpg")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match=r"curve\.svg: cannot be written \("):
        report.draw(LINEAR, tmp_path / "file" / "curve.svg")


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "curve.svg"
    path.write_text("mine")
    monkeypatch.setattr(report, "require_drawable", lambda _: None)
    with pytest.raises(OutputError, match=r"curve\.svg: cannot be written \("):
        report.draw(LINEAR, path)
    assert path.read_text() == "mine"


def test_a_picture_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "picture", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.draw(LINEAR, tmp_path / "curve.svg")
    assert list(tmp_path.iterdir()) == []
