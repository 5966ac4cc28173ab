"""Learning curves (figure 3): a small BERT on padded rows and on packs, by each recipe for hyperparameters.

`python -m experiments.learning_curves` trains and prints; with --quick, for less than a minute. With --write the
section goes into docs/experiments.md, the figures and the picture into docs/learning_curves.json and .svg; --picture
makes section and picture anew from these figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import brimful
from brimful.plans import PackPlan
from brimful.tuning import TrainingSettings, recipes
from experiments.commands import Figures, command
from experiments.learning_curves_report import (
    BETAS_STAY,
    COMPUTE,
    EFFECTIVE,
    RATE_SCALED,
    SAME,
    UNPACKED,
    UNPACKED_SCALED,
    section,
)
from experiments.masked_pairs import (
    FULL,
    MAX_LENGTH,
    QUICK,
    Batch,
    PretrainingData,
    packed_steps,
    padded_steps,
    pretraining_data,
    repacked_steps,
)
from experiments.seeds import run_all
from experiments.small_bert import Point, collator, held_out_batches, packed_losses, padded_losses, pretrain, small_bert

ROWS, LEARNING_RATE = 32, 0.01
PADDED = (UNPACKED, UNPACKED_SCALED)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is trained.

    Args:
        documents: for each corpus, the most documents to learn from.
        steps: optimizer steps without packing, of 32 rows.
        seeds: how many, from 0.
        points: measurements on a curve.
        held_out: pairs that are measured on.
    """

    documents: Mapping[str, int]
    steps: int
    seeds: int
    points: int
    held_out: int


SIZE = Size(FULL, steps=800, seeds=4, points=20, held_out=400)
QUICK_SIZE = Size(QUICK, steps=30, seeds=2, points=6, held_out=100)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One training, with all that another process needs for it."""

    training: str
    settings: TrainingSettings
    data: PretrainingData
    plan: PackPlan
    seed: int
    points: int


def trainings(steps: int, plan: PackPlan) -> dict[str, TrainingSettings]:
    """The settings of each training: those without packing, and what the recipes make of them."""
    before = TrainingSettings(ROWS, LEARNING_RATE, steps, warmup_steps=steps // 10, optimizer="lamb")
    effective, compute = (recipe.settings for recipe in recipes(before, plan))
    factor = plan.histogram.n_sequences / plan.packs
    return {
        UNPACKED: before,
        UNPACKED_SCALED: replace(before, learning_rate=before.learning_rate * factor),
        SAME: before,
        EFFECTIVE: effective,
        COMPUTE: compute,
        BETAS_STAY: replace(compute, betas=before.betas),
        RATE_SCALED: replace(compute, learning_rate=compute.learning_rate * factor),
    }


def train(run: Run) -> list[Point]:
    """The curve of one run."""
    model = small_bert(run.data.vocabulary, run.seed)
    losses = padded_losses if run.training in PADDED else packed_losses
    return pretrain(model, batches(run, model), losses, run.settings, held_out_batches(run.data), run.points)


def batches(run: Run, model: object) -> Iterator[Batch]:
    """The batches of a run, one for each step."""
    rows = run.settings.rows_per_step
    if run.training in PADDED:
        return padded_steps(run.data, rows, run.seed)
    if run.training == SAME:
        return repacked_steps(run.data, rows, run.seed, collator(model))
    return packed_steps(run.data, run.plan, rows, run.seed, collator(model))


def compute(size: Size) -> Figures:
    """Train everything; the figures of docs/learning_curves.json."""
    data = pretraining_data(size.documents, size.held_out)
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    settings = trainings(size.steps, plan)
    runs = [Run(name, settings[name], data, plan, seed, size.points) for seed in range(size.seeds) for name in settings]
    curves = run_all(train, runs)
    return {
        **data.figures(),
        "size": asdict(size),
        "plan": plan.figures(),
        "settings": {name: asdict(each) for name, each in settings.items()},
        "runs": [
            {"training": run.training, "seed": run.seed, "curve": curve}
            for run, curve in zip(runs, curves, strict=True)
        ],
    }


def draw(figures: Figures, path: Path) -> None:
    """Write the picture; the ending of the path tells the format."""
    from experiments.curves_picture import learning_curves

    learning_curves(figures).save(path)


if __name__ == "__main__":
    command("learning_curves", lambda quick: compute(QUICK_SIZE if quick else SIZE), section, draw)
