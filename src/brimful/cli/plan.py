"""brimful plan: decide which lengths share a pack, print the figures, and write the plan."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import typer

from brimful.cli import options, printing
from brimful.cli.measuring import InputOptions, measure
from brimful.errors import LengthError, OutputError
from brimful.overflow import Overflow, OverflowPolicy
from brimful.planning import DATA_ORDER, plan, resolve_algorithm
from brimful.plans import PackPlan
from brimful.report.figures import figures_table, ledger_table

Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="PLAN.json", help="Write the plan here; the file must not exist."),
]


def command(
    max_length: options.MaxLength,
    inputs: options.OptionalInputs = None,
    histogram: options.Histogram = None,
    max_sequences: options.MaxSequences = None,
    algorithm: options.Algorithm = "auto",
    output: Output = None,
    overflow: options.OverflowKind = "error",
    min_fragment: options.MinFragment = 1,
    column: options.Column = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """Decide which lengths share a pack; print the figures, or write the plan with -o."""

    def run() -> int:
        policy = OverflowPolicy(cast(Overflow, overflow), max_length, min_fragment)
        in_order = resolve_algorithm(algorithm) in DATA_ORDER
        if in_order and histogram is not None:
            raise LengthError(
                f"{algorithm} packs in data order, which a histogram does not have; give it input files, "
                "or choose another algorithm"
            )
        if output is not None:
            _require_free(output)
        given = InputOptions(tuple(inputs or ()), histogram, column, text_column, tokenizer)
        with printing.row_progress("reading lengths", None) as progress:
            measured = measure(given, policy, progress)
        data = measured.lengths if in_order and measured.lengths is not None else measured.histogram
        with printing.status("planning"):
            made = plan(data, max_length, max_sequences, algorithm)
        if output is not None:
            write_plan(made, output)
        if json:
            written = None if output is None else str(output)
            extra = {"lower_bound_kind": made.bound.kind, "patterns": len(made.patterns), "output": written}
            printing.print_json({**made.figures(), **extra, "ledger": asdict(measured.ledger)})
            return 0
        console = printing.output()
        console.print(measured.name, style="bold", soft_wrap=True)
        console.print(figures_table(made.figures(), made.bound.kind))
        console.print(ledger_table(measured.ledger))
        if output is not None:
            printing.print_command(
                console,
                f"\n{output}: {len(made.patterns):,} patterns. To load it:",
                f"brimful.PackPlan.load({str(output)!r})",
            )
        return 0

    return run


def write_plan(made: PackPlan, path: Path) -> None:
    """Write a plan file that appears whole or not at all, and never in the place of another.

    Raises:
        OutputError: the path exists, or cannot be written.
    """
    _require_free(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{path.name}-partial-", dir=path.parent) as folder:
            partial = Path(folder) / path.name
            made.save(partial)
            partial.rename(path)
    except OSError as fault:
        raise OutputError(f"{path}: cannot be written ({fault.strerror or fault})") from None


def _require_free(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise OutputError(f"{path}: exists already; choose another output file, or remove this one")
