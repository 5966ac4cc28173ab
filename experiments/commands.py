"""The command of an experiment: measure and print, write, or write anew from the figures."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from experiments import page

Figures: TypeAlias = dict[str, Any]

_WIDTH = 120


def command(
    name: str,
    compute: Callable[[bool], Figures],
    section: Callable[[Figures], list[str]],
    draw: Callable[[Figures, Path], None],
) -> None:
    """python -m experiments.NAME [--quick | --write | --picture]

    Measures and prints the section. With --write it goes into docs/experiments.md, its figures into docs/NAME.json and
    their picture into docs/NAME.svg; --picture writes section and picture anew from docs/NAME.json, and measures
    nothing. What --quick measures is too little to be written.

    Args:
        name: of the experiment.
        compute: the figures, of a quick run or a full one; `machine` is added, if it is not there.
        section: Markdown of the figures.
        draw: writes the picture.
    """
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{name}")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_true", help="a small run, of about a minute, which is only printed")
    choice.add_argument("--write", action="store_true", help=f"put section, figures and picture of {name} into docs/")
    choice.add_argument("--picture", action="store_true", help=f"write both anew from docs/{name}.json")
    chosen = parser.parse_args()
    if chosen.picture:
        figures = json.loads((page.DOCS / f"{name}.json").read_text(encoding="utf-8"))
    else:
        figures = {"machine": page.machine("torch", "transformers")} | compute(chosen.quick)
    lines = wrapped(section(figures))
    print("\n".join(lines))
    if chosen.picture or chosen.write:
        page.publish(name, lines, figures, lambda path: draw(figures, path))


def wrapped(lines: list[str]) -> list[str]:
    """Markdown with its sentences broken into lines of at most 120 characters; tables and headlines stay.

    Example:
        >>> [len(line) for line in wrapped(["word " * 30, "| a |", "- " + "word " * 30])]
        [119, 29, 5, 116, 36]
    """
    broken: list[str] = []
    for line in lines:
        if line.startswith(("|", "#", "!")) or not line:
            broken.append(line)
        else:
            indent = "  " if line.startswith("- ") else ""
            broken += textwrap.wrap(
                line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
    return broken
