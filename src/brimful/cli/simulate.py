"""brimful simulate: how much faster than padding each method is, from one device to thousands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeAlias, cast

import typer

from brimful.cli import options, printing
from brimful.errors import LengthError, SettingError, shown
from brimful.overflow import Overflow, OverflowPolicy
from brimful.planning import plan, require_algorithm
from brimful.report.simulation import assumptions, draw, headline, notes, require_drawable, simulation_table
from brimful.simulate import DEVICES, MOST_ROWS, CostModel, simulate

_DEVICES = ",".join(map(str, DEVICES))

Devices: TypeAlias = Annotated[
    str, typer.Option("--devices", metavar="N,N,…", help="For how many devices, separated by commas.")
]
BatchSize: TypeAlias = Annotated[
    int,
    typer.Option(
        "--batch-size",
        metavar="B",
        parser=options.capacity("batch_size", MOST_ROWS),
        help="Rows of a device between two exchanges of gradients.",
    ),
]
QuadraticShare: TypeAlias = Annotated[
    float,
    typer.Option(
        "--quadratic-share",
        metavar="X",
        parser=options.number("quadratic_share"),
        help="Share of a full row's time that is attention; about N / (N + 6 · hidden size) in a transformer.",
    ),
]
StepOverhead: TypeAlias = Annotated[
    float,
    typer.Option(
        "--step-overhead",
        metavar="X",
        parser=options.number("step_overhead"),
        help="What any step takes beside, in padded steps.",
    ),
]
PackingOverhead: TypeAlias = Annotated[
    float,
    typer.Option(
        "--packing-overhead",
        metavar="X",
        parser=options.number("packing_overhead"),
        help="How much longer a packed row takes than a padded one, such as 0.05.",
    ),
]
UnpaddingOverhead: TypeAlias = Annotated[
    float,
    typer.Option(
        "--unpadding-overhead",
        metavar="X",
        parser=options.number("unpadding_overhead"),
        help="How much longer a token takes in kernels without padding.",
    ),
]
Recompilation: TypeAlias = Annotated[
    float,
    typer.Option(
        "--recompilation",
        metavar="X",
        parser=options.number("recompilation"),
        help="What a compiler takes for each new shape in an epoch, in padded steps.",
    ),
]
MegaBatchMult: TypeAlias = Annotated[
    int,
    typer.Option(
        "--mega-batch-mult",
        metavar="M",
        parser=options.capacity("mega_batch_mult"),
        help="Steps that length grouping sorts together; 1 is padding to the longest of each step.",
    ),
]
Output: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="PICTURE", help="Draw the curves here: .svg, .png or .html; it must not exist."
    ),
]


def command(
    max_length: options.MaxLength,
    inputs: options.OptionalInputs = None,
    histogram: options.Histogram = None,
    devices: Devices = _DEVICES,
    batch_size: BatchSize = 16,
    max_sequences: options.MaxSequences = None,
    algorithm: options.Algorithm = "auto",
    quadratic_share: QuadraticShare = 0.0,
    step_overhead: StepOverhead = 0.0,
    packing_overhead: PackingOverhead = 0.0,
    unpadding_overhead: UnpaddingOverhead = 0.0,
    recompilation: Recompilation = 0.0,
    mega_batch_mult: MegaBatchMult = 50,
    output: Output = None,
    overflow: options.OverflowKind = "error",
    min_fragment: options.MinFragment = 1,
    token_column: options.TokenColumn = None,
    text_column: options.TextColumn = None,
    tokenizer: options.Tokenizer = None,
    json: options.Json = False,
) -> Callable[[], int]:
    """How many times as fast as padding packing, un-padding, sorting, length grouping and token budgets train.

    Every step ends when the slowest device is done, so unequal batches cost more the more devices there are.
    """

    def run() -> int:
        from brimful.cli.inputs import InputOptions, measure

        numbers = _numbers(devices)
        costs = CostModel(quadratic_share, step_overhead, packing_overhead, unpadding_overhead, recompilation)
        policy = OverflowPolicy(cast(Overflow, overflow), max_length, min_fragment)
        require_algorithm(algorithm)
        if output is not None:
            require_drawable(output)
        given = InputOptions(tuple(inputs or ()), histogram, token_column, text_column, tokenizer)
        with printing.row_progress("reading lengths", None) as progress:
            measured = measure(given, policy, progress)
        if not measured.histogram.n_sequences:
            raise LengthError(f"{measured.name}: there are no sequences, so there is nothing to train on")
        with printing.status("planning") as now:
            made = plan(measured.to_plan(algorithm), max_length, max_sequences, algorithm)
            now("simulating")
            result = simulate(made, numbers, batch_size, costs, mega_batch_mult=mega_batch_mult)
        if output is not None:
            draw(result, output)
        if json:
            written = None if output is None else str(output)
            figures = {"input": measured.name, **result.figures(), "output": written}
            printing.print_json({**figures, "ledger": asdict(measured.ledger)})
            return 0
        console = printing.output()
        console.print(measured.name, style="bold", soft_wrap=True)
        for line in assumptions(result):
            console.print(f"  {line}", style="dim", soft_wrap=True)
        console.print("\nTimes as fast as padding\n", style="bold")
        printing.print_table(console, simulation_table(result))
        console.print(f"\n{headline(result)}.")
        for note in notes(result):
            console.print(note)
        if output is not None:
            console.print(f"Drawn: {output}", soft_wrap=True)
        return 0

    return run


def _numbers(text: str) -> list[int]:
    """The whole numbers of a list with commas, each once, in order; their range is the library's to check."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise SettingError(f"--devices is whole numbers separated by commas, such as 1,8,64, not {shown(text)}")
    return sorted({int(part) for part in parts})
