"""brimful simulate: how much faster than padding each method is, from one device to thousands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from brimful.cli import options, printing
from brimful.errors import SettingError, shown
from brimful.lengths import LengthHistogram
from brimful.planning import plan, require_algorithm
from brimful.report.simulation import assumptions, draw, headline, require_drawable, simulation_table
from brimful.simulate import DEVICES, CostModel, simulate

_DEVICES = ",".join(map(str, DEVICES))

Histogram: TypeAlias = Annotated[
    Path, typer.Option("--histogram", metavar="FILE.csv", help="The lengths: a file with the header length,count.")
]
Devices: TypeAlias = Annotated[
    str, typer.Option("--devices", metavar="N,N,…", help="For how many devices, separated by commas.")
]
BatchSize: TypeAlias = Annotated[
    int,
    typer.Option(
        "--batch-size",
        metavar="B",
        parser=options.capacity("batch_size"),
        help="Rows of a device between two exchanges of gradients.",
    ),
]
QuadraticShare: TypeAlias = Annotated[
    float,
    typer.Option(
        "--quadratic-share",
        metavar="X",
        help="Share of a full row's time that is attention; about N / (N + 6 · hidden size) in a transformer.",
    ),
]
StepOverhead: TypeAlias = Annotated[
    float, typer.Option("--step-overhead", metavar="X", help="What any step takes beside, in padded steps.")
]
PackingOverhead: TypeAlias = Annotated[
    float,
    typer.Option(
        "--packing-overhead", metavar="X", help="How much longer a packed row takes than a padded one, such as 0.05."
    ),
]
UnpaddingOverhead: TypeAlias = Annotated[
    float,
    typer.Option("--unpadding-overhead", metavar="X", help="How much longer a token takes in kernels without padding."),
]
Recompilation: TypeAlias = Annotated[
    float,
    typer.Option(
        "--recompilation", metavar="X", help="What a compiler takes for each new shape in an epoch, in padded steps."
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
    histogram: Histogram,
    max_length: options.MaxLength,
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
    json: options.Json = False,
) -> Callable[[], int]:
    """How many times as fast as padding packing, un-padding, sorting, length grouping and token budgets train.

    Every step ends when the slowest device is done, so unequal batches cost more the more devices there are.
    """

    def run() -> int:
        numbers = _numbers(devices)
        costs = CostModel(quadratic_share, step_overhead, packing_overhead, unpadding_overhead, recompilation)
        require_algorithm(algorithm)
        if output is not None:
            require_drawable(output)
        with printing.status("planning") as now:
            made = plan(LengthHistogram.from_csv(histogram), max_length, max_sequences, algorithm)
            now("simulating")
            result = simulate(made, numbers, batch_size, costs, mega_batch_mult=mega_batch_mult)
        if output is not None:
            draw(result, output)
        if json:
            written = None if output is None else str(output)
            printing.print_json({"input": str(histogram), **result.figures(), "output": written})
            return 0
        console = printing.output()
        console.print(str(histogram), style="bold", soft_wrap=True)
        for line in assumptions(result):
            console.print(f"  {line}", style="dim", soft_wrap=True)
        console.print("\nTimes as fast as padding\n", style="bold")
        console.print(simulation_table(result))
        console.print(f"\n{headline(result)}.", soft_wrap=True)
        if output is not None:
            console.print(f"Drawn: {output}", soft_wrap=True)
        return 0

    return run


def _numbers(text: str) -> list[int]:
    """The whole numbers of a list with commas; their range is the library's to check."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 20 for part in parts):
        raise SettingError(f"--devices is whole numbers separated by commas, such as 1,8,64, not {shown(text)}")
    return [int(part) for part in parts]
