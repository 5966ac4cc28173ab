"""Coarser and finer copies of a problem: lengths in units of a grid, rounded up so that every plan still fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from brimful.lengths import LengthHistogram
from brimful.patterns import Patterns
from brimful.planning.problem import PackingProblem
from brimful.validation import IntArray


@dataclass(frozen=True, slots=True, eq=False)
class GridProblem:
    """A problem in units of `grid` tokens: ⌈length / grid⌉ in packs of ⌊max_length / grid⌋.

        lengths 5 6 7 9, max_length 20, grid 4    ->    2 2 2 3 in packs of 5

    What fits there fits here. A length that no whole number of units below max_length holds takes a pack alone.

    Args:
        original: the problem in tokens.
        grid: tokens in a unit, ≥ 1; 1 is the problem itself.
        problem: the problem in units.
        unit_of: (lengths,) for each length of the original the index of its class in problem.histogram.
    """

    original: PackingProblem
    grid: int
    problem: PackingProblem
    unit_of: IntArray

    @classmethod
    def of(cls, original: PackingProblem, grid: int) -> GridProblem:
        """The problem on this grid."""
        slots = original.max_length // grid
        units = np.minimum(-(-original.histogram.lengths // grid), slots)
        histogram = LengthHistogram.from_counts(units, original.histogram.counts)
        problem = PackingProblem(histogram, slots, original.max_sequences, None)
        return cls(original, grid, problem, np.searchsorted(histogram.lengths, units))

    def in_tokens(self, patterns: Patterns) -> Patterns:
        """Patterns in units that cover problem.histogram, filled with the true lengths of each class.

        Each class is a queue of its lengths, longest first; a pattern takes as many from it as it holds copies. Where
        a queue passes from one length to the next, the pattern is cut in two.

        Cost: a few steps for each run and each length.
        """
        queues: list[list[list[int]]] = [[] for _ in self.problem.histogram.lengths]
        histogram = self.original.histogram
        for length, count, unit in zip(
            histogram.lengths.tolist(), histogram.counts.tolist(), self.unit_of.tolist(), strict=True
        ):
            queues[unit].append([length, count])
        classes = np.searchsorted(self.problem.histogram.lengths, patterns.lengths).tolist()
        copies, offsets = patterns.copies.tolist(), patterns.offsets.tolist()
        runs: list[tuple[int, int]] = []
        n_runs, counts = [], []
        for start, end, packs in zip(offsets[:-1], offsets[1:], patterns.counts.tolist(), strict=True):
            left = packs
            while left:
                pattern: dict[int, int] = {}
                taken: dict[tuple[int, int], int] = {}
                for run in range(start, end):
                    _peek(queues[classes[run]], copies[run], pattern, taken, classes[run])
                # As many equal packs as the shortest of the queues' heads allows.
                repeat = min(left, *(queues[unit][-1 - at][1] // n for (unit, at), n in taken.items()))
                repeat = max(1, repeat)
                for (unit, at), n in taken.items():
                    queues[unit][-1 - at][1] -= n * repeat
                for unit in {classes[run] for run in range(start, end)}:
                    while queues[unit] and not queues[unit][-1][1]:
                        queues[unit].pop()
                runs += sorted(pattern.items(), reverse=True)
                n_runs.append(len(pattern))
                counts.append(repeat)
                left -= repeat
        if not runs:
            return Patterns.empty()
        table = np.array(runs, np.int64)
        return Patterns.merged(table[:, 0], table[:, 1], np.array(n_runs, np.int64), np.array(counts, np.int64))


def _peek(
    queue: list[list[int]], copies: int, pattern: dict[int, int], taken: dict[tuple[int, int], int], unit: int
) -> None:
    """Add the next `copies` lengths of a queue (its longest lie at its end) to a pattern, without taking them yet."""
    at = 0
    while copies:
        length, count = queue[-1 - at]
        n = min(copies, count)
        pattern[length] = pattern.get(length, 0) + n
        taken[unit, at] = taken.get((unit, at), 0) + n
        copies -= n
        at += 1
