"""The page of the experiments: each replaces its own section, and leaves all else as it stands."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brimful
from brimful.errors import DataError

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = "experiments.md"
_TITLE = "# Experiments\n"


def put_section(name: str, lines: list[str], page: Path) -> None:
    """Put an experiment's lines between its own two marks; at the end of the page if it has no such marks yet.

        <!-- NAME: printed by python -m experiments.NAME -->
        the lines
        <!-- /NAME -->

    Args:
        name: of the experiment, as python -m experiments.NAME.
        lines: Markdown, as the experiment prints it.
        page: the file, which is made if there is none; whatever is outside the marks stays.

    Raises:
        DataError: the page has one of the two marks without the other, or one of them twice.
    """
    first, last = f"<!-- {name}: printed by python -m experiments.{name} -->\n", f"<!-- /{name} -->\n"
    text = page.read_text(encoding="utf-8") if page.exists() else _TITLE
    section = f"{first}\n" + "\n".join(lines).strip() + f"\n\n{last}"
    found = text.count(first), text.count(last)
    if found == (0, 0):
        text = text.rstrip("\n") + f"\n\n{section}"
    elif found == (1, 1) and text.index(first) < text.index(last):
        text = text[: text.index(first)] + section + text[text.index(last) + len(last) :]
    else:
        raise DataError(f"{page}: the marks of {name} stand once each, in order, or not at all; mend them by hand")
    written = page.with_suffix(".new")  # never half a page
    written.write_text(text, encoding="utf-8")
    written.replace(page)


def publish(name: str, lines: list[str], results: dict[str, Any], draw: Callable[[Path], None]) -> None:
    """Write what an experiment found: docs/NAME.json, docs/NAME.svg, and its section of docs/experiments.md."""
    (DOCS / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    draw(DOCS / f"{name}.svg")
    put_section(name, lines, DOCS / PAGE)


def machine(*packages: str) -> str:
    """What it was measured on: CPU cores, and versions of Python, brimful and these packages."""
    versions = [f"Python {platform.python_version()}", f"brimful {brimful.__version__}"]
    versions += [f"{package} {importlib.metadata.version(package)}" for package in packages]
    return f"{len(os.sched_getaffinity(0))} CPU cores; {', '.join(versions)}"
