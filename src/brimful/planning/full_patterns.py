"""The most valuable patterns that fill a pack to the last slot, where values may be negative."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from brimful.validation import IntArray

Floats = npt.NDArray[np.float64]

_BLOCK = 2**20  # sums that are in memory at once


class FullPatterns:
    """Patterns of at most max_sequences lengths from 1 to max_length that add up to max_length exactly.

        values of 1 2 3 4:  -5 2 4 1,  max_length 4, max_sequences 2:   [2 2] is worth 4, [4] 1, [3 1] -1

    Unlike in an ordinary knapsack no slot may stay empty, and a length of negative value can be the only way to fill
    one up. There are about max_length^(max_sequences − 1) such patterns; none of them is listed.

    Args:
        max_length: slots.
        max_sequences: most sequences in a pattern, ≥ 1.

    Example:
        >>> full = FullPatterns(max_length=4, max_sequences=2)
        >>> full.solve(np.array([-5.0, 2.0, 4.0, 1.0]))  # the best that holds a 1, a 2, a 3, a 4
        array([-1.,  4., -1.,  1.])
        >>> full.trace(np.array([0, 1]))
        array([[1, 0, 1, 0],
               [0, 2, 0, 0]])

    Cost: max_length² additions for each sequence of a pattern beyond the first, vectorised; memory for one row of
    max_length per sequence of a pattern.
    Source: Gilmore and Gomory, A linear programming approach to the cutting stock problem (1961), for exact fill.
    """

    def __init__(self, max_length: int, max_sequences: int) -> None:
        self._max_length = max_length
        self._depth = min(max_sequences, max_length)
        self._values: Floats = np.zeros(max_length + 1)
        self._tables: list[Floats] = []  # [k][s]: the best that fills s slots with at most k sequences

    def solve(self, values: Floats) -> Floats:
        """(max_length,) the value of the best full pattern that holds each length; −inf where there is none.

        Args:
            values: (max_length,) what a sequence of each length from 1 up is worth.
        """
        size = self._max_length + 1
        self._values = np.concatenate([[-np.inf], values])
        nothing = np.full(size, -np.inf)
        nothing[0] = 0.0
        self._tables = [nothing]
        for _ in range(self._depth - 1):
            before = self._tables[-1]
            table = before.copy()
            # after[i, a] = before[s − a] with s = max_length − i
            padded = np.concatenate([before[::-1], np.full(self._max_length, -np.inf)])
            after = np.lib.stride_tricks.sliding_window_view(padded, size)
            step = max(1, _BLOCK // size)
            for start in range(0, size, step):
                best = (after[start : start + step] + self._values).max(axis=1)
                slots = slice(max(size - start - step, 0), size - start)
                np.maximum(table[slots], best[::-1], out=table[slots])
            if np.array_equal(table, before):
                break
            self._tables.append(table)
        with_length: Floats = values + self._tables[-1][-2::-1]
        return with_length

    def trace(self, places: IntArray) -> IntArray:
        """(places, max_length) copies of each length in the best full pattern that holds the length place + 1.

        Args:
            places: where `solve` found a value above −inf.
        """
        copies = np.zeros((len(places), self._max_length), np.int64)
        copies[np.arange(len(places)), places] = 1
        left = self._max_length - 1 - places
        lengths = np.arange(self._max_length + 1)
        for table, before in zip(self._tables[:0:-1], self._tables[-2::-1], strict=True):
            rows = np.flatnonzero(table[left] > before[left])
            if len(rows):
                rest = left[rows, None] - lengths
                worth = np.where(rest >= 0, before[rest] + self._values, -np.inf)
                lengths_chosen = worth.argmax(axis=1)
                copies[rows, lengths_chosen - 1] += 1
                left[rows] -= lengths_chosen
        return copies
