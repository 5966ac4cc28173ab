"""Losses of packed rows that equal those of the separate sequences, in value and gradient.

| task | loss |
|---|---|
| masked LM, token classification | `token_loss` |
| causal LM, also of several tokens ahead | `causal_lm_loss` |
| next-sentence prediction, sequence classification, regression | `sequence_loss` |
| question answering by spans | `span_loss`, in spans.py |

A loss that is averaged over packs lets a sequence count for less the more company it has. These losses "unpack": each
target gets the weight that it would have in a batch of separate sequences (see weights.py), so that nothing has to be
cut apart, and the work beside the softmax is a few passes over (batch, seq) numbers.

Logits in half precision get their softmax in float32, and the loss comes in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from jaxtyping import Float, Int, Num
from torch import Tensor

from brimful.errors import DataError, SettingError, shown
from brimful.torch.checks import (
    IGNORED,
    at_hand,
    check_classes,
    require_logits,
    require_same,
    require_tokens,
    require_whole,
)
from brimful.torch.weights import is_target, sequence_weights, token_weights, weighted_mean
from brimful.validation import validate_capacity


def token_loss(
    logits: Float[Tensor, "batch seq classes"],
    labels: Int[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    normalization: str = "token",
    denominator: Tensor | float | None = None,
) -> Float[Tensor, ""]:
    """Cross entropy with a label for each token: masked LM, token classification.

    Args:
        logits: scores of the classes; of label i at place i.
        labels: classes from 0, −100 where there is no target. Padding never counts, whatever its label.
        segment_ids: 1, 2, 3 … per sequence in its row, 0 on padding.
        normalization: "token", "sequence" or "sqrt"; see `token_weights`.
        denominator: that of the whole optimizer step, from `step_denominator`; None for this batch's own, which is
            right only where a step is one batch on one rank.

    Returns:
        A scalar, in float32 or float64. A sequence without targets does not count. If nothing counts it is 0, with a
        gradient of zeros.

    Raises:
        DataError: shapes or dtypes that do not agree; a label that is no class (checked on the CPU only).
        LengthError: segment_ids that do not count up (checked on the CPU only).
        SettingError: a normalization that there is not.

    Example:
        >>> logits = torch.tensor([[[0.0, 0.0], [0.0, 0.0], [9.0, 0.0]]])   # ln 2, ln 2 | about 0
        >>> labels, segment_ids = torch.tensor([[0, 1, 0]]), torch.tensor([[1, 1, 2]])
        >>> token_loss(logits, labels, segment_ids)                           # 2/3 ln 2
        tensor(0.4621)
        >>> token_loss(logits, labels, segment_ids, normalization="sequence") # 1/2 ln 2
        tensor(0.3466)

    Cost: that of torch's cross entropy, and some passes over (batch, seq) numbers: at (8, 512, 30522), forward and
    backward on one CPU core, 0.4 ms beside 850 ms.
    Source: arXiv 2107.02027, section 3.2.3, without its loop over max_sequences.
    """
    require_tokens(labels, segment_ids)
    targets = is_target(labels, segment_ids)
    losses = cross_entropy(logits, labels.where(targets, IGNORED))
    weights = token_weights(labels, segment_ids, normalization, losses.dtype)
    return weighted_mean(losses, weights, denominator)


def causal_lm_loss(
    logits: Float[Tensor, "batch seq classes"],
    labels: Int[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    normalization: str = "token",
    denominator: Tensor | float | None = None,
    *,
    shift: int = 1,
) -> Float[Tensor, ""]:
    """Cross entropy of the token `shift` places ahead; no token is asked about another sequence.

    `token_loss` with the labels of `shift_labels`; all else is said there. The denominator of a step is made from the
    shifted labels too:

        step_denominator(token_weights(shift_labels(labels, ids), ids, "sqrt") for labels, ids in micro_batches)

    Args:
        logits: scores of the token `shift` places on.
        labels: not shifted: the label of a token stands at its place.
        shift: how far ahead, ≥ 1; more than 1 for the further heads of multi-token prediction.

    Raises:
        LengthError: a shift below 1; and as `token_loss`.

    Example:
        >>> labels, segment_ids = torch.tensor([[0, 1, 0, 1]]), torch.tensor([[1, 1, 2, 2]])
        >>> logits = torch.tensor([[[0.0, 9.0], [9.0, 0.0], [0.0, 0.0], [0.0, 0.0]]])
        >>> causal_lm_loss(logits, labels, segment_ids)    # two targets: about 0, and ln 2
        tensor(0.3466)
    """
    return token_loss(logits, shift_labels(labels, segment_ids, shift), segment_ids, normalization, denominator)


def shift_labels(
    labels: Int[Tensor, "batch seq"], segment_ids: Int[Tensor, "batch seq"], shift: int = 1
) -> Int[Tensor, "batch seq"]:
    """The label of each token's successor in its own sequence, −100 where that has none.

        labels       a b c | d e | .      shift 1:   b c . | e . | .
        segment_ids  1 1 1   2 2   0      shift 2:   c . . | . . | .

    Args:
        labels: the label of a token stands at its place.
        segment_ids: 1, 2, 3 … per sequence in its row, 0 on padding.
        shift: how many places on the successor stands, ≥ 1.

    Raises:
        DataError: shapes or dtypes that do not agree.
        LengthError: a shift that is no whole number ≥ 1.

    Example:
        >>> shift_labels(torch.tensor([[5, 6, 7, 8, 9, 0]]), torch.tensor([[1, 1, 1, 2, 2, 0]]))
        tensor([[   6,    7, -100,    9, -100, -100]])

    Cost: a copy of the labels and a comparison.
    """
    require_tokens(labels, segment_ids)
    shift = min(validate_capacity(shift, "shift"), labels.shape[1])
    kept = labels.shape[1] - shift
    same = (segment_ids[:, shift:] == segment_ids[:, :kept]) & (segment_ids[:, :kept] > 0)
    return F.pad(labels[:, shift:].where(same, IGNORED), (0, shift), value=IGNORED)


def sequence_loss(
    logits: Float[Tensor, "batch segments classes"],
    labels: Num[Tensor, "batch segments *classes"],
    seq_lengths: Int[Tensor, "batch segments"],
    problem: str = "single_label_classification",
    denominator: Tensor | float | None = None,
) -> Float[Tensor, ""]:
    """The mean over sequences of a loss with a label for each: next-sentence prediction, classification, regression.

    Args:
        logits: what the head says of each sequence, at the slots of seq_lengths; where there is no sequence, anything
            finite.
        labels: by problem, under the names of Hugging Face configurations.

            - single_label_classification: (batch, segments) classes, −100 for none; cross entropy;
            - multi_label_classification: (batch, segments, classes) 0 or 1; binary cross entropy, averaged over
              classes;
            - regression: of the shape of logits, or without its last dimension if that is 1; squared error, averaged
              over outputs.
        seq_lengths: tokens of each sequence, filled up with 0: a slot of 0 never counts.
        problem: one of these names.
        denominator: how many sequences with labels the whole optimizer step has: `step_denominator` of the
            `sequence_weights`. None for this batch's own, which is right only where a step is one batch on one rank.

    Returns:
        A scalar, in float32 or float64; 0 with a gradient of zeros if there is no label.

    Raises:
        DataError: shapes or dtypes that do not agree; a label that is no class (checked on the CPU only).
        SettingError: a problem that there is not.

    Example:
        >>> logits, labels = torch.zeros(2, 2, 2), torch.tensor([[1, 0], [1, -100]])
        >>> sequence_loss(logits, labels, torch.tensor([[3, 5], [8, 0]]))     # three times ln 2, over 3
        tensor(0.6931)

    Cost: that of torch's loss over (batch, segments) items.
    Source: arXiv 2107.02027, section 3.2.3.
    """
    require_whole("seq_lengths", seq_lengths, "(batch, segments)")
    if not isinstance(problem, str) or problem not in PROBLEMS:
        raise SettingError(f"there is no problem {shown(problem)}; there are {', '.join(PROBLEMS)}")
    losses = PROBLEMS[problem](logits, labels, seq_lengths)
    counted = (labels,) if problem == "single_label_classification" else ()
    return weighted_mean(losses, sequence_weights(seq_lengths, *counted, dtype=losses.dtype), denominator)


def cross_entropy(
    logits: Float[Tensor, "batch seq classes"], labels: Int[Tensor, "batch seq"]
) -> Float[Tensor, "batch seq"]:
    """The cross entropy of each place, not averaged; 0 where the label is −100. In float32 at least.

    Raises:
        DataError: shapes or dtypes that do not agree; a label that is no class (checked on the CPU only).

    Example:
        >>> cross_entropy(torch.zeros(1, 2, 4), torch.tensor([[3, -100]]))
        tensor([[1.3863, 0.0000]])
    """
    require_logits(logits, labels)
    if at_hand(labels):
        check_classes(labels, logits.shape[-1])
    log_p = F.log_softmax(logits.flatten(0, -2), dim=-1, dtype=precise(logits.dtype))
    return F.nll_loss(log_p, labels.long().flatten(), ignore_index=IGNORED, reduction="none").view_as(labels)


def precise(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which a softmax is taken: float32 for half precision, otherwise its own."""
    return torch.promote_types(dtype, torch.float32)


