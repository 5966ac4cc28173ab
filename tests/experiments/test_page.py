"""The page of the experiments: a section goes between its own marks, and nothing else is touched."""

import importlib
import json
import os
import sys

import pytest

from brimful.errors import DataError
from experiments import page
from experiments.commands import command, wrapped
from experiments.page import DOCS, PAGE, machine, publish, put_section

EXPERIMENTS = ("realized_table1", "other_domains", "learning_curves", "ablations", "fine_tuning")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_page_says_what_the_figures_beside_it_say(name):
    figures = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    section = wrapped(importlib.import_module(f"experiments.{name}").section(figures))
    assert "\n".join(section) in (DOCS / PAGE).read_text(encoding="utf-8")
    assert (DOCS / f"{name}.svg").exists()


def test_sections_are_added_and_replaced_and_all_else_stays(tmp_path):
    file = tmp_path / "experiments.md"
    put_section("one", ["## One", "", "1"], file)
    assert file.read_text() == (
        "# Experiments\n\n<!-- one: printed by python -m experiments.one -->\n\n## One\n\n1\n\n<!-- /one -->\n"
    )
    file.write_text(file.read_text() + "\nBy hand: <!-- one -->\n")
    put_section("two", ["## Two"], file)
    put_section("one", ["## One again"], file)
    assert file.read_text() == (
        "# Experiments\n\n<!-- one: printed by python -m experiments.one -->\n\n## One again\n\n<!-- /one -->\n"
        "\nBy hand: <!-- one -->\n"
        "\n<!-- two: printed by python -m experiments.two -->\n\n## Two\n\n<!-- /two -->\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["experiments.md"]


@pytest.mark.parametrize("marks", ["{0}", "{1}", "{1}{0}", "{0}{1}{1}", "{0}{0}{1}"])
def test_marks_that_are_not_a_pair_are_left_alone(tmp_path, marks):
    file = tmp_path / "experiments.md"
    text = marks.format("<!-- one: printed by python -m experiments.one -->\n", "<!-- /one -->\n")
    file.write_text(text)
    with pytest.raises(DataError, match="the marks of one stand once each, in order, or not at all; mend them by hand"):
        put_section("one", ["1"], file)
    assert file.read_text() == text


def test_an_experiment_leaves_figures_picture_and_section(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "DOCS", tmp_path)
    publish("one", ["## One"], {"rows": [1.5]}, lambda path: path.with_suffix(".svg").touch())
    assert json.loads((tmp_path / "one.json").read_text()) == {"rows": [1.5]}
    assert (tmp_path / "one.svg").exists()
    assert "\n## One\n" in (tmp_path / "experiments.md").read_text()


@pytest.mark.parametrize("words", [["--quick", "--write"], ["--quick", "--picture"], ["--qick"], ["full"]])
def test_words_that_a_command_does_not_know_are_refused(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["one", *words])
    with pytest.raises(SystemExit, match="2"):
        command("one", lambda _: {}, lambda _: [], lambda *_: None)
    assert "usage: python -m experiments.one [-h] [--quick | --write | --picture]" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "quick"), [([], False), (["--quick"], True)])
def test_what_is_not_to_be_written_is_printed(words, quick, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["one", *words])
    command("one", lambda asked: {"quick": asked}, lambda figures: [str(figures["quick"]), figures["machine"]], print)
    assert capsys.readouterr().out.startswith(f"{quick}\n{len(os.sched_getaffinity(0))} CPU cores; Python 3")
    assert not list(tmp_path.iterdir())


def test_machine_names_cores_and_versions():
    import numpy as np

    assert f"numpy {np.__version__}" in machine("numpy")
    assert machine().split(" CPU cores; Python 3")[0].isdigit()
