"""Faults that look like those of packing and are not: chance, memory, NaN, rounding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from brimful.errors import BrimfulError
from brimful.verify.calls import Outcome, Subject
from brimful.verify.cases import Case
from brimful.verify.equality import Comparison, Tolerance, compare, difference, dtype_name
from brimful.verify.isolation import isolate
from brimful.verify.report import Diagnosis, Leak

_AGREES = 1e-10  # in float64, where a fault of packing is as large as in any other dtype


def not_of_packing(
    subject: Subject,
    case: Case,
    vocabulary: Sequence[int],
    tolerance: Tolerance,
    comparison: Comparison,
    leaks: Sequence[Leak],
    in_float64: Callable[[], Subject],
) -> Diagnosis | None:
    """What is wrong with the model whatever it is packed with, or None if that is nothing.

    Args:
        subject: the model.
        case: rows for which something differs or leaks.
        vocabulary: the tokens to draw others from.
        tolerance: the largest difference that is none.
        comparison, leaks: what was found for the case.
        in_float64: makes the same subject in float64.

    Cost: two forward passes over the case, one for each of its sequences, and all runs of the case in float64.
    """
    return (
        _no_numbers(subject, case)
        or _not_repeatable(subject, case, tolerance)
        or _only_rounding(subject, case, vocabulary, comparison, leaks, in_float64)
    )


def _no_numbers(subject: Subject, case: Case) -> Diagnosis | None:
    with torch.no_grad():
        alone = [subject.run_alone(case, row, place) for row, place, _ in case.sequences()]
    for name in alone[0].outputs:
        if not all(bool(each.outputs[name].isfinite().all()) for each in alone if name in each.outputs):
            return Diagnosis(
                f"{name} is NaN or infinite for a sequence alone as well, so packing is not what is wrong",
                "look for weights that are NaN, a division by 0, or values beyond the range of the dtype",
            )
    return None


def _not_repeatable(subject: Subject, case: Case, tolerance: Tolerance) -> Diagnosis | None:
    with torch.no_grad():
        first, second = (_all(subject.run_packed(subject.packed(case))) for _ in range(2))
    amount = max((difference(second[name], first[name]) for name in first if name in second), default=0.0)
    if not tolerance.allowed < amount < math.inf:
        return None
    return Diagnosis(
        f"the same batch run twice differs by {amount:.1e}: dropout is left on, or the model keeps a state "
        "between calls",
        "switch dropout off in eval mode (functional.dropout takes training=self.training), and keep no state",
    )


def _all(outcome: Outcome) -> dict[str, torch.Tensor]:
    return outcome.outputs if outcome.loss is None else {**outcome.outputs, "loss": outcome.loss}


def _only_rounding(
    subject: Subject,
    case: Case,
    vocabulary: Sequence[int],
    comparison: Comparison,
    leaks: Sequence[Leak],
    in_float64: Callable[[], Subject],
) -> Diagnosis | None:
    worst = max((*(each.amount for each in comparison.differences), *(leak.amount for leak in leaks)))
    if subject.like.dtype is torch.float64 or worst == math.inf:
        return None
    try:
        precise = in_float64()
        exact = compare(precise, case, Tolerance(_AGREES, _AGREES), with_gradients="gradient" in comparison.worst)
        if exact.differences or isolate(precise, case, vocabulary, _AGREES).leaks:
            return None
    except BrimfulError:  # the model does not compute in float64
        return None
    dtype = dtype_name(subject.like.dtype)
    return Diagnosis(
        f"rounding only: in float64 the same rows agree to {max(exact.worst.values(), default=0.0):.0e}",
        f"allow more in {dtype}: a tolerance above {worst:.1e} (tolerance=…, or --tolerance)",
    )
