"""Commands that compute figures, and put them into docs: a section of the page, the figures, and the picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from experiments.page import DOCS, publish

Figures: TypeAlias = dict[str, Any]


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
        compute: the figures, of a short run or a full one.
        section: Markdown of the figures, without headline.
        draw: writes the picture.
    """
    again = "--picture" in sys.argv
    figures = (
        json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8")) if again else compute("--quick" in sys.argv)
    )
    lines = section(figures)
    print("\n".join(lines))
    if again or "--write" in sys.argv:
        publish(name, lines, figures, lambda path: draw(figures, path))
