"""How few packs can do: proofs from the histogram alone, or from the histogram and prices that anyone can check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from brimful.errors import PlanError
from brimful.knapsack import PatternKnapsack
from brimful.lengths import LengthHistogram, require_fit
from brimful.validation import IntArray, read_only, validate_capacity, whole_numbers

PRICE_UNIT = 2**40
"""A whole pack, in the units of dual prices."""

_MOST_STEPS = 2**31  # of a proof: some seconds
_STEPS_OF_A_SLOT = 2**10  # that it takes at least, however few lengths there are
_MOST_K = 50


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A number of packs below which no plan can go, and the argument that proves it."""

    packs: int
    kind: str


def lower_bound(histogram: LengthHistogram, max_length: int, max_sequences: int | None = None) -> LowerBound:
    """The best of the bounds of this module that need no prices.

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

    Cost: some dozens of passes over the distinct lengths.
    """
    require_fit(histogram, max_length)
    bounds = [bound(histogram, max_length) for bound in (token_bound, martello_toth_bound, dual_feasible_bound)]
    if max_sequences is not None:
        max_sequences = validate_capacity(max_sequences, "max_sequences")
        bounds.append(LowerBound(-(-histogram.n_sequences // max_sequences), "max_sequences"))
    return max(bounds, key=lambda bound: bound.packs)


@dataclass(frozen=True, slots=True, eq=False)
class DualPrices:
    """A price for each length, with which anyone can prove a lower bound again.

    Args:
        grid: lengths are priced by ⌊length / grid⌋; 1 prices every length by itself.
        prices: (classes,) int64, for each distinct ⌊length / grid⌋ of a histogram in increasing order what a sequence
            of that class is worth, in units of 1 / PRICE_UNIT packs, from 0 to PRICE_UNIT.

    Raises:
        PlanError: a grid below 1, or a price out of range.
    """

    grid: int
    prices: IntArray

    def __post_init__(self) -> None:
        validate_capacity(self.grid, "the grid of prices")
        prices = read_only(whole_numbers(self.prices, "prices"))
        if len(prices) and (prices.min() < 0 or prices.max() > PRICE_UNIT):
            raise PlanError(f"prices are whole numbers from 0 to {PRICE_UNIT}")
        object.__setattr__(self, "prices", prices)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DualPrices):
            return NotImplemented
        return self.grid == other.grid and np.array_equal(self.prices, other.prices)

    def __hash__(self) -> int:
        return hash((self.grid, self.prices.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.grid, self.prices)


def require_prices(histogram: LengthHistogram, max_length: int, max_sequences: int | None, prices: DualPrices) -> None:
    """Nothing, if these prices can prove a bound here in a sensible time; otherwise a PlanError."""
    classes = np.unique(histogram.lengths // prices.grid)
    if len(classes) != len(prices.prices):
        raise PlanError(f"prices are one for each of {len(classes)} classes of lengths, not {len(prices.prices)}")
    if not provable(histogram, max_length, max_sequences, prices.grid):
        raise PlanError(f"a proof with prices on a grid of {prices.grid} takes too long here; use a coarser grid")


def provable(histogram: LengthHistogram, max_length: int, max_sequences: int | None, grid: int) -> bool:
    """Whether `dual_price_bound` takes seconds, not minutes, with prices on this grid."""
    classes, slots = np.unique(histogram.lengths // grid), max_length // grid
    depth = 1
    if max_sequences is not None and len(classes) and max_sequences < slots // max(int(classes[0]), 1):
        depth = max_sequences
    return slots * max(len(classes) * depth, _STEPS_OF_A_SLOT) <= _MOST_STEPS


def dual_price_bound(
    histogram: LengthHistogram, max_length: int, max_sequences: int | None, prices: DualPrices
) -> LowerBound:
    """All sequences together are worth so much, and no pack can hold more than the best pattern is worth.

        lengths 6 6 6 4, max_length 10, price of a 6: 1, of a 4: 0    ->    worth 3, no pack more than 1: 3 packs

    Any prices give a valid bound; those of the linear programme give the best one. Whole numbers throughout: the bound
    is a theorem, not a result of floating point. On a grid, lengths are rounded *down*, with max_length: whatever fits
    in tokens fits there, so the bound holds for the true lengths.

    Raises:
        PlanError: there is not one price for each class of lengths, or the proof would take too long.

    Example:
        >>> histogram = LengthHistogram.from_lengths([6, 6, 6, 4])
        >>> dual_price_bound(histogram, 10, None, DualPrices(1, np.array([0, PRICE_UNIT])))
        LowerBound(packs=3, kind='linear-programme')

    Cost: one knapsack: max_length / grid × classes steps (times max_sequences where that limits).
    Source: duality of Gilmore and Gomory's programme; Farley (1990).
    """
    require_prices(histogram, max_length, max_sequences, prices)
    classes, places = np.unique(histogram.lengths // prices.grid, return_inverse=True)
    slots = max_length // prices.grid
    worth = sum(
        price * count for price, count in zip(prices.prices[places].tolist(), histogram.counts.tolist(), strict=True)
    )
    some = classes > 0
    free = int(prices.prices[~some].sum())  # sequences shorter than the grid take no slots there: no pack is full
    most = int(PatternKnapsack(classes[some], slots, max_sequences).solve(prices.prices[some])) if slots else 0
    if free or most < 1:
        return LowerBound(0, "linear-programme")
    return LowerBound(-(-worth // most), "linear-programme")


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


def dual_feasible_bound(histogram: LengthHistogram, max_length: int) -> LowerBound:
    """Sizes that a function inflates, but never so much that a pack which was not too full becomes so.

    As a share x of the pack, a length counts x where (k + 1) · x is whole, and ⌊(k + 1) · x⌋ / k elsewhere; before
    that, lengths shorter than a threshold count nothing and those longer than max_length less it count a whole pack:

        lengths 4 4 4, max_length 11, k = 2:    ⌊3 · 4 / 11⌋ / 2 = 1/2 each    ->    ⌈3 / 2⌉ = 2 packs

    The greatest number over k up to 50 and all thresholds is the bound.

    Example:
        >>> dual_feasible_bound(LengthHistogram.from_lengths([4] * 7), max_length=11)
        LowerBound(packs=4, kind='fekete-schepers')

    Cost: 50 passes over the distinct lengths; the best is computed again in exact whole numbers.
    Source: Fekete and Schepers, New classes of fast lower bounds for bin packing problems (2001), u^(k) after U^(ε).
    """
    lengths, counts = histogram.lengths, histogram.counts
    half = np.searchsorted(lengths, max_length // 2, side="right")
    thresholds = np.concatenate([[0], lengths[:half]])
    small = np.searchsorted(lengths, thresholds)
    alone = np.searchsorted(lengths, max_length - thresholds, side="right")
    sequences_before = np.concatenate([[0], np.cumsum(counts)])
    best, found = 0.0, (1, 0)
    for k in range(1, _MOST_K + 1):
        times = (k + 1) * lengths
        shares = np.where(times % max_length == 0, lengths / max_length, times // max_length / k)
        before = np.concatenate([[0.0], np.cumsum(shares * counts)])
        packs = before[alone] - before[small] + (sequences_before[-1] - sequences_before[alone])
        at = int(np.argmax(packs))
        if packs[at] > best:
            best, found = float(packs[at]), (k, at)
    k, at = found
    whole = int(sequences_before[-1] - sequences_before[alone[at]])
    # In units of 1 / (k · max_length) packs, as Python's whole numbers: exact for any counts.
    worth = whole * k * max_length
    inner = slice(int(small[at]), int(alone[at]))
    for length, count in zip(lengths[inner].tolist(), counts[inner].tolist(), strict=True):
        times = (k + 1) * length
        worth += count * (k * length if times % max_length == 0 else max_length * (times // max_length))
    return LowerBound(-(-worth // (k * max_length)), "fekete-schepers")
