"""brimful tune: batch, steps and betas under packing, by two recipes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from brimful.cli import options, printing
from brimful.errors import SettingError, shown
from brimful.plans import PackPlan
from brimful.tuning import OPTIMIZERS, Recipe, TrainingSettings, recipes

PackingFactor: TypeAlias = Annotated[
    str,
    typer.Option("--packing-factor", metavar="P|PLAN.json", help="Sequences per pack, or the plan that says it."),
]
BatchSize: TypeAlias = Annotated[
    int,
    typer.Option(
        "--batch-size",
        metavar="B",
        parser=options.capacity("batch_size"),
        show_default=False,
        help="Sequences in a forward pass without packing.",
    ),
]
AccumulationSteps: TypeAlias = Annotated[
    int,
    typer.Option(
        "--accumulation-steps",
        metavar="A",
        parser=options.capacity("accumulation_steps"),
        help="Forward passes in an optimizer step.",
    ),
]
LearningRate: TypeAlias = Annotated[
    float, typer.Option("--learning-rate", metavar="X", show_default=False, help="At its highest.")
]
TotalSteps: TypeAlias = Annotated[
    int,
    typer.Option(
        "--total-steps",
        metavar="T",
        parser=options.capacity("total_steps"),
        show_default=False,
        help="Optimizer steps without packing.",
    ),
]
WarmupSteps: TypeAlias = Annotated[
    int, typer.Option("--warmup-steps", metavar="W", help="Those of them in which the learning rate rises.")
]
Betas: TypeAlias = Annotated[
    str, typer.Option("--betas", metavar="X,X", help="Decay of momentum and of velocity, with a comma between.")
]
Optimizer: TypeAlias = Annotated[
    str, typer.Option("--optimizer", metavar="NAME", help=f"One of {', '.join(OPTIMIZERS)}.")
]


def command(
    packing_factor: PackingFactor,
    batch_size: BatchSize,
    learning_rate: LearningRate,
    total_steps: TotalSteps,
    warmup_steps: WarmupSteps = 0,
    accumulation_steps: AccumulationSteps = 1,
    betas: Betas = "0.9,0.999",
    optimizer: Optimizer = "lamb",
    json: options.Json = False,
) -> Callable[[], int]:
    """Hyperparameters for packed training, from those that worked without packing.

    A step on packs sees more sequences. Two recipes: fewer packs a step and nothing else changed, or as many packs a
    step with other betas and fewer steps.
    """

    def run() -> int:
        settings = TrainingSettings(
            batch_size, learning_rate, total_steps, warmup_steps, accumulation_steps, _betas(betas), optimizer
        )
        factor = _factor(packing_factor)
        made = recipes(settings, factor)
        number = factor.packing_factor if isinstance(factor, PackPlan) else factor
        if json:
            printing.print_json(_to_json(settings, number, made))
            return 0
        console = printing.output()
        console.print(f"{number:.6g} sequences in a pack", style="bold")
        console.print()
        console.print(_table(settings, made))
        for recipe in made:
            console.print(f"\n{recipe.name[0].upper()}{recipe.name[1:]}", style="bold")
            for note in recipe.notes:
                console.print(Padding(note, (0, 0, 0, 2)))
            printing.print_command(console, " ", recipe.settings.code())
        return 0

    return run


def _to_json(settings: TrainingSettings, factor: float, made: tuple[Recipe, Recipe]) -> dict[str, Any]:
    effective, compute = (recipe.figures() for recipe in made)
    return {
        "packing_factor": factor,
        "unpacked": asdict(settings),
        "keep_effective_batch": effective,
        "keep_compute_batch": compute,
    }


def _table(settings: TrainingSettings, made: tuple[Recipe, Recipe]) -> Table:
    """The settings without packing, and by each recipe; what changes stands out."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 2))
    for title in ("", "without\npacking", "keep the\neffective batch", "keep the\ncompute batch"):
        table.add_column(title, justify="right" if title else "left", no_wrap=True)
    columns = [_column(settings, float(settings.rows_per_step))]
    columns += [_column(recipe.settings, recipe.sequences_per_step) for recipe in made]
    for name, before in columns[0].items():
        cells = (column[name] for column in columns[1:])
        table.add_row(name, before, *(Text(cell, "" if cell == before else "bold green") for cell in cells))
    return table


def _column(settings: TrainingSettings, sequences: float) -> dict[str, str]:
    return {
        "batch size": f"{settings.batch_size:,}",
        "accumulation steps": f"{settings.accumulation_steps:,}",
        "rows in a step": f"{settings.rows_per_step:,}",
        "sequences in a step": f"{sequences:,.6g}" if sequences < 10**6 else f"{sequences:,.0f}",
        "beta 1": f"{settings.betas[0]:.6g}",
        "beta 2": f"{settings.betas[1]:.6g}",
        "learning rate": f"{settings.learning_rate:g}",
        "warm-up steps": f"{settings.warmup_steps:,}",
        "optimizer steps": f"{settings.total_steps:,}",
    }


def _factor(text: str) -> float | PackPlan:
    """A number if it reads as one, otherwise the plan in the file of that name."""
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.exists():
        raise SettingError(f"--packing-factor is a number, such as 2.5, or a plan file; there is no file {shown(text)}")
    return PackPlan.load(path)


def _betas(text: str) -> tuple[float, float]:
    try:
        beta1, beta2 = (float(part) for part in text.split(","))
    except ValueError:
        raise SettingError(f"--betas are two numbers with a comma between: 0.9,0.999, not {shown(text)}") from None
    return beta1, beta2
