"""Next fit: fill one pack in data order, and start another when the next sequence does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import SettingError
from brimful.patterns import Patterns
from brimful.planning.problem import PackingProblem, Solution
from brimful.validation import IntArray

_WINDOW = 2**20


def next_fit(problem: PackingProblem) -> Solution:
    """The packs of one greedy walk through the data: a baseline, as in T5's preprocessing.

        lengths  7 2 4 6 3, max_length 10    ->    [7 2.] [4 6] [3.......]

    The plan says which lengths share a pack, as every plan does; `assign` then fills it with random sequences of those
    lengths, not with the very neighbours that the walk met.

    Raises:
        SettingError: only a histogram is known, not the lengths in data order.

    Cost: a vectorised search per sequence, one step per pack.
    Source: next fit: Johnson (1973); "GREEDY" in arXiv 2107.02027, table 1.
    """
    if problem.lengths is None:
        raise SettingError("next_fit packs in data order, which a histogram does not have; give it the lengths")
    offsets = _walk(problem.lengths, problem.max_length, problem.max_sequences or problem.max_length)
    return Solution(Patterns.from_packs(problem.lengths, offsets))


def _walk(lengths: npt.NDArray[np.integer[Any]], max_length: int, max_sequences: int) -> IntArray:
    """(packs + 1,) where each pack starts, and the end."""
    starts: list[int] = []
    begin = 0
    while begin < len(lengths):
        window = lengths[begin : begin + _WINDOW + max_length].astype(np.int64)  # more than one pack can hold
        ends = np.cumsum(window)
        # If a pack starts at i, the first sequence that no longer fits is at follow[i].
        too_many = np.searchsorted(ends, ends - window + max_length, side="right")
        follow = memoryview(np.minimum(too_many, np.arange(len(window)) + max_sequences).data)
        at, size = 0, len(window)
        while at < size:
            starts.append(begin + at)
            at = follow[at]
        # The last pack may go on beyond the window: walk it again from its start.
        begin = starts.pop() if begin + size < len(lengths) else len(lengths)
    return np.array([*starts, len(lengths)], np.int64)
