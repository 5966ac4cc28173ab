"""Which module of the model is the first to give another output, by hooks on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from brimful.verify.calls import Subject
from brimful.verify.cases import Case
from brimful.verify.equality import difference
from brimful.verify.places import Places


@dataclass(frozen=True, slots=True)
class Part:
    """A module of the model, and how far its output is off."""

    name: str
    class_name: str
    amount: float


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """One call of one module: the floating-point tensors that went in and came out."""

    name: str
    class_name: str
    inputs: list[Tensor]
    outputs: list[Tensor]


def first_part(subject: Subject, case: Case, tolerance: float) -> Part | None:
    """The first module whose output for a sequence differs from what it gives that sequence alone.

    Modules are taken in the order in which they finish. If what went into that module differed already, as it does for
    the projection that follows an attention which is no module of its own, the smallest module around it counts into
    which the same went. None if no module differs.

    Args:
        subject: the model.
        case: rows of which something differs.
        tolerance: the largest difference that is none.

    Cost: a forward pass packed and one for each sequence; it keeps what went in and out of every module.
    """
    with torch.no_grad():
        batch = subject.packed(case)
        places = subject.places(case, batch)
        packed = _calls(subject.model, lambda: subject.run_packed(batch))
        found: list[tuple[int, Part]] = []
        for number, (row, place, _) in enumerate(case.sequences()):
            alone = _calls(subject.model, partial(subject.run_alone, case, row, place))
            pairs = list(_paired(packed, alone))
            off = _Off(places, number, subject.places_alone(case, row, place), tolerance)
            for at, (one, other) in enumerate(pairs):
                if (amount := off.amount(one.outputs, other.outputs)) > tolerance:
                    named = _blamed(pairs[at:], off)
                    found.append((at, Part(named.name, named.class_name, amount)))
                    break
    return min(found, key=lambda each: each[0], default=(0, None))[1]


@dataclass(frozen=True, slots=True)
class _Off:
    """How far tensors of the packed run are from those of one sequence alone, where they have a value per token."""

    places: Places
    number: int
    alone: Places | None
    tolerance: float

    def amount(self, packed: list[Tensor], alone: list[Tensor]) -> float:
        worst = 0.0
        for one, other in zip(packed, alone, strict=False):
            if one.ndim < 2 or other.ndim < 2 or self.places.kind(one) not in {"token", "flat"}:
                continue
            mine = self.places.of(one, self.number)
            single = self.places.of_alone(other if self.alone is None else self.alone.only(other), one)
            if mine.shape == single.shape:
                worst = max(worst, difference(mine, single))
        return worst


def _blamed(pairs: list[tuple[_Call, _Call]], off: _Off) -> _Call:
    first, alone = pairs[0]
    if off.amount(first.inputs, alone.inputs) <= off.tolerance:
        return first
    for one, other in pairs[1:]:
        if one.name and first.name.startswith(f"{one.name}.") and off.amount(one.inputs, other.inputs) <= off.tolerance:
            return one
    return first


def _paired(packed: list[_Call], alone: list[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """The calls of both runs that belong together: the first of a module with its first, and so on."""
    waiting: dict[str, list[_Call]] = {}
    for call in reversed(alone):
        waiting.setdefault(call.name, []).append(call)
    for call in packed:
        if waiting.get(call.name):
            yield call, waiting[call.name].pop()


def _calls(model: nn.Module, run: Callable[[], object]) -> list[_Call]:
    """Every call of every module while it runs, in the order in which they end."""
    calls: list[_Call] = []

    def hook(name: str) -> Any:
        def record(module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            calls.append(_Call(name, type(module).__name__, list(_tensors((args, kwargs))), list(_tensors(output))))

        return record

    handles = [module.register_forward_hook(hook(name), with_kwargs=True) for name, module in model.named_modules()]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return calls


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
