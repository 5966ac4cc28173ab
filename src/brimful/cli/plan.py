"""brimful plan: decide which lengths share a pack, print the figures, and write the plan."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import typer

from brimful.cli import options, printing
from brimful.errors import LengthError, OutputError, SettingError
from brimful.overflow import Overflow, OverflowPolicy
from brimful.planning import DATA_ORDER, plan, require_algorithm
from brimful.plans import PackPlan
from brimful.report.figures import figures_table, ledger_table
from brimful.resources import ResourcePlan

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="PLAN.json", help="Write the plan here; the file must not exist."),
]


def command(
    inputs: options.OptionalInputs = None,
    max_length: options.MaxLengthOrCapacities = None,
    capacity: options.Capacities = None,
    histogram: options.Histogram = None,
    max_sequences: options.MaxSequences = None,
    algorithm: options.AnyAlgorithm = "auto",
    priority: options.Priority = None,
    align: options.Align = 1,
    time_limit: options.TimeLimit = None,
    output: Output = None,
    overflow: options.OverflowKind = "error",
    min_fragment: options.MinFragment = 1,
    token_column: options.TokenColumn = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """Decide which lengths share a pack; print the figures, or write the plan with -o."""

    def run() -> int:
        if capacity:
            from brimful.cli.resource_plan import plan_capacities

            _require_left_out(
                {
                    "--max-length": max_length,
                    "--align": None if align == 1 else align,
                    "--time-limit": time_limit,
                    "--overflow": None if overflow == "error" else overflow,
                    "--min-fragment": None if min_fragment == 1 else min_fragment,
                    "--token-column": token_column,
                    "--text-column": text_column,
                    "--tokenizer": tokenizer,
                }
            )
            return plan_capacities(
                tuple(inputs or ()), capacity, histogram, max_sequences, algorithm, priority, output, json
            )
        row_slots = _require_max_length(max_length, priority)
        from brimful.cli.inputs import InputOptions, measure

        policy = OverflowPolicy(cast(Overflow, overflow), row_slots, min_fragment)
        require_algorithm(algorithm)
        if algorithm in DATA_ORDER and histogram is not None:
            raise LengthError(
                f"{algorithm} packs in data order, which a histogram does not have; give it input files, "
                "or choose another algorithm"
            )
        if output is not None:
            require_free(output)
        given = InputOptions(tuple(inputs or ()), histogram, token_column, text_column, tokenizer)
        with printing.row_progress("reading lengths", None) as progress:
            measured = measure(given, policy, progress)
        with printing.status("planning"):
            made = plan(
                measured.to_plan(algorithm), row_slots, max_sequences, algorithm, align=align, time_limit=time_limit
            )
        if output is not None:
            write_plan(made, output)
        if json:
            written = None if output is None else str(output)
            extra = {"lower_bound_kind": made.bound.kind, "reason": made.reason, "patterns": len(made.patterns)}
            extra["output"] = written
            printing.print_json({**made.figures(), **extra, "ledger": asdict(measured.ledger)})
            return 0
        console = printing.output()
        console.print(measured.name, style="bold", soft_wrap=True)
        console.print(figures_table(made.figures(), made.bound.kind))
        if algorithm == "auto":
            console.print(f"  {made.reason}", style="dim", soft_wrap=True)
        console.print(ledger_table(measured.ledger))
        if output is not None:
            printing.print_command(
                console,
                f"\n{output}: {len(made.patterns):,} patterns. To load it:",
                f"brimful.PackPlan.load({str(output)!r})",
            )
        return 0

    return run


def _require_left_out(given: dict[str, object]) -> None:
    """Nothing, if none of these options was given; otherwise a SettingError that names the first."""
    for option, value in given.items():
        if value is not None:
            raise SettingError(f"either {option} or --capacity, not both; {option} is for packs of one capacity")


def _require_max_length(max_length: int | None, priority: str | None) -> int:
    """max_length, if it was given and nothing that is for several capacities; otherwise a SettingError."""
    if max_length is None:
        raise SettingError(
            "Missing option '--max-length', or --capacity NAME=N for each of several resources; see brimful plan --help"
        )
    if priority is not None:
        raise SettingError("--priority is for several resources; give --capacity NAME=N for each, or leave it out")
    return max_length


def write_plan(made: PackPlan | ResourcePlan, path: Path) -> None:
    """Write a plan file that appears whole or not at all, and never in the place of another.

    Raises:
        OutputError: the path exists, or cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-partial-", dir=path.parent) as folder:
            partial = Path(folder) / path.name
            made.save(partial)
            _give_name(partial, path)
    except OSError as fault:
        raise OutputError(f"{path}: cannot be written ({fault.strerror or fault})") from None


def _give_name(partial: Path, path: Path) -> None:
    """A second name for a whole file, which unlike a rename never takes the place of another file."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without links
        _copy_to_new(partial, path)


def _copy_to_new(source: Path, path: Path) -> None:
    try:
        file = path.open("xb")
    except FileExistsError:
        raise _exists(path) from None
    try:
        with file:
            file.write(source.read_bytes())
    except BaseException:
        path.unlink()
        raise


def require_free(path: Path) -> None:
    """Nothing, if there is nothing at this path yet; otherwise an OutputError."""
    if path.exists() or path.is_symlink():
        raise _exists(path)


def _exists(path: Path) -> OutputError:
    return OutputError(f"{path}: exists already; choose another output file, or remove this one")
