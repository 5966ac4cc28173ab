"""What every planning algorithm is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import DualPrices
from brimful.patterns import Patterns


@dataclass(frozen=True, slots=True, eq=False)
class PackingProblem:
    """Sequences to pack, already validated: every one of them fits into a pack.

    Args:
        histogram: how many sequences there are of each length.
        max_length: token slots in a pack.
        max_sequences: most sequences in a pack, or None for no limit.
        lengths: (sequences,) tokens in data order; None when only the histogram is known.
        time_limit: seconds after which an algorithm that improves its plan returns the best so far; None for no limit.
        target_gap: (packs − bound) / bound at which such an algorithm need not go on.
    """

    histogram: LengthHistogram
    max_length: int
    max_sequences: int | None
    lengths: npt.NDArray[np.integer[Any]] | None
    time_limit: float | None = None
    target_gap: float = 0.001


@dataclass(frozen=True, slots=True)
class Solution:
    """What an algorithm found.

    Args:
        patterns: cover the problem's histogram.
        prices: dual prices that prove a lower bound, or None.
    """

    patterns: Patterns
    prices: DualPrices | None = None
