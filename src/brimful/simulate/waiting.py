"""How long a step takes in which every device waits for the slowest: expectations without a die being cast."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from brimful.simulate.costs import FloatArray

_FINEST = 2**14  # cells for the cost of a row, where no grid is exact
_MOST_CELLS = 2**22  # for a batch
_NOISE = 2.0**-48  # of a Fourier transform: chances below are nothing
_SIGMAS = 8  # beyond so many standard deviations a binomial has nothing left that a float would show


@dataclass(frozen=True, slots=True, eq=False)
class BatchCost:
    """What a device needs for a batch of sequences drawn at random, as a distribution on a grid.

    Args:
        tail: (cells,) how likely it is to need more than k · cell, for k = 0, 1, 2 …; 0 from the last on.
        cell: the width of the grid, in the unit of the costs.
        spread: what moving costs to the grid adds to a batch is sub-Gaussian with this deviation, in the same unit; 0
            where all costs lie on it.
    """

    tail: FloatArray
    cell: float
    spread: float

    def slowest_of(self, devices: int) -> float:
        """The expected maximum over so many devices, each with a batch of its own: Σ 1 − (1 − tail)^devices.

        Never less than without the grid, but for floating point, and by `error` more at most.
        """
        with np.errstate(divide="ignore"):  # a certain excess: log 0, and 1 − 0
            return float(-np.expm1(devices * np.log1p(-self.tail)).sum()) * self.cell

    def error(self, devices: int) -> float:
        """By how much `slowest_of` may be too high: the expected maximum of what the grid adds, which is 0 on average.

        Source: the maximum of n sub-Gaussian variables of deviation σ is at most σ √(2 ln n) on average.
        """
        return self.spread * math.sqrt(2 * math.log(devices))


def batch_cost(costs: FloatArray, shares: FloatArray, batch_size: int, cells: int | None = None) -> BatchCost:
    """The distribution of the sum of batch_size independent draws, by convolution.

        costs 1/2 or 1, equally likely, batch of 2    ->    1, 3/2, 3/2 or 2: more than 1 three times in four

    A cost between two points of the grid goes to both, in shares that keep its mean.

    Args:
        costs: (kinds,) from 0 to 1, one at least above 0.
        shares: (kinds,) how likely each is, 1 together.
        batch_size: draws, ≥ 1.
        cells: the grid divides 1 into so many, if that is quick; None for a fine one.

    Example:
        >>> cost = batch_cost(np.array([0.5, 1.0]), np.array([0.5, 0.5]), batch_size=2, cells=2)
        >>> cost.tail.round(12).tolist()
        [1.0, 1.0, 0.75, 0.25, 0.0]
        >>> [round(cost.slowest_of(devices), 6) for devices in (1, 2)]  # of 2: 1/16 · 1 + 8/16 · 3/2 + 7/16 · 2
        [1.5, 1.6875]

    Cost: two Fourier transforms of as many numbers as the costliest batch has cells, at most four million: a second
    then.
    """
    cells = max(1, min(cells or _FINEST, int(_MOST_CELLS / (batch_size * costs.max()))))
    scaled = costs * cells
    nearest = np.rint(scaled)
    places = np.where(np.isclose(scaled, nearest, rtol=1e-12, atol=0), nearest, scaled)
    below = np.floor(places).astype(np.int64)
    above = places - below  # the share that goes one cell up
    one = np.bincount(below, shares * (1 - above), below.max() + 2) + np.bincount(below + 1, shares * above)
    lowest, highest = (int(edge) * batch_size for edge in np.flatnonzero(one)[[0, -1]])
    quick = 1 << highest.bit_length()  # zeros up to a power of two: a transform of any other size is slower
    chances = np.fft.irfft(np.fft.rfft(one, quick) ** batch_size, quick)[: highest + 1]
    chances[:lowest] = 0.0
    chances[chances < _NOISE] = 0.0
    tail = np.append(np.minimum(np.cumsum(chances[::-1])[::-1][1:] / chances.sum(), 1.0), 0.0)
    tail[:lowest] = 1.0
    # An addition of mean 0 within one cell has the deviation cell / 2 at most, in Hoeffding's sense.
    spread = math.sqrt(batch_size) / (2 * cells) if above.any() else 0.0
    return BatchCost(tail, 1 / cells, spread)


def slowest_of(costs: FloatArray, shares: FloatArray, devices: int) -> float:
    """The expected maximum of so many independent draws.

    Example:
        >>> slowest_of(np.array([1.0, 3.0]), np.array([0.5, 0.5]), devices=2)  # 3 unless both are 1
        2.5
    """
    order = np.argsort(costs)
    at_most = np.minimum(np.cumsum(shares[order]), 1.0) ** devices
    at_most[-1] = 1.0
    return float(np.diff(at_most, prepend=0.0) @ costs[order])


def expected_groups(n: int, size: int, chance: float) -> float:
    """Into how many groups of `size` the longer ones of n sequences reach, on average, when the longest come first.

    With C of them longer, a binomial number, that is the mean of ⌈C / size⌉; `chance` is that of one being longer.

    Example:
        >>> expected_groups(n=2, size=1, chance=0.5), expected_groups(n=2, size=2, chance=0.5)  # 1, and 1 unless none
        (1.0, 0.75)

    Cost: 16 standard deviations of C, or nothing where these lie within one group.
    """
    if chance <= 0 or chance >= 1:
        return float(-(-n // size)) if chance >= 1 else 0.0
    reach = _SIGMAS * (math.sqrt(n * chance * (1 - chance)) + 4)
    first, last = max(0, math.floor(n * chance - reach)), min(n, math.ceil(n * chance + reach))
    if -(-first // size) == -(-last // size):
        return float(-(-last // size))
    counts = np.arange(first, last + 1.0)
    # From one count to the next a binomial's chance changes by (n − k) / (k + 1) · p / (1 − p).
    steps = np.log((n - counts[:-1]) / (counts[:-1] + 1)) + math.log(chance) - math.log1p(-chance)
    logs = np.append(0.0, np.cumsum(steps))
    chances = np.exp(logs - logs.max())
    return float((chances * np.ceil(counts / size)).sum() / chances.sum())
