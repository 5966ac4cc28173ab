"""From what failed to where it starts and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from brimful.models.rules import PackingRule
from brimful.torch.checks import IGNORED
from brimful.verify.calls import Batch, Subject
from brimful.verify.cases import Case
from brimful.verify.causes import find_cause
from brimful.verify.equality import Comparison, Tolerance, compare
from brimful.verify.isolation import isolate
from brimful.verify.other_faults import not_of_packing
from brimful.verify.parts import first_part
from brimful.verify.report import Diagnosis, Leak


def diagnose(
    subject: Subject,
    case: Case,
    rule: PackingRule,
    vocabulary: Sequence[int],
    tolerance: Tolerance,
    comparison: Comparison,
    leaks: Sequence[Leak],
    in_float64: Callable[[], Subject],
) -> Diagnosis:
    """Where a case that failed goes wrong first, the likely cause, and the remedy; or that it could not be found.

    Args:
        subject: the model.
        case: rows for which something differs or leaks.
        rule: how the model is to be packed.
        vocabulary: the tokens to draw others from.
        tolerance: the largest difference that is none.
        comparison, leaks: what was found for the case.
        in_float64: makes the same subject in float64.
    """
    try:
        return not_of_packing(subject, case, vocabulary, tolerance, comparison, leaks, in_float64) or _of_packing(
            subject, case, rule, vocabulary, tolerance, comparison, leaks
        )
    except Exception as fault:  # a cause that cannot be found must not hide what was found
        return Diagnosis(
            f"not found, for the search for it failed with {type(fault).__name__}: {fault}",
            "start from the largest difference or leak that is reported",
        )


def _of_packing(
    subject: Subject,
    case: Case,
    rule: PackingRule,
    vocabulary: Sequence[int],
    tolerance: Tolerance,
    comparison: Comparison,
    leaks: Sequence[Leak],
) -> Diagnosis:
    if comparison.per_row and not leaks and comparison.worst.get("output", 0.0) <= tolerance.if_float32:
        return Diagnosis(
            f"{', '.join(comparison.per_row)} has one value per row, of its first sequence, not one per sequence",
            "for BERT's family, brimful.models.packed_encoder.PackedEncoder gives it for each sequence",
        )
    if comparison.differs("output") or leaks:
        small = _smallest(subject, case, vocabulary, tolerance, bool(leaks))
        part = first_part(subject, small, tolerance.allowed)
        found = find_cause(subject, small, rule, vocabulary, tolerance, part)
        if part is None:
            return found
        return replace(found, part=part.name or part.class_name, part_class=part.class_name, amount=part.amount)
    if comparison.differs("loss"):
        return _of_the_loss(subject, case, tolerance)
    return Diagnosis(
        "outputs agree but gradients do not: something is detached, or has a backward of its own",
        "compare the gradients of the parameter that differs most in its part of the model",
    )


def _smallest(subject: Subject, case: Case, vocabulary: Sequence[int], tolerance: Tolerance, leaks: bool) -> Case:
    """One row of the case that fails by itself, of those the one with the most sequences; or else the case."""
    for row in sorted(range(len(case.rows)), key=lambda row: -len(case.rows[row])):
        small = case.only(row)
        if compare(subject, small, tolerance, with_gradients=False).differs("output"):
            return small
        if leaks and isolate(subject, small, vocabulary, tolerance.allowed).leaks:
            return small
    return case


def _of_the_loss(subject: Subject, case: Case, tolerance: Tolerance) -> Diagnosis:
    """Outputs agree and the loss does not: a target across a boundary, or a mean over the wrong things."""

    def without_first(batch: Batch, case: Case) -> Batch:
        labels = batch.get("labels")
        if not isinstance(labels, torch.Tensor) or labels.shape != batch["input_ids"].shape:
            return batch
        labels = labels.clone()
        for row, first, _ in subject.places(case, batch).spans:
            labels[row, first] = IGNORED
        return {**batch, "labels": labels}

    if _loss_agrees(subject.with_batch(without_first), case, tolerance):
        return Diagnosis(
            "a sequence's first token is a target: the model shifts labels, and predicts it from the sequence before",
            "set the label of each sequence's first token to -100, as PackedCollator with causal=True does",
            tried=True,
        )
    if len(case.rows) > 1 and all(_loss_agrees(subject, case.only(row), tolerance) for row in range(len(case.rows))):
        return Diagnosis(
            "each row by itself has the right loss, but the batch has not: it is averaged per row, that is per pack",
            "divide the sum over all tokens, or all sequences, of the batch by their number: see brimful.torch.losses",
        )
    return Diagnosis(
        "the loss is neither the mean over the tokens of all sequences nor the mean over sequences of their losses",
        "compute it with brimful.torch.losses",
    )


def _loss_agrees(subject: Subject, case: Case, tolerance: Tolerance) -> bool:
    return not compare(subject, case, tolerance, with_gradients=False).differs("loss")
