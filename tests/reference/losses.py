"""Losses and accuracies of separate sequences, one at a time, with torch's own loss functions.

Rows are cut into sequences by plain Python: sequence after sequence, each starting at a multiple of `align` slots.
A sequence without a target is left out, and if that leaves nothing, the result is a zero that has a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor

Rows = Sequence[Sequence[int]]


def slices(seq_lengths: Rows, align: int) -> Iterator[tuple[int, int, slice]]:
    """Row, number in the row, and slots of every sequence."""
    for row, lengths in enumerate(seq_lengths):
        start = 0
        for at, length in enumerate(lengths):
            yield row, at, slice(start, start + length)
            start += length
            while start % align:
                start += 1


def token_loss(logits: Tensor, labels: Tensor, seq_lengths: Rows, align: int, normalization: str) -> Tensor:
    """Masked LM and token classification."""
    return _normalized([(logits[row, at], labels[row, at]) for row, _, at in slices(seq_lengths, align)], normalization)


def causal_lm_loss(
    logits: Tensor, labels: Tensor, seq_lengths: Rows, align: int, normalization: str, shift: int
) -> Tensor:
    """Each sequence's logits but the last, with its labels but the first."""
    pairs = []
    for row, _, at in slices(seq_lengths, align):
        alone, its_labels = logits[row, at], labels[row, at]
        pairs.append((alone[: max(len(alone) - shift, 0)], its_labels[shift:]))
    return _normalized(pairs, normalization)


def _normalized(pairs: list[tuple[Tensor, Tensor]], normalization: str) -> Tensor:
    total, denominator = _nothing(pairs[0][0]) if pairs else torch.zeros(()), 0.0
    for logits, labels in pairs:
        targets = sum(label != -100 for label in labels.tolist())
        if not targets:
            continue
        if normalization == "token":
            total = total + F.cross_entropy(logits, labels, reduction="sum")
            denominator += targets
        elif normalization == "sequence":
            total = total + F.cross_entropy(logits, labels)
            denominator += 1
        else:
            total = total + F.cross_entropy(logits, labels) * targets**0.5
            denominator += targets**0.5
    return total / (denominator or 1)


def sequence_loss(logits: Tensor, labels: Tensor, seq_lengths: Rows, problem: str) -> Tensor:
    """One call of torch's loss for each sequence, then their mean."""
    losses = []
    for row, lengths in enumerate(seq_lengths):
        for at in range(len(lengths)):
            if problem == "regression":
                losses.append(F.mse_loss(logits[row, at].squeeze(), labels[row, at].squeeze()))
            elif problem == "multi_label_classification":
                losses.append(F.binary_cross_entropy_with_logits(logits[row, at], labels[row, at]))
            elif labels[row, at] != -100:
                losses.append(F.cross_entropy(logits[row, at], labels[row, at]))
    return torch.stack(losses).mean() if losses else _nothing(logits)


def span_loss(
    start_logits: Tensor, end_logits: Tensor, starts: Tensor, ends: Tensor, seq_lengths: Rows, align: int
) -> Tensor:
    """A softmax over each sequence that is cut out of its row."""
    losses = []
    for row, number, at in slices(seq_lengths, align):
        start, end = starts[row, number], ends[row, number]
        if start != -100 and end != -100:
            losses.append(
                (F.cross_entropy(start_logits[row, at], start) + F.cross_entropy(end_logits[row, at], end)) / 2
            )
    return torch.stack(losses).mean() if losses else _nothing(start_logits) + _nothing(end_logits)


def token_hits(logits: Tensor, labels: Tensor, seq_lengths: Rows, align: int) -> list[tuple[int, int]]:
    """Hits and targets of each sequence, in order."""
    found = []
    for row, _, at in slices(seq_lengths, align):
        targets = [place for place, label in enumerate(labels[row, at].tolist()) if label != -100]
        guesses = logits[row, at].argmax(-1).tolist()
        found.append((sum(guesses[place] == labels[row, at][place] for place in targets), len(targets)))
    return found


def predicted_positions(logits: Tensor, seq_lengths: Rows, align: int) -> list[int]:
    """The place of the highest score in each sequence, in order."""
    return [int(logits[row, at].argmax()) for row, _, at in slices(seq_lengths, align)]


def _nothing(tensor: Tensor) -> Tensor:
    return tensor.sum() * 0
