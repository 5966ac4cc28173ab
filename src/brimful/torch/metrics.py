"""Figures of packed rows by sequence: what each sequence would show if it were alone."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor

from brimful.torch.checks import (
    at_hand,
    check_segments,
    require_lengths,
    require_logits,
    require_same,
    require_tokens,
)
from brimful.torch.spans import predicted_positions, require_spans
from brimful.torch.weights import is_target, sequence_weights, sum_by_segment


@dataclass(frozen=True, slots=True, eq=False)
class PerSequence:
    """A figure of every sequence of a batch, as a sum over what counts in it and the number of that.

    Over many batches, add up `means.sum()` and `(counts > 0).sum()`, and divide once at the end.

    Args:
        sums: (batch, segments) of a loss, or of hits; 0 where there is no sequence.
        counts: (batch, segments) how many targets are in that sum.
    """

    sums: Float[Tensor, "batch segments"]
    counts: Int[Tensor, "batch segments"]

    @property
    def means(self) -> Float[Tensor, "batch segments"]:
        """The mean within each sequence; 0 where nothing counts."""
        return self.sums / self.counts.clamp(min=1)

    @property
    def mean(self) -> Float[Tensor, ""]:
        """The mean over sequences of their means; sequences where nothing counts are left out. 0 if that is all."""
        return self.means.sum() / (self.counts > 0).sum().clamp(min=1)

    @property
    def token_mean(self) -> Float[Tensor, ""]:
        """The mean over all that counts, whichever sequence it is in; 0 if nothing does."""
        return self.sums.sum() / self.counts.sum().clamp(min=1)


def unpack(
    values: Float[Tensor, "batch seq"],
    labels: Int[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    seq_lengths: Int[Tensor, "batch segments"],
) -> PerSequence:
    """Sort what was computed for each token by sequence.

        values       1 2 . | 4 | .
        labels       x x −   x   −
        segment_ids  1 1 1   2   0     ->    sums 3 4,  counts 2 1

    Args:
        values: such as `losses.cross_entropy`, or hits of a prediction. Gradients pass.
        labels: −100 where a value does not count.
        segment_ids: 1, 2, 3 … per sequence in its row, 0 on padding.
        seq_lengths: tokens of each sequence, filled up with 0.

    Raises:
        DataError: shapes or dtypes that do not agree.
        LengthError: segment_ids that do not match seq_lengths (checked on the CPU only).

    Example:
        >>> import torch
        >>> values, labels = torch.tensor([[1.0, 2.0, 9.0, 4.0, 9.0]]), torch.tensor([[0, 0, -100, 0, 0]])
        >>> unpack(values, labels, torch.tensor([[1, 1, 1, 2, 0]]), torch.tensor([[3, 1]])).mean
        tensor(2.7500)

    Cost: two index_add over (batch, seq) numbers, however many sequences there are.
    Source: arXiv 2107.02027, section 3.2.3 and listing 5, which loop over max_sequences instead.
    """
    require_tokens(labels, segment_ids)
    require_lengths(segment_ids, seq_lengths)
    require_same("values", values, "labels", labels)
    if at_hand(segment_ids):
        check_segments(segment_ids, seq_lengths)
    counted = is_target(labels, segment_ids)
    segments = seq_lengths.shape[1]
    sums = sum_by_segment(values.where(counted, 0), segment_ids, segments)
    return PerSequence(sums[:, 1:], sum_by_segment(counted.long(), segment_ids, segments)[:, 1:])


def token_accuracy(
    logits: Float[Tensor, "batch seq classes"],
    labels: Int[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    seq_lengths: Int[Tensor, "batch segments"],
) -> PerSequence:
    """Which share of its targets each sequence gets right. For a causal model give the labels of `shift_labels`.

    Args, Raises: as `unpack`, with the logits of each label at its place.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]])
        >>> hits = token_accuracy(logits, torch.tensor([[0, 1, 0]]), torch.tensor([[1, 1, 2]]), torch.tensor([[2, 1]]))
        >>> hits.means, hits.mean
        (tensor([[0.5000, 1.0000]]), tensor(0.7500))

    Cost: an argmax over the logits, and as `unpack`.
    """
    require_logits(logits, labels)
    return unpack((logits.argmax(-1) == labels).float(), labels, segment_ids, seq_lengths)


def sequence_accuracy(
    logits: Float[Tensor, "batch segments classes"],
    labels: Int[Tensor, "batch segments"],
    seq_lengths: Int[Tensor, "batch segments"],
) -> PerSequence:
    """Whether each sequence with a label gets the right class: next-sentence prediction, classification.

    Raises:
        DataError: shapes or dtypes that do not agree.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
        >>> sequence_accuracy(logits, torch.tensor([[0, 1], [1, -100]]), torch.tensor([[3, 5], [8, 0]])).mean
        tensor(0.6667)
    """
    counted = sequence_weights(seq_lengths, labels) > 0
    require_logits(logits, labels)
    return _hits(logits.argmax(-1) == labels, counted)


def span_accuracy(
    start_logits: Float[Tensor, "batch seq"],
    end_logits: Float[Tensor, "batch seq"],
    start_positions: Int[Tensor, "batch segments"],
    end_positions: Int[Tensor, "batch segments"],
    segment_ids: Int[Tensor, "batch seq"],
    seq_lengths: Int[Tensor, "batch segments"],
) -> PerSequence:
    """Exact match: whether the likeliest start and the likeliest end of each sequence are both those of its answer.

    Start and end are chosen each by itself, as the loss scores them. Choosing answers for a benchmark, over texts and
    with rules on their length, is another matter.

    Args, Raises: as `spans.span_loss`.

    Example:
        >>> import torch
        >>> segment_ids, seq_lengths = torch.tensor([[1, 1, 2, 2]]), torch.tensor([[2, 2]])
        >>> logits, starts = torch.tensor([[0.0, 1.0, 5.0, 6.0]]), torch.tensor([[1, 0]])
        >>> span_accuracy(logits, logits, starts, torch.tensor([[1, 1]]), segment_ids, seq_lengths).means
        tensor([[1., 0.]])
    """
    require_spans(start_logits, end_logits, start_positions, end_positions, segment_ids, seq_lengths)
    starts = predicted_positions(start_logits, segment_ids, seq_lengths)
    ends = predicted_positions(end_logits, segment_ids, seq_lengths)
    counted = sequence_weights(seq_lengths, start_positions, end_positions) > 0
    return _hits((starts == start_positions) & (ends == end_positions), counted)


def _hits(right: Bool[Tensor, "batch segments"], counted: Bool[Tensor, "batch segments"]) -> PerSequence:
    return PerSequence((right & counted).float(), counted.long())
