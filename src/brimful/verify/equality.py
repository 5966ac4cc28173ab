"""Packed against separate: outputs, loss and the gradients of every parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brimful.errors import DataError
from brimful.torch.checks import IGNORED
from brimful.verify.calls import Outcome, Subject
from brimful.verify.cases import Case, sequence_name
from brimful.verify.places import Places
from brimful.verify.report import Difference

_CLASSES_SUMMED_WELL = 2**14  # in float32, to 1e-5; measured up to 2^20 classes


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest difference that is allowed.

    Args:
        allowed: of all that is computed in the dtype of the model.
        if_float32: the same for what a model in another dtype computes in float32; no less than in that dtype.
        grows: whether gradients may differ by more where they are sums over a large vocabulary.
    """

    allowed: float
    if_float32: float
    grows: bool = False

    def of_gradients(self, classes: int, in_float32: bool) -> float:
        """The largest difference of gradients that are sums over so many classes."""
        return (self.if_float32 if in_float32 else self.allowed) * max(1.0, self.grows * classes / _CLASSES_SUMMED_WELL)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of one case in one dtype.

    Args:
        worst: the largest difference of "output", "loss" and "gradient"; what was not compared is left out.
        allowed: what was allowed of each.
        differences: those above the tolerance: of each output that of the sequence that differs most, of the gradients
            the largest.
        per_row: outputs with one value per row, where rows hold several sequences.
        in_float32: whether the model computes in float32 in places although it was put in float64.
    """

    worst: dict[str, float]
    allowed: dict[str, float]
    differences: list[Difference]
    per_row: list[str]
    in_float32: bool

    def differs(self, what: str) -> bool:
        """Whether an "output", the "loss" or a "gradient" is not the same."""
        return any(each.what == what for each in self.differences)


def compare(subject: Subject, case: Case, tolerance: Tolerance, with_gradients: bool = True) -> Comparison:
    """Run a case packed, and each of its sequences alone, and compare.

    Gradients are those of the model's own loss, if it computes one, plus a fixed random sum of its outputs, so that
    outputs of which no loss is made count as well.

    Args:
        subject: the model.
        case: what to run.
        tolerance: the largest difference that is allowed.
        with_gradients: whether to run backward.

    Raises:
        DataError: the model or its collate fails, or returns nothing to compare.

    Cost: forward and backward over the case's tokens, twice.
    """
    with torch.set_grad_enabled(with_gradients):
        batch = subject.packed(case)
        places = subject.places(case, batch)
        packed = subject.run_packed(batch)
        alone = [subject.run_alone(case, row, place) for row, place, _ in case.sequences()]
    dtype = subject.like.dtype
    per_row = _per_row(packed, places, case)
    compared = {name: each for name, each in packed.outputs.items() if places.kind(each) != "row"}
    if not compared and not per_row and packed.loss is None:
        raise DataError(f"{type(subject.model).__name__} returns neither outputs nor a loss in floating point")
    in_float32 = dtype is torch.float64 and any(
        each.dtype is not dtype or _converts(each) for each in compared.values()
    )
    loss_converts = packed.loss is not None and packed.loss.dtype is not dtype
    allowed = tolerance.if_float32 if in_float32 else tolerance.allowed
    found = [Difference("output", name, dtype_name(dtype), str(case), "", math.inf, allowed) for name in per_row]
    worst: dict[str, float] = {}
    limits: dict[str, float] = {}

    def note(what: str, name: str, where: str, amount: float, allowed: float) -> None:
        worst[what], limits[what] = max(worst.get(what, 0.0), amount), allowed
        if not amount <= allowed:
            found.append(Difference(what, name, dtype_name(dtype), str(case), where, amount, allowed))

    for name, output in compared.items():
        amounts = {}
        for number, (row, place, _) in enumerate(case.sequences()):
            same = places.of_alone(alone[number].outputs.get(name), output)
            amounts[sequence_name(row, place)] = difference(places.of(output, number), same)
        where = max(amounts, key=lambda each: amounts[each])
        note("output", name, where, amounts[where], allowed)
    weights = _loss_weights(packed, alone, case)
    if packed.loss is not None and weights:
        amount = difference(packed.loss, _weighted(alone, weights))
        note("loss", "the model's own", "", amount, tolerance.if_float32 if loss_converts else allowed)
    if with_gradients and (compared or weights):
        with_loss = [] if loss_converts else weights
        name, amount = _gradient_difference(subject, packed, alone, compared, places, with_loss)
        classes = max((output.shape[-1] for output in compared.values()), default=1)
        note("gradient", name, "", amount, tolerance.of_gradients(classes, in_float32))
    return Comparison(worst, limits, found, per_row, in_float32)


def difference(one: Tensor, other: Tensor) -> float:
    """The largest difference, as a share of the largest value of the other, or of 1; inf for NaN, or other shapes.

    Example:
        >>> difference(torch.tensor([1.0, 20.0]), torch.tensor([1.0, 10.0]))
        1.0
    """
    if one.shape != other.shape:
        return math.inf
    if not one.numel():
        return 0.0
    amount = float((one.detach() - other.detach()).abs().max()) / max(1.0, float(other.detach().abs().max()))
    return amount if math.isfinite(amount) else math.inf


def dtype_name(dtype: torch.dtype) -> str:
    """float32, not torch.float32."""
    return str(dtype).removeprefix("torch.")


def _per_row(packed: Outcome, places: Places, case: Case) -> list[str]:
    if all(len(row) == 1 for row in case.rows):
        return []
    return [name for name, output in packed.outputs.items() if places.kind(output) == "row"]


def _converts(output: Tensor) -> bool:
    """Whether values that this was computed from went through another dtype."""
    reached, waiting = set(), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in reached:
            continue
        if node.name().startswith("ToCopyBackward"):
            return True
        reached.add(node)
        waiting += [below for below, _ in node.next_functions]
    return False


def _loss_weights(packed: Outcome, alone: Sequence[Outcome], case: Case) -> list[float]:
    """How much each sequence's own loss counts in the packed one: by its targets, or all alike, whichever agrees.

    A model that shifts labels inside has one target less than there are labels in a sequence.
    """
    losses = [each.loss for each in alone]
    if packed.loss is None or any(loss is None for loss in losses):
        return []
    labels = [sequence.get("labels", sequence["input_ids"]) for _, _, sequence in case.sequences()]
    by_token = [each if isinstance(each, list) else [] for each in labels]  # else none: one per sequence
    shifted = [sum(label != IGNORED for label in each[1:]) for each in by_token]
    targets = [sum(label != IGNORED for label in each) for each in by_token]
    finite = [float(loss is not None and bool(loss.isfinite())) for loss in losses]
    found: list[tuple[float, list[float]]] = []
    for counts in (shifted, targets, finite):
        if not (total := sum(counts)) or any(count and not good for count, good in zip(counts, finite, strict=True)):
            continue
        weights = [count / total for count in counts]
        found.append((difference(packed.loss, _weighted(alone, weights)), weights))
    return min(found, key=lambda each: each[0], default=(math.inf, []))[1]


def _weighted(alone: Sequence[Outcome], weights: Sequence[float]) -> Tensor:
    terms = [
        weight * each.loss for weight, each in zip(weights, alone, strict=True) if weight and each.loss is not None
    ]
    return torch.stack(terms).sum()


def _gradient_difference(
    subject: Subject,
    packed: Outcome,
    alone: Sequence[Outcome],
    compared: dict[str, Tensor],
    places: Places,
    weights: Sequence[float],
) -> tuple[str, float]:
    """The parameter whose gradients differ most, and how much, as a share of the largest gradient of all or of 1.

    A gradient that is 0 by cancellation, as that of a query that sees one key, is as exact as what it is the sum of.
    """
    parameters = [(name, each) for name, each in subject.model.named_parameters() if each.requires_grad]
    generator = torch.Generator().manual_seed(0)
    tokens = sum(end - first for _, first, end in places.spans)
    together = [packed.loss] if weights and packed.loss is not None else []
    apart = [_weighted(alone, weights)] if weights else []
    for name, output in compared.items():
        for number, outcome in enumerate(alone):
            one, other = places.of(output, number), places.of_alone(outcome.outputs.get(name), output)
            factors = torch.randn(one.shape, generator=generator, dtype=torch.float64).to(one) / tokens
            together.append((one * factors).sum())
            apart.append((other * factors).sum() if other.shape == one.shape else other.sum() * 0)
    gradients = [_gradients(torch.stack(terms).sum(), [each for _, each in parameters]) for terms in (together, apart)]
    scale = max(1.0, *(float(each.abs().max()) for each in gradients[1] if each.numel()))
    amounts = {
        name: difference(one / scale, other / scale)
        for (name, _), one, other in zip(parameters, *gradients, strict=True)
    }
    worst = max(amounts, key=lambda name: amounts[name])
    return worst, amounts[worst]


def _gradients(objective: Tensor, parameters: Sequence[Tensor]) -> list[Tensor]:
    if not objective.requires_grad:  # all was detached
        return [torch.zeros_like(each) for each in parameters]
    found = torch.autograd.grad(objective, list(parameters), allow_unused=True)
    return [torch.zeros_like(each) if one is None else one for each, one in zip(parameters, found, strict=True)]
