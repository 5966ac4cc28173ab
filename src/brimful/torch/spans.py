"""Question answering by spans: where an answer starts and ends, each a choice among the tokens of one sequence."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from brimful.errors import DataError
from brimful.torch.checks import IGNORED, at_hand, check_segments, require_lengths, require_same, require_whole
from brimful.torch.losses import precise
from brimful.torch.weights import segment_keys, sequence_weights, sum_by_segment, weighted_mean


def span_loss(
    start_logits: Float[Tensor, "batch seq"],
    end_logits: Float[Tensor, "batch seq"],
    start_positions: Int[Tensor, "batch segments"],
    end_positions: Int[Tensor, "batch segments"],
    segment_ids: Int[Tensor, "batch seq"],
    seq_lengths: Int[Tensor, "batch segments"],
    denominator: Tensor | float | None = None,
) -> Float[Tensor, ""]:
    """The mean over sequences of half the cross entropies of start and end; a softmax is over one sequence's tokens.

        segment_ids    1 1 1 1 1 | 2 2 2 | 0
        start          . . x . .   x . .          start_positions  2 0   counted from each sequence's first token

    Args:
        start_logits, end_logits: scores of each token as the first, or last, of the answer.
        start_positions, end_positions: 0 ≤ position < length of its sequence; −100 in either for a sequence that does
            not count.
        segment_ids: 1, 2, 3 … per sequence in its row, 0 on padding.
        seq_lengths: tokens of each sequence, filled up with 0.
        denominator: how many sequences with answers the whole optimizer step has: `step_denominator` of
            `sequence_weights(seq_lengths, start_positions, end_positions)`. None for this batch's own, which is right
            only where a step is one batch on one rank.

    Returns:
        A scalar, in float32 or float64; 0 with a gradient of zeros if there is no answer.

    Raises:
        DataError: shapes or dtypes that do not agree; a position outside its sequence (checked on the CPU only;
            elsewhere the loss is infinite, as for any target of probability 0).
        LengthError: segment_ids that do not match seq_lengths (checked on the CPU only).

    Example:
        >>> start, end = torch.zeros(1, 6), torch.zeros(1, 6)
        >>> segment_ids, seq_lengths = torch.tensor([[1, 1, 1, 1, 2, 0]]), torch.tensor([[4, 1]])
        >>> span_loss(start, end, torch.tensor([[2, 0]]), torch.tensor([[3, 0]]), segment_ids, seq_lengths)   # ln 4, 0
        tensor(0.6931)

    Cost: some dozen passes over (batch, seq) numbers, nothing of size segments × seq: at (8, 512), forward and backward
    on one CPU core, 1.4 ms.
    Source: arXiv 2107.02027, section 3.2.3.
    """
    require_spans(start_logits, end_logits, start_positions, end_positions, segment_ids, seq_lengths)
    counted = sequence_weights(seq_lengths, start_positions, end_positions) > 0
    starts = _edge_losses(start_logits, start_positions, counted, segment_ids, seq_lengths)
    ends = _edge_losses(end_logits, end_positions, counted, segment_ids, seq_lengths)
    return weighted_mean((starts + ends) / 2, counted.to(starts.dtype), denominator)


def predicted_positions(
    logits: Float[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    seq_lengths: Int[Tensor, "batch segments"],
) -> Int[Tensor, "batch segments"]:
    """For each sequence the place of its highest score, counted from its first token; −100 where there is no sequence.

    Of equal scores the first wins.

    Example:
        >>> logits, segment_ids = torch.tensor([[0.0, 3.0, 1.0, 9.0, 8.0]]), torch.tensor([[1, 1, 1, 2, 2]])
        >>> predicted_positions(logits, segment_ids, torch.tensor([[3, 2, 0]]))
        tensor([[   1,    0, -100]])

    Cost: as `span_loss`.
    """
    require_lengths(segment_ids, seq_lengths)
    require_same("logits", logits, "segment_ids", segment_ids)
    if at_hand(segment_ids):
        check_segments(segment_ids, seq_lengths)
    segments, seq = seq_lengths.shape[1], segment_ids.shape[1]
    keys = segment_keys(segment_ids, segments)
    highest = _highest(logits, keys, segments)
    places = torch.arange(seq, device=logits.device).expand_as(segment_ids)
    is_highest = logits == highest.flatten()[keys].view_as(logits)
    first = _first(places.where(is_highest, seq), keys, segments)
    return (first - _first(places, keys, segments))[:, 1:].where(seq_lengths > 0, IGNORED)


def _edge_losses(
    logits: Tensor, positions: Tensor, counted: Bool[Tensor, "batch segments"], segment_ids: Tensor, seq_lengths: Tensor
) -> Float[Tensor, "batch segments"]:
    """The cross entropy of one edge of each answer: log Σ exp(scores of its sequence) less the score of the target."""
    logits = logits.to(precise(logits.dtype))
    segments, seq = seq_lengths.shape[1], segment_ids.shape[1]
    keys = segment_keys(segment_ids, segments)
    highest = _highest(logits.detach(), keys, segments)
    above = (logits.flatten() - highest.flatten().index_select(0, keys)).exp().view_as(logits)
    sums = sum_by_segment(above, segment_ids, segments)[:, 1:]
    log_sums = sums.where(seq_lengths > 0, 1).log() + highest[:, 1:].where(seq_lengths > 0, 0)

    places = torch.arange(seq, device=logits.device).expand_as(segment_ids)
    inside = (positions >= 0) & (positions < seq_lengths)
    rows = torch.arange(len(logits), device=logits.device)[:, None] * seq
    targets = (rows + _first(places, keys, segments)[:, 1:] + positions).where(inside, 0)
    scores = logits.flatten().index_select(0, targets.flatten()).view_as(targets).where(inside, -torch.inf)
    return (log_sums - scores).where(counted, 0)


def _highest(logits: Tensor, keys: Tensor, segments: int) -> Float[Tensor, "batch 1+segments"]:
    lowest = logits.new_full((len(logits) * (segments + 1),), -torch.inf)
    return lowest.scatter_reduce(0, keys, logits.flatten(), "amax").view(len(logits), -1)


def _first(places: Tensor, keys: Tensor, segments: int) -> Int[Tensor, "batch 1+segments"]:
    last = places.new_full((len(places) * (segments + 1),), places.shape[1])
    return last.scatter_reduce(0, keys, places.flatten(), "amin").view(len(places), -1)


def require_spans(
    start_logits: Tensor,
    end_logits: Tensor,
    start_positions: Tensor,
    end_positions: Tensor,
    segment_ids: Tensor,
    seq_lengths: Tensor,
) -> None:
    """Nothing, if all of these can belong to one batch; the errors of `span_loss` otherwise."""
    require_lengths(segment_ids, seq_lengths)
    if at_hand(segment_ids):
        check_segments(segment_ids, seq_lengths)
    for name, logits in (("start_logits", start_logits), ("end_logits", end_logits)):
        require_same(name, logits, "segment_ids", segment_ids)
        if not logits.is_floating_point():
            raise DataError(f"{name} are floating point, not {logits.dtype}")
    for name, positions in (("start_positions", start_positions), ("end_positions", end_positions)):
        require_whole(name, positions, "(batch, segments)")
        require_same(name, positions, "seq_lengths", seq_lengths)
        if at_hand(positions):
            wrong = (seq_lengths > 0) & (positions != IGNORED) & ((positions < 0) | (positions >= seq_lengths))
            if wrong.any():
                row, at = wrong.nonzero()[0].tolist()
                raise DataError(
                    f"{name} count from the first token of their own sequence, so they are from 0 to "
                    f"{seq_lengths[row, at] - 1} in sequence {at + 1} of row {row}, or {IGNORED} for no answer, "
                    f"not {positions[row, at]}"
                )
