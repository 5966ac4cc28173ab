"""The command of an experiment that trains over seeds: compute and print, write, or write anew from the figures."""

from __future__ import annotations

import json
import sys
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
    """python -m experiments.NAME [--quick] [--write] | --picture

    Computes and prints the section. With --write it goes into docs/experiments.md, its figures into docs/NAME.json and
    their picture into docs/NAME.svg; --picture writes section and picture anew from docs/NAME.json, and computes
    nothing.

    Args:
        name: of the experiment.
        compute: the figures, of a quick run or a full one; `machine` is added, if it is not there.
        section: Markdown of the figures.
        draw: writes the picture.
    """
    again = "--picture" in sys.argv
    if again:
        figures = json.loads((page.DOCS / f"{name}.json").read_text(encoding="utf-8"))
    else:
        figures = {"machine": page.machine("torch", "transformers")} | compute("--quick" in sys.argv)
    lines = wrapped(section(figures))
    print("\n".join(lines))
    if again or "--write" in sys.argv:
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
