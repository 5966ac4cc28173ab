"""Pre-training on padded rows and on packs, then fine-tuning (tables 2 and 3).

`python -m experiments.fine_tuning` trains and prints; with --quick, for less than a minute. With --write the section
goes into docs/experiments.md, the figures into docs/fine_tuning.json and the picture into docs/fine_tuning.svg;
--picture makes section and picture anew from these figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import brimful
from brimful.plans import PackPlan
from brimful.tuning import TrainingSettings, keep_effective_batch
from experiments.commands import Figures, command
from experiments.corpora import documents, split, unseen
from experiments.dictionary_tasks import Tasks, answer_questions, tasks, tell_subjects
from experiments.fine_tuning_report import NONE, PACKED, PRETRAININGS, UNPACKED, section
from experiments.masked_pairs import (
    MAX_LENGTH,
    Batch,
    PretrainingData,
    packed_steps,
    padded_steps,
    pretraining_data,
)
from experiments.seeds import run_all
from experiments.small_bert import (
    Losses,
    Point,
    collator,
    held_out_batches,
    packed_losses,
    padded_losses,
    pretrain,
    small_bert,
)

ROWS, LEARNING_RATE = 32, 0.01
CORPUS = "dictionary"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is trained.

    Args:
        documents: the most entries of the dictionary to pre-train on, and to make both tasks of.
        steps: of pre-training without packing, of 32 rows.
        question_steps, subject_steps: of fine-tuning, of 16 packs.
        most: sequences to learn from, of each task.
        test: sequences to measure on, of each task.
        seeds: how many, from 0.
    """

    documents: int
    steps: int
    question_steps: int
    subject_steps: int
    most: int
    test: int
    seeds: int


SIZE = Size(40_000, steps=1500, question_steps=1000, subject_steps=300, most=16_000, test=1000, seeds=5)
QUICK_SIZE = Size(3000, steps=30, question_steps=20, subject_steps=20, most=1000, test=100, seeds=2)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One pre-training with what follows it, and all that another process needs for it."""

    pretraining: str
    settings: TrainingSettings
    data: PretrainingData
    plan: PackPlan
    tasks: Tasks
    size: Size
    seed: int


def train(run: Run) -> dict[str, Any]:
    """The figures of one run: of the pre-training its last point, and those of both tasks."""
    model = small_bert(run.data.vocabulary, run.seed)
    last: Point = {}
    if run.pretraining != NONE:
        losses, batches = feed(run, model)
        last = pretrain(model, batches, losses, run.settings, held_out_batches(run.data))[-1]
    return {
        "pretraining": run.pretraining,
        "seed": run.seed,
        **last,
        **answer_questions(model, run.tasks, run.size.question_steps, run.seed),
        **tell_subjects(model, run.tasks, run.size.subject_steps, run.seed),
    }


def feed(run: Run, model: Any) -> tuple[Callable[[Any, Batch], Losses], Iterator[Batch]]:
    """The losses and the batches of a pre-training."""
    rows = run.settings.rows_per_step
    if run.pretraining == UNPACKED:
        return padded_losses, padded_steps(run.data, rows, run.seed)
    return packed_losses, packed_steps(run.data, run.plan, rows, run.seed, collator(model))


def compute(size: Size) -> Figures:
    """Train everything; the figures of docs/fine_tuning.json."""
    data = pretraining_data({CORPUS: size.documents}, held_out=400)
    plan = brimful.plan(data.lengths, MAX_LENGTH)
    before = TrainingSettings(ROWS, LEARNING_RATE, size.steps, warmup_steps=size.steps // 10, optimizer="lamb")
    settings = {UNPACKED: before, PACKED: keep_effective_batch(before, plan).settings, NONE: before}
    train_on, held_out = split(documents(CORPUS))
    made = tasks(train_on[: size.documents], unseen(held_out, train_on), data.numbers, size.most, size.test)
    runs = [
        Run(name, settings[name], data, plan, made, size, seed) for seed in range(size.seeds) for name in PRETRAININGS
    ]
    return {
        **data.figures(),
        "size": asdict(size),
        "plan": plan.figures(),
        "settings": {name: asdict(settings[name]) for name in (UNPACKED, PACKED)},
        "subjects": made.subjects,
        "asked": len(made.asked),
        "unknown": len(made.unknown),
        "baselines": made.baselines,
        "runs": run_all(train, runs),
    }


def draw(figures: Figures, path: Path) -> None:
    """Write the picture; the ending of the path tells the format."""
    from experiments.fine_tuning_picture import picture

    picture(figures).save(path)


if __name__ == "__main__":
    command("fine_tuning", lambda quick: compute(QUICK_SIZE if quick else SIZE), section, draw)
