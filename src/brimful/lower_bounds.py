"""How few packs can do: proofs that need nothing but the histogram."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brimful.lengths import LengthHistogram, require_fit, validate_capacity


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A number of packs below which no plan can go, and the argument that proves it."""

    packs: int
    kind: str


def lower_bound(histogram: LengthHistogram, max_length: int, max_sequences: int | None = None) -> LowerBound:
    """The best of the bounds of this module.

    Args:
        histogram: the sequences to pack.
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack, ≥ 1; None for no limit.

    Raises:
        CapacityError: a sequence is longer than max_length.
        LengthError: max_length or max_sequences is no whole number ≥ 1.

    Example:
        >>> lower_bound(LengthHistogram.from_lengths([6, 6, 6, 1]), max_length=10)
        LowerBound(packs=3, kind='martello-toth')
        >>> lower_bound(LengthHistogram.from_lengths([1] * 9), max_length=10, max_sequences=2)
        LowerBound(packs=5, kind='max_sequences')

    Cost: a few passes over the distinct lengths.
    """
    require_fit(histogram, max_length)
    bounds = [token_bound(histogram, max_length), martello_toth_bound(histogram, max_length)]
    if max_sequences is not None:
        max_sequences = validate_capacity(max_sequences, "max_sequences")
        bounds.append(LowerBound(-(-histogram.n_sequences // max_sequences), "max_sequences"))
    return max(bounds, key=lambda bound: bound.packs)


def token_bound(histogram: LengthHistogram, max_length: int) -> LowerBound:
    """The packs that the tokens would fill if they could be cut anywhere: ⌈tokens / max_length⌉.

        lengths  2 3 7 9     21 tokens
        counts   1 1 1 1     max_length 10   ->  [##########][##########][#.........]   3 packs

    Example:
        >>> token_bound(LengthHistogram.from_lengths([2, 3, 7, 9]), max_length=10)
        LowerBound(packs=3, kind='tokens')

    Source: folklore; L1 in Martello and Toth, Knapsack Problems (1990), section 8.3.1.
    """
    return LowerBound(-(-histogram.n_tokens // max_length), "tokens")


def martello_toth_bound(histogram: LengthHistogram, max_length: int) -> LowerBound:
    """L2: no two sequences longer than half a pack share one, and beside them there is only so much space.

    For a threshold a ≤ max_length / 2, leave out the sequences shorter than a. Those longer than max_length − a
    are then alone, those longer than half get a pack each, and the rest must fit beside the latter or into new packs:

        lengths  7 7 5 5 5, max_length 10, a = 5:   [7..][7..] take no 5   ->  2 + ⌈15 / 10⌉ = 4 packs (tokens: 3)

    The greatest such number over all thresholds is the bound; a = 0 makes it at least the token bound.

    Example:
        >>> martello_toth_bound(LengthHistogram.from_lengths([7, 7, 5, 5, 5]), max_length=10)
        LowerBound(packs=4, kind='martello-toth')

    Cost: a sort-free pass over the distinct lengths with prefix sums, exact in int64.
    Source: Martello and Toth, Knapsack Problems (1990), section 8.3.2.
    """
    lengths, counts = histogram.lengths, histogram.counts
    sequences_before = np.concatenate([[0], np.cumsum(counts)])
    tokens_before = np.concatenate([[0], np.cumsum(lengths * counts)])
    half = np.searchsorted(lengths, max_length // 2, side="right")  # from here on: longer than half a pack
    thresholds = np.concatenate([[0], lengths[:half]])
    small = np.searchsorted(lengths, thresholds)  # from here to half: the rest
    alone = np.searchsorted(lengths, max_length - thresholds, side="right")  # from here on: alone
    n_shareable = sequences_before[alone] - sequences_before[half]
    space_beside = n_shareable * max_length - (tokens_before[alone] - tokens_before[half])
    excess = tokens_before[half] - tokens_before[small] - space_beside
    n_large = sequences_before[-1] - sequences_before[half]
    packs = n_large + np.maximum(0, -(-excess // max_length))
    return LowerBound(int(packs.max()), "martello-toth")
