"""No packing: every sequence has a row to itself, and the rest of it is padding."""

from __future__ import annotations

import numpy as np

from brimful.patterns import Patterns
from brimful.planning.problem import PackingProblem, Solution


def unpacked(problem: PackingProblem) -> Solution:
    """One pack per sequence: the baseline that padding to max_length is.

    Cost: one pattern per distinct length.
    """
    lengths, counts = problem.histogram.lengths, problem.histogram.counts
    return Solution(Patterns(lengths, np.ones_like(lengths), np.arange(len(lengths) + 1), counts))
