"""A copy of the model, and how it is called: packed, or with one sequence alone."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from brimful.errors import BrimfulError, DataError, SettingError
from brimful.models.rules import VARLEN_KEYS
from brimful.verify.cases import Case
from brimful.verify.places import Places, find_places

Batch: TypeAlias = dict[str, Any]

_NOT_COMPARED = ("loss", "hidden_states", "attentions", "router_logits", "aux_loss")
_SEEN_BY_FEW = "pooler_output"  # of the first token of a row: no loss is made of it but through a head


@dataclass(frozen=True, slots=True)
class Subject:
    """A model under test, and how its inputs are made.

    Args:
        model: a copy, in eval mode, whose parameters all ask for gradients.
        collate: a batch of tensors from packed rows of at most so many token slots.
        arguments: what goes into forward besides the batch.
        plain: the model of transformers in it, which takes a sequence alone as its tokens and nothing else, and makes
            its own mask and positions; None for any other module, which gets the batch that collate makes of one.
    """

    model: nn.Module
    collate: Callable[[Case], Batch]
    arguments: Mapping[str, object]
    plain: nn.Module | None

    @property
    def like(self) -> Tensor:
        """A parameter, for device and dtype."""
        return next(self.model.parameters())

    def packed(self, case: Case) -> Batch:
        """The batch of a case, on the model's device."""
        batch = self.collate(case)
        tokens = batch.get("input_ids")
        if not isinstance(tokens, Tensor) or tokens.ndim != 2:
            raise DataError("what collate returns has no input_ids of shape (batch, seq)")
        return {name: _moved(value, self.like) for name, value in batch.items()}

    def places(self, case: Case, batch: Batch) -> Places:
        """Where the sequences of a case lie in its batch."""
        lengths = batch.get("seq_lengths")
        segments = lengths.shape[1] if isinstance(lengths, Tensor) and lengths.ndim == 2 else None
        return find_places(case, batch["input_ids"], None if self.plain is self.model else segments)

    def run_packed(self, batch: Batch) -> Outcome:
        """What the model makes of a packed batch.

        Raises:
            DataError: it fails.
        """
        return _call(self.model, {**batch, **self.arguments}, "the packed batch")

    def run_alone(self, case: Case, row: int, place: int) -> Outcome:
        """What the model makes of one sequence by itself; outputs per token are (1, tokens, …) or (tokens, …).

        Raises:
            DataError: it fails.
        """
        if self.plain is None:
            single = case.alone(row, place)
            batch = self.packed(single)
            made = _call(self.model, {**batch, **self.arguments}, "a sequence alone")
            places = self.places(single, batch)
            return Outcome({name: places.only(output) for name, output in made.outputs.items()}, made.loss)
        columns = case.rows[row][place]
        inputs = {name: torch.tensor(_of_one(values), device=self.like.device) for name, values in columns.items()}
        return _call(self.plain, {**inputs, "use_cache": False}, "a sequence alone")

    def places_alone(self, case: Case, row: int, place: int) -> Places | None:
        """Where the sequence lies in what is made of it alone; None if it is all there is."""
        if self.plain is not None:
            return None
        single = case.alone(row, place)
        return self.places(single, self.packed(single))

    def with_batch(self, change: Callable[[Batch, Case], Batch]) -> Subject:
        """The same with batches that are changed after collate has made them."""
        return replace(self, collate=lambda case: change(self.packed(case), case))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a model returned: floating-point tensors by name, and its loss if it computed one."""

    outputs: dict[str, Tensor]
    loss: Tensor | None


def copied(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A copy of a model in this dtype, in eval mode, every parameter of which asks for a gradient.

    Raises:
        SettingError: it cannot be copied.
    """
    try:
        twin = copy.deepcopy(model).to(dtype=dtype).eval()
    except Exception as fault:  # modules may hold what cannot be copied, or weights of whole numbers
        raise SettingError(
            f"{type(model).__name__} cannot be copied to {dtype}, and verify runs on a copy: {fault}"
        ) from fault
    choose_experts: Any = getattr(twin, "set_experts_implementation", None)
    if dtype is torch.float64 and choose_experts is not None:
        choose_experts("eager")  # the fast ways of a mixture of experts have no float64
    for parameter in twin.parameters():
        parameter.grad = None
        if parameter.is_floating_point():
            parameter.requires_grad_(True)
    return twin


def without_wrapper(model: nn.Module) -> nn.Module:
    """The model below DistributedDataParallel, DataParallel or torch.compile."""
    while True:
        if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
            model = model.module
        elif isinstance(compiled := getattr(model, "_orig_mod", None), nn.Module):
            model = compiled
        else:
            return model


def _of_one(values: Any) -> list[Any]:
    """A batch of one: of a value per token, or of one value."""
    return [values if isinstance(values, int) else list(values)]


def _call(model: nn.Module, batch: Batch, what: str) -> Outcome:
    given, whole = _accepted(model, batch)
    try:
        result = model(given) if whole else model(**given)
    except BrimfulError:
        raise
    except Exception as fault:  # whatever a model may raise about inputs that it was not made for
        raise DataError(f"{type(model).__name__} fails on {what}: {type(fault).__name__}: {fault}") from fault
    return _outcome(result)


def _moved(value: Any, like: Tensor) -> Any:
    """On the device of a parameter, and masks that are added to scores in its dtype."""
    if isinstance(value, Mapping):
        return {name: _moved(each, like) for name, each in value.items()}
    if isinstance(value, Tensor):
        return value.to(like.device, like.dtype if value.is_floating_point() else value.dtype)
    return value


def _accepted(model: nn.Module, batch: Batch) -> tuple[Batch, bool]:
    """What of a batch forward takes, and whether it takes the batch as one argument."""
    parameters = inspect.signature(model.forward).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    if "input_ids" in parameters:
        handed_on = VARLEN_KEYS if open_ended else ()
        return {name: value for name, value in batch.items() if name in parameters or name in handed_on}, False
    if open_ended:
        return batch, False
    needed = [each for each in parameters.values() if each.default is each.empty and each.kind <= each.VAR_POSITIONAL]
    if len(needed) == 1:
        return batch, True
    raise SettingError(
        f"the forward of {type(model).__name__} takes neither input_ids nor one batch; wrap it in a module that does"
    )


def _outcome(result: Any) -> Outcome:
    named = dict(_named(result))
    loss = getattr(result, "loss", named.get("loss"))
    if loss is None:
        loss = next((value for value in named.values() if not value.ndim), None)
    outputs = {
        name: value
        for name, value in named.items()
        if value.ndim and name not in _NOT_COMPARED and not (name == _SEEN_BY_FEW and value.ndim == 2)
    }
    return Outcome(outputs, loss if isinstance(loss, Tensor) and not loss.ndim else None)


def _named(result: Any) -> Iterator[tuple[str, Tensor]]:
    """The floating-point tensors of a result that is a tensor, a mapping or a sequence of them."""
    if isinstance(result, Tensor):
        result = {"output": result}
    elif isinstance(result, Sequence):
        result = {f"output {number}": value for number, value in enumerate(result)}
    elif not isinstance(result, Mapping):
        result = getattr(result, "__dict__", {})
    for name, value in result.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            yield name, value
