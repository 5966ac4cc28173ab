"""Fine-tuning on two tasks that a dictionary gives: where is the answer to this question, and which subject is this of.

Training is on packs, whatever the pre-training was, so that nothing else differs. Figures are of documents held out,
each sequence alone in its row.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from transformers import BertForQuestionAnswering, BertForSequenceClassification

import brimful
from brimful.models import PackedEncoder
from brimful.torch.padding import pad_collate
from brimful.tuning import TrainingSettings
from brimful.validation import IntArray
from experiments.corpora import (
    Document,
    Labelled,
    SpanQuestion,
    frequent_labels,
    labelled,
    questions,
    span_f1,
    tokenizer,
)
from experiments.corpora.baselines import bag_of_words_accuracy, majority_accuracy, span_baselines
from experiments.masked_pairs import MAX_LENGTH, PAD, Batch, Row, pack_batches, renumbered
from experiments.small_bert import collator, configuration, descend

Item = TypeVar("Item")

PACKS, LEARNING_RATE = 16, 0.003
_LONGEST_ANSWER = 30
_ROWS = 50


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """What is fine-tuned on, in the vocabulary of the pre-training.

    Args:
        questions: rows of questions with a passage, to learn from.
        asked: those that are held out, each with the question that its row was made of.
        entries: rows of entries with the number of their subject, to learn from.
        unknown: those that are held out.
        subjects: their names.
        baselines: figures of what can be had without a model.
    """

    questions: list[Row]
    asked: list[tuple[Row, SpanQuestion]]
    entries: list[Row]
    unknown: list[Row]
    subjects: list[str]
    baselines: dict[str, dict[str, float]]


def tasks(train: Sequence[Document], held_out: Sequence[Document], numbers: IntArray, most: int, test: int) -> Tasks:
    """Both tasks from documents of a dictionary.

    Args:
        train, held_out: the documents.
        numbers: the vocabulary; see `masked_pairs.frequent_tokens`.
        most: the most sequences to learn from, of each task.
        test: the most sequences to measure on, of each task.
    """
    by = tokenizer()
    subjects = frequent_labels(train)
    asked = questions(held_out, by, MAX_LENGTH, test)
    known, unknown = (
        labelled(each, by, subjects, MAX_LENGTH)[:number] for each, number in ((train, most), (held_out, test))
    )
    spans = {name: {"exact": exact, "f1": f1} for name, (exact, f1) in span_baselines(asked, by).items()}
    return Tasks(
        [_question_row(question, numbers) for question in questions(train, by, MAX_LENGTH, most)],
        [(_question_row(question, numbers), question) for question in asked],
        [_entry_row(entry, numbers) for entry in known],
        [_entry_row(entry, numbers) for entry in unknown],
        subjects,
        {
            **spans,
            "most frequent subject": {"accuracy": majority_accuracy(known, unknown)},
            "bag of words": {"accuracy": bag_of_words_accuracy(known, unknown, by.get_vocab_size())},
        },
    )


def _question_row(question: SpanQuestion, numbers: IntArray) -> Row:
    return {
        "input_ids": renumbered(question.input_ids, numbers),
        "token_type_ids": question.token_type_ids,
        "start_positions": question.start_position,
        "end_positions": question.end_position,
    }


def _entry_row(entry: Labelled, numbers: IntArray) -> Row:
    return {"input_ids": renumbered(entry.input_ids, numbers), "labels": entry.label}


def answer_questions(pretrained: Any, data: Tasks, steps: int, seed: int) -> dict[str, float]:
    """Fine-tune for questions; the shares of `exact` answers, and the mean `f1` over tokens, of those held out."""
    torch.manual_seed(seed)
    model = BertForQuestionAnswering(configuration(pretrained.config.vocab_size))
    _fine_tune(model, pretrained, data.questions, steps, seed)
    exact, f1 = [], []
    for rows in _batched(data.asked):
        batch = pad_collate([row for row, _ in rows], PAD)
        starts, ends = best_spans(model, batch)
        for (_, question), start, end in zip(rows, starts, ends, strict=True):
            exact.append((start, end) == (question.start_position, question.end_position))
            f1.append(span_f1(start, end, question))
    return {"exact": statistics.fmean(exact), "f1": statistics.fmean(f1)}


@torch.no_grad()
def best_spans(model: Any, batch: Batch) -> tuple[list[int], list[int]]:
    """For each row the likeliest first and last token of an answer: in the passage, in order, of at most 30 tokens."""
    outputs = model(**{name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")})
    outside = (batch["token_type_ids"] == 0) | (batch["attention_mask"] == 0)
    starts, ends = (scores.masked_fill(outside, -torch.inf) for scores in (outputs.start_logits, outputs.end_logits))
    pairs = starts[:, :, None] + ends[:, None, :]
    in_order = torch.ones_like(pairs[0], dtype=torch.bool).triu().tril(_LONGEST_ANSWER - 1)
    best = pairs.masked_fill(~in_order, -torch.inf).flatten(1).argmax(1)
    return (best // starts.shape[1]).tolist(), (best % starts.shape[1]).tolist()


def tell_subjects(pretrained: Any, data: Tasks, steps: int, seed: int) -> dict[str, float]:
    """Fine-tune for subjects; the share of right ones, `accuracy`, of those held out."""
    torch.manual_seed(seed)
    config = configuration(pretrained.config.vocab_size, num_labels=len(data.subjects))
    model = BertForSequenceClassification(config)
    _fine_tune(model, pretrained, data.entries, steps, seed)
    right = []
    for rows in _batched(data.unknown):
        batch = pad_collate(rows, PAD)
        with torch.no_grad():
            scores: Tensor = model(batch["input_ids"], batch["attention_mask"]).logits
        right += (scores.argmax(-1) == batch["labels"]).tolist()
    return {"accuracy": statistics.fmean(right)}


def _fine_tune(model: Any, pretrained: Any, rows: Sequence[Row], steps: int, seed: int) -> None:
    """Put the pre-trained encoder under the head, and train both on packs with AdamW."""
    model.bert.load_state_dict(_shared(pretrained.bert.state_dict(), model.bert.state_dict()))
    packed = PackedEncoder(model)
    settings = TrainingSettings(PACKS, LEARNING_RATE, steps, warmup_steps=steps // 10, optimizer="adamw")
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, betas=settings.betas)
    batches = _packs(rows, seed, packed)
    for step in range(1, steps + 1):
        loss = packed(**next(batches)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        descend(optimizer, step, settings)


def _batched(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[at : at + _ROWS] for at in range(0, len(items), _ROWS))


def _shared(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights that are wanted: a model for questions has no pooler."""
    return {name: weights[name] for name in wanted}


def _packs(rows: Sequence[Row], seed: int, packed: PackedEncoder) -> Iterator[Batch]:
    plan = brimful.plan([len(row["input_ids"]) for row in rows], MAX_LENGTH)
    collate = collator(packed.model, columns=packed.sequence_columns)
    for epoch in itertools.count():
        yield from pack_batches(rows, plan, min(PACKS, plan.packs), seed, epoch, collate)
