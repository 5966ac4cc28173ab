"""brimful tune: batch, steps and betas under packing, by two recipes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from brimful.cli import options, printing
from brimful.errors import DataError, PlanError, SettingError, shown
from brimful.plans import PackPlan
from brimful.resources.plan_json import FORMAT as RESOURCE_PLAN
from brimful.tuning import OPTIMIZERS, Recipe, TrainingSettings, recipes
from brimful.untrusted import read_plan

PackingFactor: TypeAlias = Annotated[
    str,
    typer.Option(
        "--packing-factor",
        metavar="P|PATH",
        show_default=False,
        help="Sequences per pack; or what says it: a plan file, or the folder that brimful pack wrote.",
    ),
]
BatchSize: TypeAlias = Annotated[
    int,
    typer.Option(
        "--batch-size",
        metavar="B",
        parser=options.capacity("batch_size"),
        show_default=False,
        help="Sequences in a forward pass without packing, of one device or of all; packs are then counted likewise.",
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
    float,
    typer.Option(
        "--learning-rate",
        metavar="X",
        parser=options.number("learning_rate"),
        show_default=False,
        help="At its highest.",
    ),
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
    int,
    typer.Option(
        "--warmup-steps",
        metavar="W",
        parser=options.whole("warmup_steps"),
        help="Those of them in which the learning rate rises.",
    ),
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
    optimizer: Optimizer = "adamw",
    json: options.Json = False,
) -> Callable[[], int]:
    """Hyperparameters for packed training, from those that worked without packing.

    A step on packs sees more sequences. Two recipes: fewer packs a step and nothing else changed, or as many packs a
    step with other betas and fewer steps.
    """

    def run() -> int:
        name = optimizer.lower() if optimizer.lower() in OPTIMIZERS else optimizer
        settings = TrainingSettings(
            batch_size, learning_rate, total_steps, warmup_steps, accumulation_steps, _betas(betas), name
        )
        factor = _factor(packing_factor)
        made = recipes(settings, factor)
        number = factor.packing_factor if isinstance(factor, PackPlan) else float(factor)
        if json:
            printing.print_json(_to_json(settings, number, made))
            return 0
        console = printing.output()
        console.print(f"{number:.6g} sequences in a pack", style="bold")
        console.print()
        printing.print_table(console, _table(settings, made))
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


def _factor(text: str) -> float | Fraction | PackPlan:
    """A number if it reads as one, otherwise what the file or folder of that name says."""
    try:
        return options.number("packing_factor")(text)
    except typer.BadParameter:
        path = Path(text)
    if not text.strip() or not path.exists():
        raise SettingError(
            "--packing-factor is a number, such as 2.5, a plan file or a folder that brimful pack wrote; "
            f"there is none named {shown(text)}"
        )
    return _from_file(path)


def _from_file(path: Path) -> Fraction | PackPlan:
    """The plan in this file, or what the manifest of this packed folder says."""
    from brimful.tables.manifest import FORMAT, MANIFEST, Manifest

    path = path / MANIFEST if path.is_dir() else path
    if not path.exists():
        raise DataError(f"{path.parent}: there is no {MANIFEST}; give a folder that brimful pack has written")
    kind = read_plan(path, lambda value: value.get("format") if isinstance(value, dict) else None)
    if kind == RESOURCE_PLAN:
        raise PlanError(f"{path}: a plan of resources; give the packing factor that brimful plan printed, as a number")
    if kind == FORMAT and path.name == MANIFEST:
        figures = Manifest.load(path.parent).figures
        sequences, packs = (figures.get(name) for name in ("sequences", "packs"))
        if type(sequences) is not int or type(packs) is not int or not 0 <= packs <= sequences:
            raise DataError(f"{path}: figures say how many packs there are, and of at least as many sequences")
        if packs:
            return Fraction(sequences, packs)
    elif (plan := PackPlan.load(path)).packs:
        return plan
    raise DataError(f"{path}: holds no sequences, so it has no packing factor; give it as a number")


def _betas(text: str) -> tuple[float, float]:
    try:
        beta1, beta2 = map(options.number("beta"), text.split(","))
    except (ValueError, typer.BadParameter):
        raise SettingError(f"--betas are two numbers with a comma between: 0.9,0.999, not {shown(text)}") from None
    return beta1, beta2
