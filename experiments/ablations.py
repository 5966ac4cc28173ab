"""Ablations (figure 4): packed training of a small BERT with one part of it left out at a time.

`python -m experiments.ablations` trains and prints; with --quick, for less than a minute. With --write the section goes
into docs/experiments.md, the figures into docs/ablations.json and the picture into docs/ablations.svg; --picture makes
section and picture anew from these figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import brimful
from brimful.plans import PackPlan
from brimful.torch.losses import cross_entropy
from brimful.tuning import TrainingSettings, keep_effective_batch
from experiments.ablations_report import MASK, NEXT_SENTENCE, NOTHING, PARTS, POSITIONS, SEQUENCE_LOSS, section
from experiments.commands import Figures, command
from experiments.learning_curves import LEARNING_RATE, ROWS, Size
from experiments.masked_pairs import (
    FULL,
    IGNORED,
    LABEL,
    QUICK,
    Batch,
    PretrainingData,
    packed_steps,
    pretraining_data,
)
from experiments.seeds import run_all
from experiments.small_bert import (
    LONGEST_PACK,
    Losses,
    Point,
    collator,
    held_out_batches,
    packed_losses,
    packed_outputs,
    pretrain,
    small_bert,
    word_losses,
)

SIZE = Size(FULL, steps=1200, seeds=4, points=20, held_out=400)
QUICK_SIZE = Size(QUICK, steps=45, seeds=2, points=5, held_out=100)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One training, with all that another process needs for it."""

    without: str
    settings: TrainingSettings
    data: PretrainingData
    plan: PackPlan
    seed: int
    points: int


def train(run: Run) -> list[Point]:
    """The curve of one run."""
    model = small_bert(run.data.vocabulary, run.seed)
    batches = packed_steps(
        run.data, run.plan, run.settings.rows_per_step, run.seed, collator(model, run.plan.max_length)
    )
    return pretrain(model, batches, LOSSES[run.without], run.settings, held_out_batches(run.data), run.points)


def without_mask(model: Any, batch: Batch) -> Losses:
    """Every token sees the whole pack; padding is still hidden."""
    return packed_losses(model, batch | {"attention_mask": (batch["segment_ids"] > 0).long()})


def without_reset(model: Any, batch: Batch) -> Losses:
    """Positions count on through the pack."""
    slots = torch.arange(batch["input_ids"].shape[1])
    return packed_losses(model, batch | {"position_ids": slots.expand_as(batch["input_ids"])})


def by_pack(model: Any, batch: Batch) -> Losses:
    """Means over packs of what each pack loses on average."""
    hidden, scores = packed_outputs(model, batch)
    labels, pairs = batch["labels"], batch[LABEL]
    words = hidden.new_zeros(labels.shape).masked_scatter(labels != IGNORED, word_losses(model, hidden, labels))
    return Losses(_mean_of_packs(words, labels), _mean_of_packs(cross_entropy(scores, pairs), pairs))


def _mean_of_packs(losses: Tensor, labels: Tensor) -> Tensor:
    """The mean over rows of their means over what has a label; rows without any are left out."""
    counts = (labels != IGNORED).sum(1)
    return (losses.sum(1) / counts.clamp(min=1))[counts > 0].mean()


def without_next_sentence(model: Any, batch: Batch) -> Losses:
    """Hidden words alone."""
    words = packed_losses(model, batch).words
    return Losses(words, torch.zeros_like(words))


LOSSES: dict[str, Callable[[Any, Batch], Losses]] = {
    NOTHING: packed_losses,
    MASK: without_mask,
    POSITIONS: without_reset,
    SEQUENCE_LOSS: by_pack,
    NEXT_SENTENCE: without_next_sentence,
}
"""The losses of a batch with each part left out."""


def compute(size: Size) -> Figures:
    """Train everything; the figures of docs/ablations.json."""
    data = pretraining_data(size.documents, size.held_out)
    plan = brimful.plan(data.lengths, LONGEST_PACK)
    before = TrainingSettings(ROWS, LEARNING_RATE, size.steps, warmup_steps=size.steps // 10, optimizer="lamb")
    settings = keep_effective_batch(before, plan).settings
    runs = [Run(part, settings, data, plan, seed, size.points) for seed in range(size.seeds) for part in PARTS]
    curves = run_all(train, runs)
    return {
        **data.figures(),
        "size": asdict(size),
        "plan": plan.figures(),
        "settings": asdict(settings),
        "runs": [
            {"without": run.without, "seed": run.seed, "curve": curve} for run, curve in zip(runs, curves, strict=True)
        ],
    }


def draw(figures: Figures, path: Path) -> None:
    """Write the picture; the ending of the path tells the format."""
    from experiments.curves_picture import ablations

    ablations(figures).save(path)


if __name__ == "__main__":
    command("ablations", lambda quick: compute(QUICK_SIZE if quick else SIZE), section, draw)