def _classification(logits: Tensor, labels: Tensor, seq_lengths: Tensor) -> Tensor:
    require_whole("labels", labels, "(batch, segments)")
    require_same("labels", labels, "seq_lengths", seq_lengths)
    return cross_entropy(logits, labels.where(seq_lengths > 0, IGNORED))


def _multi_label(logits: Tensor, labels: Tensor, seq_lengths: Tensor) -> Tensor:
    logits, labels = _beside_sequences(logits, labels, seq_lengths)
    return F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(-1)


def _regression(logits: Tensor, labels: Tensor, seq_lengths: Tensor) -> Tensor:
    if logits.ndim == labels.ndim + 1 and logits.shape[-1] == 1:
        labels = labels[..., None]
    logits, labels = _beside_sequences(logits, labels, seq_lengths)
    return F.mse_loss(logits, labels, reduction="none").mean(-1)


def _beside_sequences(logits: Tensor, labels: Tensor, seq_lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Both as (batch, segments, outputs) in float32 at least, with labels of 0 where there is no sequence."""
    require_same("labels", labels, "logits", logits)
    if logits.ndim not in {2, 3} or logits.shape[:2] != seq_lengths.shape:
        raise DataError(
            f"logits are (batch, segments, …) as seq_lengths, {tuple(seq_lengths.shape)}, not {tuple(logits.shape)}; "
            "one for each sequence, not for each pack"
        )
    if logits.ndim == 2:
        logits, labels = logits[..., None], labels[..., None]
    dtype = precise(logits.dtype)
    return logits.to(dtype), labels.to(dtype).where(seq_lengths[..., None] > 0, 0)


PROBLEMS: Mapping[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = MappingProxyType(
    {
        "single_label_classification": _classification,
        "multi_label_classification": _multi_label,
        "regression": _regression,
    }
)
"""Every problem of `sequence_loss` by name."""
