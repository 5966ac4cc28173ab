"""Where output goes: figures to standard output, progress to standard error, and there only if someone watches."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from brimful.checks import Check

_WIDEST = 1000


class OutputConsole(Console):
    """A rich console on standard output that leaves a broken pipe to `main`."""

    def on_broken_pipe(self) -> None:
        """Raise what rich caught, instead of ending the program here."""
        raise  # rich calls this inside its except block


def output() -> Console:
    """A console for people; plain text when standard output is no terminal."""
    return OutputConsole(highlight=False, markup=False)


def print_json(value: dict[str, Any]) -> None:
    """The one object that --json promises."""
    print(json.dumps(value, allow_nan=False))


def print_command(console: Console, label: str, command: str) -> None:
    """A line to be copied: it is never wrapped."""
    console.print(f"{label} ", end="", style="dim", soft_wrap=True)
    console.print(command, style="bold", soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """A table that is never narrowed: where the terminal is, it breaks its lines, and no digit is lost."""
    table.width = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    console.print(table, crop=False, no_wrap=True, overflow="ignore")


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """A line for each check, with a mark that tells whether it passed."""
    good, bad = ("ok", "FAILED") if console.options.ascii_only else ("✓", "✗ FAILED")
    for check in checks:
        mark, style = (good, "green") if check.passed else (bad, "bold red")
        console.print(f"  {mark} ", style=style, end="")
        console.print(f"{check.name}: {check.detail}", soft_wrap=True)


@contextmanager
def row_progress(what: str, n_rows: int | None) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of rows done; it draws a bar on standard error if that is a terminal."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=n_rows)
        yield lambda rows: progress.update(task, advance=rows)


@contextmanager
def status(what: str) -> Iterator[Callable[[str], None]]:
    """A function to call with what is being done now; it shows on standard error if that is a terminal."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(what) as shown:
        yield lambda now: shown.update(f"{what}: {now}")
