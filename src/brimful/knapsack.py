"""The most valuable pattern: a knapsack of max_length slots that holds at most max_sequences sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.validation import IntArray

Values = npt.NDArray[Any]  # (lengths,) float64, or int64 for exact answers

_NOISE = 1e-14  # below this a difference of two sums of values is rounding, not gain


class PatternKnapsack:
    """Patterns priced by dynamic programming over the slots used (and over the sequences, if they are limited).

        lengths 3 5, values 0.4 0.7, 10 slots:   [5 5] is worth 1.4, [3 3 3] 1.2, [5 3] 1.1

    Args:
        lengths: (lengths,) distinct, increasing, 1 ≤ length ≤ max_length.
        max_length: slots.
        max_sequences: most sequences in a pattern, or None for no limit.

    Example:
        >>> knapsack = PatternKnapsack(np.array([3, 5]), max_length=10, max_sequences=None)
        >>> knapsack.solve(np.array([4, 7]))
        14
        >>> knapsack.pattern(0)  # the best that holds a 3
        array([3, 0])

    Cost: max_length × lengths steps, vectorised over the lengths; times max_sequences where that limits.
    Source: Gilmore and Gomory, A linear programming approach to the cutting stock problem (1961).
    """

    def __init__(self, lengths: IntArray, max_length: int, max_sequences: int | None) -> None:
        self._lengths = lengths
        self._max_length = max_length
        limited = max_sequences is not None and len(lengths) and max_sequences < max_length // int(lengths[0])
        self._depth = max_sequences if limited else None
        self._fitting = np.searchsorted(lengths, np.arange(max_length + 1), side="right").tolist()
        self._values: Values = np.zeros(len(lengths))
        self._tables: list[Values] = []  # [k][c]: the best of k sequences in c slots; only one without a limit
        self._choices: list[int] = []

    def solve(self, values: Values) -> Any:
        """The value of the best pattern; `best_with` and `pattern` then tell more.

        Args:
            values: (lengths,) ≥ 0, what a sequence of each length is worth; int64 gives an exact answer.
        """
        self._values = values
        if self._depth is None:
            self._solve_unlimited()
        else:
            self._solve_limited(self._depth)
        return self._tables[-1][self._max_length].item()

    def best_with(self) -> Values:
        """(lengths,) for each length, the value of the best pattern that holds it."""
        rest = self._tables[-1 if self._depth is None else -2]
        best: Values = self._values + rest[self._max_length - self._lengths]
        return best

    def pattern(self, index: int) -> IntArray:
        """(lengths,) copies in the best pattern that holds lengths[index]."""
        copies = np.zeros(len(self._lengths), np.int64)
        copies[index] = 1
        slots = self._max_length - int(self._lengths[index])
        if self._depth is None:
            while slots > 0:
                choice = self._choices[slots]
                if choice < 0:
                    slots -= 1
                else:
                    copies[choice] += 1
                    slots -= int(self._lengths[choice])
            return copies
        for sequences in range(self._depth - 1, 0, -1):
            table, before = self._tables[sequences], self._tables[sequences - 1]
            fitting = self._fitting[slots]
            if not fitting or table[slots] <= before[slots] + _NOISE:
                continue
            choice = int(np.argmax(before[slots - self._lengths[:fitting]] + self._values[:fitting]))
            copies[choice] += 1
            slots -= int(self._lengths[choice])
        return copies

    def _solve_unlimited(self) -> None:
        lengths, values = self._lengths, self._values
        table = np.zeros(self._max_length + 1, values.dtype)
        choices = [-1] * (self._max_length + 1)  # −1: leave a slot empty
        for slots in range(int(lengths[0]) if len(lengths) else self._max_length + 1, self._max_length + 1):
            fitting = self._fitting[slots]
            candidates = table[slots - lengths[:fitting]] + values[:fitting]
            choice = int(candidates.argmax())
            if candidates[choice] > table[slots - 1] + (_NOISE if values.dtype.kind == "f" else 0):
                table[slots] = candidates[choice]
                choices[slots] = choice
            else:
                table[slots] = table[slots - 1]
        self._tables, self._choices = [table], choices

    def _solve_limited(self, depth: int) -> None:
        size = self._max_length + 1
        self._tables = [np.zeros(size, self._values.dtype)]
        for _ in range(depth):
            before = self._tables[-1]
            table = before.copy()
            for length, value in zip(self._lengths.tolist(), self._values, strict=True):
                np.maximum(table[length:], before[: size - length] + value, out=table[length:])
            self._tables.append(table)
