"""Run a model packed and separately, change what must not matter, and say where it goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from brimful.errors import BrimfulError, DataError, SettingError, shown
from brimful.models.packed_encoder import PackedEncoder
from brimful.models.rules import ATTENTION, PackingRule, general_rule, rule_for
from brimful.validation import is_number
from brimful.verify.calls import Batch, Subject, copied, without_wrapper
from brimful.verify.cases import Case
from brimful.verify.diagnosis import diagnose
from brimful.verify.equality import Tolerance, compare, dtype_name
from brimful.verify.findings import Findings
from brimful.verify.inputs import by_rule, cases_for, vocabulary_of
from brimful.verify.isolation import isolate
from brimful.verify.report import VerifyReport

TOLERANCES: Mapping[str, float] = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 5e-2, "float16": 5e-3}
"""The largest difference that is allowed in each dtype, as a share of the largest value or of 1."""

_EXACT = ("float64", "float32")


def verify(
    model: nn.Module,
    sequences: Sequence[Any] | None = None,
    attention: str | None = None,
    tolerance: float | None = None,
    *,
    collate: Callable[[list[dict[str, list[int]]]], Mapping[str, Any]] | None = None,
    causal: bool | None = None,
    dtypes: Sequence[str] = ("float32", "float64"),
) -> VerifyReport:
    """Is what this model does to packed rows the same as what it does to the sequences one by one?

        packed       [A A A B C C .]  ->  outputs, loss, gradients           equal, up to rounding?
        separate     [A A A] [B] [C C]  ->  outputs, loss, gradients
        changed      [A A A X C C .]  ->  outputs of A and C                 still the same, to the last bit?

    The model is not touched: its weights, mode and gradients and the state of random numbers stay as they are. All runs
    are on a copy, in eval mode, so that dropout is off.

    Args:
        model: a model of Hugging Face transformers, also one wrapped for training; or any module whose forward takes
            `input_ids` and other keys of a batch by name, or the batch as its one argument. It returns outputs by token
            (batch, seq, …) or by sequence (batch, segments, …), in a tensor, a mapping or a sequence, and a loss if it
            has one.
        sequences: lists of tokens, or mappings of columns with one whole number per token, or one, to be packed into
            one row; None for random ones of lengths that have caught mistakes: [1], [1 1 1], [3 1 2], [1 4], [5 3],
            with and without padding, alone and in a batch, longer than the sliding window, and [40 30]. What reaches
            farther than that is not seen; the report says how long the longest was.
        attention: how sequences are kept apart, as for `PackedCollator`; None for the rule of the architecture. Any
            may be tried, whether there is a rule for it or not.
        tolerance: the largest difference allowed, as a share of the largest value or of 1; None for 1e-5 in float32,
            1e-12 in float64, 5e-3 in float16 and 5e-2 in bfloat16, of outputs and loss alike. What a model in float64
            computes in float32 (a norm, a loss) is judged as float32, and gradients with a vocabulary above 2^14 are
            allowed more, in proportion: they are sums over it.
        collate: in place of attention: your own way of making inputs, a function from packed rows (mappings with
            `input_ids`, `seq_lengths`, `labels`) to a batch of tensors, such as a `PackedCollator`. A model of
            transformers is given a sequence alone without it; any other module gets what it makes of one sequence, and
            faults that are in there already are not seen.
        causal: whether tokens attend to what is before them only; None to tell by the name of the class. Models of
            transformers that are in the registry need no telling.
        dtypes: what to compute in: float32, float64, bfloat16, float16. Isolation is tested in the first; gradients
            are compared in the first two of these.

    Returns:
        A report that says whether it `passed`, and prints readably.

    Raises:
        SettingError: there is no rule for the model; unknown settings; a module that cannot be called or copied; fewer
            than 2 tokens to choose from.
        DataError: sequences that are none; a batch without its sequences; the model fails on the batch.

    Example:
        >>> class Mean(nn.Module):                                # the mean over its row: leaks
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.embed = nn.Embedding(9, 4)
        ...     def forward(self, input_ids):
        ...         embedded = self.embed(input_ids)
        ...         return embedded + embedded.mean(1, keepdim=True)
        >>> verify(Mean(), attention="sdpa").passed
        False

    Cost: about 60 forward passes over rows of at most 72 tokens in the first dtype and 30 in each other, with 10
    backward passes in each, more with a sliding window; beside the model one copy of it at a time, in float64 twice as
    large as in float32; both where a difference in float32 is looked into.
    """
    if not isinstance(model, nn.Module):
        raise SettingError(f"a model is a torch module, loaded already, not {shown(model)}")
    model = without_wrapper(model)
    if next(model.parameters(), None) is None:
        raise SettingError(f"{type(model).__name__} has no parameters, so it is no model to verify")
    _require_dtypes(dtypes)
    _require_tolerance(tolerance)
    if collate is not None and attention is not None:
        raise SettingError("attention says how inputs are made here, and collate makes them; give one of the two")
    inner = _inner(model)
    rule = _rule(inner, attention, collate is not None, causal)
    vocabulary = vocabulary_of(inner, sequences)
    cases: list[Case] = []
    found = Findings(type(model).__name__, "collate" if collate is not None else rule.attention)
    devices = sorted({each.device.index or 0 for each in model.parameters() if each.device.type == "cuda"})
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng(devices=devices):
        for number, name in enumerate(dtypes):
            subject = _subject(model, getattr(torch, name), rule, collate)
            if not cases:
                cases, notes = cases_for(subject, inner, sequences, vocabulary, rule, collate is not None)
                found.notes += [*notes, *_over_the_batch(subject.model)]
            if number and not _computes(subject, cases[0]):
                found.notes.append(f"{name}: not compared, for the model does not compute in it")
                continue
            allowed = Tolerance(
                TOLERANCES[name] if tolerance is None else tolerance,
                max(TOLERANCES[name], TOLERANCES["float32"]) if tolerance is None else tolerance,
                grows=tolerance is None,
            )
            in_float64 = partial(_subject, model, torch.float64, rule, collate)
            _run(subject, cases, rule, vocabulary, allowed, found, in_float64, with_isolation=not number)
            del subject  # before the next copy is made
    return found.report()


def _run(
    subject: Subject,
    cases: Sequence[Case],
    rule: PackingRule,
    vocabulary: Sequence[int],
    tolerance: Tolerance,
    found: Findings,
    in_float64: Callable[[], Subject],
    with_isolation: bool,
) -> None:
    name, with_gradients = dtype_name(subject.like.dtype), True
    if rule.attention == "flex" and subject.like.device.type == "cpu":
        with_gradients = False
        found.notes.append("gradients: not compared, for PyTorch has no backward of FlexAttention on a CPU")
    elif name not in _EXACT:
        with_gradients = False
        found.notes.append(f"gradients: not compared in {name}, whose rounding is as large as a fault")
    runs = found.comparisons.setdefault(name, [])
    failures = []
    for case in cases:
        runs.append(comparison := compare(subject, case, tolerance, with_gradients))
        leaks = []
        if with_isolation:
            allowed = comparison.allowed.get("output", tolerance.allowed)  # more where float64 was not kept to
            found.isolations.append(isolation := isolate(subject, case, vocabulary, allowed))
            leaks = isolation.leaks
        if comparison.differences or leaks:
            failures.append((case, comparison, leaks))
    if failures and found.diagnosis is None:  # of the case with the most sequences, in which most faults show
        case, comparison, leaks = max(failures, key=lambda failure: len(list(failure[0].sequences())))
        tolerance = replace(tolerance, allowed=comparison.allowed.get("output", tolerance.allowed))
        found.diagnosis = diagnose(subject, case, rule, vocabulary, tolerance, comparison, leaks, in_float64)
    if any(run.in_float32 for run in runs):
        found.notes.append(f"{name}: the model computes in float32 in places, and is judged as that where it does")


def _rule(model: nn.Module, attention: str | None, own_collate: bool, causal: bool | None) -> PackingRule:
    if attention is not None:
        return general_rule(model, attention, causal)
    if own_collate:
        return general_rule(model, "eager", causal)
    if not hasattr(model, "config"):
        raise SettingError(
            f"{type(model).__name__} is of no architecture that there is a rule for; say how its inputs keep sequences "
            f"apart, with attention (--attention): {', '.join(ATTENTION)}; or, in Python, give verify(model, collate=…)"
        )
    return rule_for(model)


def _inner(model: nn.Module) -> nn.Module:
    """The model of transformers below packed heads."""
    return model.model if isinstance(model, PackedEncoder) else model


def _subject(model: nn.Module, dtype: torch.dtype, rule: PackingRule, collate: Callable[..., Any] | None) -> Subject:
    twin = copied(model, dtype)
    inner = _inner(twin)
    of_transformers = any(base.__name__ in {"PreTrainedModel", "PeftModel"} for base in type(inner).__mro__)
    plain = inner if of_transformers else None
    if collate is None:
        return Subject(twin, by_rule(rule, inner, dtype), rule.forward_arguments, plain)

    def own(case: Case) -> Batch:
        try:
            made = collate(case.packed())
        except BrimfulError:
            raise
        except Exception as fault:  # whatever the user's function may raise
            raise DataError(f"collate fails on {case}: {type(fault).__name__}: {fault}") from fault
        if not isinstance(made, Mapping):
            raise DataError(f"collate returns a batch, a mapping of tensors, not {shown(type(made).__name__)}")
        return dict(made)

    return Subject(twin, own, {}, plain)


def _over_the_batch(model: nn.Module) -> list[str]:
    """Notes on modules that take statistics over a batch, in training only, where no run in eval mode sees it."""
    return [
        f"{name or 'the model'} ({type(module).__name__}) normalizes over all tokens of a batch in train mode, where "
        "sequences reach one another through it; here it ran in eval mode. Use LayerNorm, or keep it in eval mode"
        for name, module in model.named_modules()
        if "BatchNorm" in type(module).__name__ or isinstance(module, nn.modules.batchnorm._NormBase)
    ]


def _computes(subject: Subject, case: Case) -> bool:
    """Whether the model runs in this dtype at all."""
    try:
        with torch.no_grad():
            subject.run_alone(case, 0, 0)
    except DataError:
        return False
    return True


def _require_dtypes(dtypes: Sequence[str]) -> None:
    if not isinstance(dtypes, Sequence) or not dtypes or any(name not in tuple(TOLERANCES) for name in dtypes):
        raise SettingError(f"dtypes are a list of one or more of {', '.join(TOLERANCES)}, not {shown(dtypes)}")


def _require_tolerance(tolerance: float | None) -> None:
    if tolerance is not None and (not is_number(tolerance) or tolerance < 0):
        raise SettingError(f"tolerance is a number from 0 up, such as 1e-5, not {shown(tolerance)}")
