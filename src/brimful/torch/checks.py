"""What a batch must hold for its losses to mean anything: shapes always, values where looking at them costs no wait.

Shapes and dtypes are known to the host, so every function of the losses checks them. Values lie on the accelerator, and
to look at them there is to wait for it. So they are checked for tensors on the CPU; for others call `check_targets`
yourself, once at the start say, or on a batch before it is moved.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from brimful.errors import DataError, LengthError

IGNORED = -100
"""The label of a token or sequence that has no target, as in torch's cross entropy."""


def check_targets(
    labels: Int[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    classes: int,
    seq_lengths: Int[Tensor, "batch segments"] | None = None,
) -> None:
    """Nothing, if labels, segments and lengths can belong to one batch; otherwise an error that names what cannot.

    Args:
        labels: classes from 0 to classes − 1, or −100 for no target; on padding anything.
        segment_ids: 1, 2, 3 … from left to right in every row, 0 on padding.
        classes: the size of the last dimension of the logits, such as the vocabulary.
        seq_lengths: (batch, segments) tokens of each sequence, filled up with 0; None leaves them out.

    Raises:
        DataError: shapes or dtypes that do not agree, or a label that is no class; names the first.
        LengthError: segment_ids that do not count up, or that do not match seq_lengths; names the first.

    Example:
        >>> check_targets(torch.tensor([[0, 4, 3]]), torch.tensor([[1, 1, 2]]), classes=4)
        Traceback (most recent call last):
        brimful.errors.DataError: labels are classes from 0 to 3, or -100 for no target, not 4 (row 0, place 1); \
do model and tokenizer belong together?

    Cost: a few passes over (batch, seq) whole numbers; on an accelerator it waits for the result.
    """
    require_tokens(labels, segment_ids)
    if seq_lengths is not None:
        require_lengths(segment_ids, seq_lengths)
    check_segments(segment_ids, seq_lengths)
    check_classes(labels.where(segment_ids > 0, IGNORED), classes)


def check_segments(
    segment_ids: Int[Tensor, "batch seq"], seq_lengths: Int[Tensor, "batch segments"] | None = None
) -> None:
    """Nothing, if segment_ids count up from left to right, and hold of each sequence as many tokens as seq_lengths say.

    Raises:
        LengthError: names the first place where they do not.
    """
    highest = segment_ids.cummax(dim=1).values if segment_ids.shape[1] else segment_ids
    wrong = (segment_ids < 0) | (segment_ids > segment_ids.shape[1]) | ((segment_ids > 0) & (segment_ids < highest))
    if wrong.any():
        row, place = wrong.nonzero()[0].tolist()
        raise LengthError(
            "segment_ids count 1, 2, 3 … from left to right in every row, with 0 on padding, but "
            f"{segment_ids[row, place]} stands in row {row}, place {place}; when rows are joined into one, ids count on"
        )
    if seq_lengths is None:
        return
    rows, segments = seq_lengths.shape
    over = segment_ids > segments
    if over.any():
        row = int(over.nonzero()[0, 0])
        raise LengthError(
            f"seq_lengths have room for {segments} sequences a row, but segment_ids of row {row} go up to "
            f"{segment_ids[row].max()}; make both from the same batch"
        )
    keys = torch.arange(rows, device=segment_ids.device)[:, None] * (segments + 1) + segment_ids
    counts = keys.flatten().bincount(minlength=rows * (segments + 1)).view(rows, segments + 1)[:, 1:]
    wrong = counts != seq_lengths
    if wrong.any():
        row, at = wrong.nonzero()[0].tolist()
        raise LengthError(
            f"segment_ids hold {counts[row, at]} tokens of sequence {at + 1} in row {row}, but seq_lengths say "
            f"{seq_lengths[row, at]}; make both from the same batch"
        )


def check_classes(labels: Int[Tensor, "batch seq"], classes: int) -> None:
    """Nothing, if every label is a class or −100; otherwise a DataError that names the first that is not."""
    wrong = (labels != IGNORED) & ((labels < 0) | (labels >= classes))
    if wrong.any():
        row, place = wrong.nonzero()[0].tolist()
        raise DataError(
            f"labels are classes from 0 to {classes - 1}, or {IGNORED} for no target, not {labels[row, place]} "
            f"(row {row}, place {place}); do model and tokenizer belong together?"
        )


def at_hand(tensor: Tensor) -> bool:
    """Whether the values of a tensor can be looked at without waiting for a device or breaking a compiled graph."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def require_tokens(labels: Int[Tensor, "batch seq"], segment_ids: Int[Tensor, "batch seq"]) -> None:
    """Nothing, if both are whole numbers of one (batch, seq) shape."""
    require_whole("segment_ids", segment_ids, "(batch, seq)")
    require_whole("labels", labels, "(batch, seq)")
    require_same("labels", labels, "segment_ids", segment_ids)


def require_lengths(segment_ids: Int[Tensor, "batch seq"], seq_lengths: Int[Tensor, "batch segments"]) -> None:
    """Nothing, if both are whole numbers for the same number of rows."""
    require_whole("segment_ids", segment_ids, "(batch, seq)")
    require_whole("seq_lengths", seq_lengths, "(batch, segments)")
    if len(segment_ids) != len(seq_lengths):
        raise DataError(
            f"segment_ids and seq_lengths have one batch size, not {len(segment_ids)} and {len(seq_lengths)}; "
            "take both from the same batch"
        )


def require_logits(logits: Float[Tensor, "batch seq classes"], labels: Int[Tensor, "batch seq"]) -> None:
    """Nothing, if logits are one row of scores for each label."""
    if not logits.is_floating_point():
        raise DataError(f"logits are floating point, not {logits.dtype}")
    if logits.ndim != labels.ndim + 1 or logits.shape[:-1] != labels.shape:
        raise DataError(
            f"logits have the shape of their labels, {tuple(labels.shape)}, and one dimension more for the classes, "
            f"not {tuple(logits.shape)}; a causal shift is made here, not before"
        )


def require_whole(name: str, tensor: Tensor, dimensions: str) -> None:
    """Nothing, if the tensor holds whole numbers, with a sign for −100, in two dimensions."""
    if tensor.dtype not in {torch.int64, torch.int32, torch.int16, torch.int8}:
        raise DataError(f"{name} are whole numbers with a sign, such as torch.int64, not {tensor.dtype}")
    if tensor.ndim != 2:
        raise DataError(f"{name} are {dimensions}, not of shape {tuple(tensor.shape)}")


def require_same(name: str, tensor: Tensor, other_name: str, other: Tensor) -> None:
    """Nothing, if two tensors have one shape."""
    if tensor.shape != other.shape:
        raise DataError(
            f"{name} and {other_name} have one shape, not {tuple(tensor.shape)} and {tuple(other.shape)}; "
            "take both from the same batch"
        )
