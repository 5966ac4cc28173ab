"""Why: the packed inputs are mended one thing at a time, and what makes the model right again was the cause."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from brimful.errors import BrimfulError
from brimful.models.rules import PackingRule
from brimful.torch.collate import PackedCollator
from brimful.verify.calls import Batch, Subject
from brimful.verify.cases import Case
from brimful.verify.equality import Tolerance, compare
from brimful.verify.isolation import isolate
from brimful.verify.parts import Part
from brimful.verify.report import Diagnosis

_RECURRENT = ("mamba", "ssm", "conv", "rwkv", "recurrent", "rglru", "deltanet", "lstm", "gru", "rnn", "retention")


@dataclass(frozen=True, slots=True)
class Mending:
    """One thing that may be wrong with packed inputs.

    Args:
        cause: what was wrong.
        remedy: what to do about it.
        mend: the batch with it put right, or None if it was right already.
    """

    cause: str
    remedy: str
    mend: Callable[[Subject, Batch, Case], Batch | None]


def find_cause(
    subject: Subject, case: Case, rule: PackingRule, vocabulary: Sequence[int], tolerance: Tolerance, part: Part | None
) -> Diagnosis:
    """The likely cause, its remedy, and whether the remedy was tried and worked; the part is left to be named.

    Args:
        subject: the model, whose outputs differ or leak.
        case: rows for which they do.
        rule: how the model is to be packed: mask, windows, positions.
        vocabulary: the tokens to draw others from.
        tolerance: the largest difference that is none.
        part: where it starts.

    Cost: the case is run anew for each of up to 2^6 combinations of what may be wrong, the fewest first; a new mask,
    which mends most things, last.
    """
    mendings = [each for each in _mendings(rule) if each.mend(subject, subject.packed(case), case) is not None]
    *special, mask = mendings
    masked_as_given = [each for count in range(len(special) + 1) for each in itertools.combinations(special, count)]
    for some in (*masked_as_given[1:], *((*each, mask) for each in masked_as_given)):
        if _mended(subject, case, some, vocabulary, tolerance):
            cause, remedy = "; and ".join(each.cause for each in some), "; and ".join(each.remedy for each in some)
            return Diagnosis(cause, remedy, tried=True)
    name = "" if part is None else f"{part.name} {part.class_name}".lower()
    if any(word in name for word in _RECURRENT):
        return Diagnosis(
            "a recurrent state or a convolution runs on from one sequence into the next; no mask reaches it",
            "do not pack for this model, unless its kernels take seq_idx or cu_seq_lens and start anew there",
        )
    if not isolate(subject, case, vocabulary, tolerance.allowed).leaks:
        return Diagnosis(
            "no sequence reaches another, but something is counted over the whole row (positions, a bias), or rounding "
            "exceeds the tolerance",
            "look at the part that differs first; if the difference is far smaller in float64, raise the tolerance",
        )
    return Diagnosis(
        "the model does not use the mask, or mixes tokens elsewhere",
        "look at the part that differs first; if it ignores attention_mask, this model cannot be packed",
    )


def _mendings(rule: PackingRule) -> list[Mending]:
    def positions(subject: Subject, batch: Batch, case: Case) -> Batch | None:
        right = _segments(subject, batch, case)[1] + rule.position_offset
        given = batch.get("position_ids")
        if isinstance(given, Tensor) and given.shape == right.shape:
            real = _segments(subject, batch, case)[0] > 0
            if torch.equal(given[real], right[real]):
                return None
        return {**batch, "position_ids": right}

    def mask(subject: Subject, batch: Batch, case: Case) -> Batch | None:
        segments = _segments(subject, batch, case)[0]
        return {**batch, "attention_mask": _mask(subject, rule, segments)}

    def window(subject: Subject, batch: Batch, case: Case) -> Batch | None:
        given = _allowed(batch)
        if rule.sliding_window is None or given is None:
            return None
        segments = _segments(subject, batch, case)[0]
        across = (segments[:, :, None] != segments[:, None, :]) & (segments > 0)[:, :, None]
        return None if (given & across).any() else mask(subject, batch, case)

    return [
        Mending(
            "use_cache is left on: with a cache, the model does not look for restarts in position_ids",
            "pass use_cache=False, as the inputs of PackedCollator.for_model do",
            _without_cache,
        ),
        Mending(
            "attention_mask has one value per token: with it, the model does not look for restarts in position_ids",
            "leave attention_mask out, or give a mask of pairs, as PackedCollator with attention 'sdpa' does",
            _without_token_mask,
        ),
        Mending(
            "the mask is boolean or 0 and 1, and the model adds it to the scores as numbers",
            "give the additive mask of PackedCollator with attention 'eager', or load the model with "
            "attn_implementation='sdpa'",
            _additive,
        ),
        Mending(
            "positions do not restart at the start of each sequence"
            + (f", at {rule.position_offset} as this model counts" if rule.position_offset else ""),
            "give the position_ids of PackedCollator.for_model",
            positions,
        ),
        Mending(
            f"the mask lets tokens see farther than the model's sliding window of {rule.sliding_window}, or less far",
            "give the mask of PackedCollator.for_model, which has the window",
            window,
        ),
        Mending(
            "no mask keeps the sequences apart, or it lets other tokens through than it should",
            "give the block-diagonal mask of PackedCollator with attention 'sdpa' or 'eager'",
            mask,
        ),
    ]


def _mended(
    subject: Subject, case: Case, chosen: Sequence[Mending], vocabulary: Sequence[int], tolerance: Tolerance
) -> bool:
    """Whether the model is right once these are put right."""

    def change(batch: Batch, case: Case) -> Batch:
        for each in chosen:
            batch = each.mend(subject, batch, case) or batch
        return batch

    mended = subject.with_batch(change)
    try:
        if compare(mended, case, tolerance, with_gradients=False).differs("output"):
            return False
        return not isolate(mended, case, vocabulary, tolerance.allowed).leaks
    except BrimfulError:
        return False


def _without_cache(subject: Subject, batch: Batch, _: Case) -> Batch | None:
    left_on = batch.get("use_cache", subject.arguments.get("use_cache"))
    if left_on is None:
        left_on = getattr(getattr(subject.model, "config", None), "use_cache", False)
    return {**batch, "use_cache": False} if left_on else None


def _without_token_mask(_: Subject, batch: Batch, __: Case) -> Batch | None:
    mask = batch.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return None
    return {name: value for name, value in batch.items() if name != "attention_mask"}


def _additive(subject: Subject, batch: Batch, _: Case) -> Batch | None:
    masks = _masks_of_pairs(batch)
    if not masks or all(mask.is_floating_point() for mask in masks.values()):
        return None
    dtype = subject.like.dtype
    least = torch.finfo(dtype).min
    added = {
        name: torch.zeros_like(mask, dtype=dtype).masked_fill_(~_seen(mask), least) for name, mask in masks.items()
    }
    return {**batch, "attention_mask": added if isinstance(batch["attention_mask"], Mapping) else added[""]}


def _masks_of_pairs(batch: Batch) -> dict[str, Tensor]:
    """The masks of a batch that have a value for each query and key, by name."""
    given = batch.get("attention_mask")
    masks = given if isinstance(given, Mapping) else {"": given}
    return {name: mask for name, mask in masks.items() if isinstance(mask, Tensor) and mask.ndim == 4}


def _seen(mask: Tensor) -> Tensor:
    return mask >= 0 if mask.is_floating_point() else mask != 0


def _allowed(batch: Batch) -> Tensor | None:
    """(rows, query, key) what any of a batch's masks lets through, or None if it has no masks of pairs."""
    masks = [_seen(mask)[:, 0] for mask in _masks_of_pairs(batch).values()]
    return torch.stack(masks).any(0) if masks else None


def _mask(subject: Subject, rule: PackingRule, segments: Tensor) -> Any:
    """The right mask for the sequences, in the form that is right for arithmetic and for sdpa."""
    collator = PackedCollator(
        segments.shape[1],
        0,
        attention="eager",
        causal=rule.causal,
        sliding_window=rule.sliding_window,
        mask_mapping=rule.mask_mapping,
        dtype=subject.like.dtype,
    )
    return collator.attention_mask(segments)


def _segments(subject: Subject, batch: Batch, case: Case) -> tuple[Tensor, Tensor]:
    """(rows, slots) which sequence each slot belongs to, 0 on padding, and its place there; from the tokens alone."""
    places = subject.places(case, batch)
    segments = torch.zeros(places.shape, dtype=torch.int64)
    positions = torch.arange(places.shape[1]).repeat(places.shape[0], 1)
    for number, (row, first, end) in enumerate(places.spans):
        segments[row, first:end] = number + 1
        positions[row, first:] = torch.arange(places.shape[1] - first)
        positions[row, end:] = torch.arange(places.shape[1] - end)
    device = batch["input_ids"].device
    return segments.to(device), positions.to(device)
