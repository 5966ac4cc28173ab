"""How much each target counts: per token, per sequence or between, with the denominator of a whole optimizer step.

Every loss of this package is Σ weight · loss / Σ weight. A token weighs n^−p, where n is the number of targets in its
sequence; the normalization is the choice of p. So a sequence with n targets weighs n · n^−p:

    targets in the pack      x x x x | x        a token weighs                a sequence weighs
    normalization token      p = 0              1    1    1    1  | 1         4 | 1
    normalization sqrt       p = 1/2            1/2  1/2  1/2  1/2| 1         2 | 1
    normalization sequence   p = 1              1/4  1/4  1/4  1/4| 1         1 | 1

The denominator Σ weight must be that of everything that one optimizer step learns from. Packs hold different numbers of
sequences and targets, so a mean of means over micro-batches, or over ranks, is not the mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import torch
import torch.distributed as dist
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from brimful.errors import DataError, SettingError, shown
from brimful.torch.checks import IGNORED, at_hand, check_segments, require_same, require_tokens, require_whole

NORMALIZATIONS: Mapping[str, float] = MappingProxyType({"token": 0.0, "sequence": 1.0, "sqrt": 0.5})
"""Every normalization by name, with its exponent p."""


def token_weights(
    labels: Int[Tensor, "batch seq"],
    segment_ids: Int[Tensor, "batch seq"],
    normalization: str = "token",
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "batch seq"]:
    """What each token counts in the loss; 0 where there is no target.

    Args:
        labels: −100 where there is no target. For a causal model those of `shift_labels`.
        segment_ids: 1, 2, 3 … per sequence in its row, 0 on padding, which never counts.
        normalization: what the loss is a mean of.

            - token: all targets alike; a long sequence counts for more than a short one;
            - sequence: the mean over sequences of their means; a token of a short sequence counts for more;
            - sqrt: between the two; a sequence with n targets counts √n, a token 1/√n.
        dtype: of the weights; torch.float64 for a loss in float64.

    Raises:
        SettingError: a normalization that there is not.
        DataError: shapes or dtypes that do not agree.
        LengthError: segment_ids that do not count up (checked on the CPU only).

    Example:
        >>> labels, segment_ids = torch.tensor([[7, 7, 7, 7, -100, 7, 7]]), torch.tensor([[1, 1, 1, 1, 1, 2, 0]])
        >>> token_weights(labels, segment_ids, "sequence")
        tensor([[0.2500, 0.2500, 0.2500, 0.2500, 0.0000, 1.0000, 0.0000]])
        >>> token_weights(labels, segment_ids, "sqrt").sum()
        tensor(3.)

    Cost: a few passes over (batch, seq) numbers, no loop over sequences, no wait for an accelerator.
    Source: token and sequence: arXiv 2107.02027, section 3.2.3; sqrt: the square averaging of InternVL 2.5, arXiv
    2412.05271, loss reweighting.
    """
    require_tokens(labels, segment_ids)
    if not isinstance(normalization, str) or normalization not in NORMALIZATIONS:
        raise SettingError(f"there is no normalization {shown(normalization)}; there are {', '.join(NORMALIZATIONS)}")
    if at_hand(segment_ids):
        check_segments(segment_ids)
    targets = is_target(labels, segment_ids)
    counts = sum_by_segment(targets.long(), segment_ids, segment_ids.shape[1])
    targets_of_sequence = counts.gather(1, segment_ids.long()).clamp(min=1)
    return targets_of_sequence.to(dtype).pow(-NORMALIZATIONS[normalization]) * targets


def sequence_weights(
    seq_lengths: Int[Tensor, "batch segments"],
    *labels: Num[Tensor, "batch segments"],
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "batch segments"]:
    """What each sequence counts in a loss that has one label a sequence: 1, or 0 where there is no sequence or label.

    Args:
        seq_lengths: tokens of each sequence, filled up with 0.
        labels: the labels that a sequence needs, such as start and end positions; one that is −100 is none. Labels in
            floating point have no such sign: leave them out.
        dtype: of the weights; torch.float64 for a loss in float64.

    Raises:
        DataError: shapes or dtypes that do not agree.

    Example:
        >>> sequence_weights(torch.tensor([[5, 3], [8, 0]]), torch.tensor([[1, -100], [0, 0]]))
        tensor([[1., 0.],
                [1., 0.]])

    Cost: one pass over (batch, segments) numbers.
    """
    require_whole("seq_lengths", seq_lengths, "(batch, segments)")
    counted = seq_lengths > 0
    for label in labels:
        require_whole("labels", label, "(batch, segments)")
        require_same("labels", label, "seq_lengths", seq_lengths)
        counted = counted & (label != IGNORED)
    return counted.to(dtype)


def step_denominator(
    weights: Iterable[Float[Tensor, "batch seq"]],
    *,
    averaged_over_ranks: bool = True,
    group: dist.ProcessGroup | None = None,
) -> Float[Tensor, ""]:
    """The denominator of a whole optimizer step, over its micro-batches and over all ranks.

    Give it to the loss of every micro-batch of the step, and add up their gradients as they come. On one process the
    losses of the micro-batches then *sum* to the loss of the whole batch: do not divide by their number again (turn off
    what a trainer does of the kind).

    With several ranks, DistributedDataParallel and its kin take the *mean* of gradients over ranks, where the sum is
    due. What is returned is therefore divided by the number of ranks, which is to multiply each loss by it: the mean
    over ranks of the summed losses is the loss of the whole batch. Where gradients are added over ranks instead, say
    averaged_over_ranks=False; then the sum over ranks is the loss of the whole batch.

    Args:
        weights: of each micro-batch of the step on this rank, from `token_weights` or `sequence_weights`, at least one.
        averaged_over_ranks: whether gradients are averaged over ranks (DDP, FSDP and DeepSpeed do), or added.
        group: the ranks with data of their own; None for all. Only used where torch.distributed is initialised. Ranks
            that share their data (tensor or context parallel) must not all be in it.

    Returns:
        A scalar on the device of the weights; with NCCL this must be the accelerator. 0 where nothing counts anywhere:
        the loss is 0 then.

    Raises:
        DataError: there is no micro-batch.

    Example:
        >>> pack = torch.tensor([[1, 1, 1, 1, 2]])
        >>> weights = [token_weights(labels, pack, "sqrt") for labels in (pack, pack.where(pack == 2, -100))]
        >>> step_denominator(weights)      # two targets' root, 2, and 1 in the first; 1 in the second
        tensor(4.)

    Cost: one sum a micro-batch, and one all-reduce of one number a step, in which every rank of the group takes part.
    """
    sums = [weight.detach().sum() for weight in weights]
    if not sums:
        raise DataError("a step has at least one micro-batch, on every rank; there were no weights")
    total = torch.stack(sums).sum()
    if dist.is_available() and dist.is_initialized():
        dist.all_reduce(total, group=group)
        if averaged_over_ranks:
            total /= dist.get_world_size(group)
    return total


def weighted_mean(
    losses: Float[Tensor, "batch seq"], weights: Float[Tensor, "batch seq"], denominator: Tensor | float | None
) -> Float[Tensor, ""]:
    """Σ weight · loss / denominator, or / Σ weight where that is None; 0 with a gradient of zeros if nothing counts."""
    if denominator is None:
        denominator = weights.sum()
    if not isinstance(denominator, Tensor) and not 0 <= denominator < math.inf:
        raise SettingError(f"a denominator is a number from 0 up, not {shown(denominator)}; see step_denominator")
    divisor = torch.as_tensor(denominator, dtype=losses.dtype, device=losses.device)
    if divisor.ndim:
        raise SettingError(f"a denominator is one number, not of shape {tuple(divisor.shape)}; see step_denominator")
    return (losses * weights).sum() / divisor.where(divisor != 0, 1)


def is_target(labels: Int[Tensor, "batch seq"], segment_ids: Int[Tensor, "batch seq"]) -> Bool[Tensor, "batch seq"]:
    """Where there is something to learn: a label on a token of a sequence."""
    return (labels != IGNORED) & (segment_ids > 0)


def sum_by_segment(
    values: Num[Tensor, "batch seq"], segment_ids: Int[Tensor, "batch seq"], segments: int
) -> Num[Tensor, "batch 1+segments"]:
    """The sum over each sequence of each row, all at once; column 0 is padding.

        values       1 2 3 | 4 5 | 6
        segment_ids  1 1 1   2 2   0      ->    6 | 6 | 9

    One `index_add` over the whole batch, which torch can do deterministically and whose gradient is a look-up.
    """
    batch = len(values)
    sums = values.new_zeros(batch * (segments + 1))
    return sums.index_add(0, segment_keys(segment_ids, segments), values.flatten()).view(batch, segments + 1)


def segment_keys(segment_ids: Int[Tensor, "batch seq"], segments: int) -> Int[Tensor, " tokens"]:
    """For each token the number of its segment in the batch, row · (1 + segments) + segment_id."""
    rows = torch.arange(len(segment_ids), device=segment_ids.device)
    return (rows[:, None] * (segments + 1) + segment_ids).flatten()
