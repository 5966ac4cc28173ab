"""Column generation: the linear programme over all patterns, solved with the few hundred that matter."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.knapsack import PatternKnapsack
from brimful.patterns import Patterns
from brimful.validation import IntArray

_COLUMNS_A_ROUND = 50
_SMOOTHING = 0.5
_TOLERANCE = 1e-9  # a pattern must be worth so much more than 1 to enter
_WHOLE = 1e-6  # how near to a whole number the objective is taken for it


@dataclass(frozen=True, slots=True)
class LinearSolution:
    """Where the linear programme stands.

    Args:
        objective: packs, a fraction, that the patterns found so far need: no proof of anything.
        bound: packs, a fraction, that no patterns whatever can go below, up to floating point.
        prices: (lengths,) float64, the dual prices that prove the bound: no pattern is worth more than 1.
        repeats: (patterns,) float64, how often each pattern found so far is used.
        solved: whether no pattern can improve it; False when it was cut off.
    """

    objective: float
    bound: float
    prices: npt.NDArray[np.float64]
    repeats: npt.NDArray[np.float64]
    solved: bool


class PatternProgramme:
    """min Σ repeats, so that every length is covered as often as demanded; patterns join while they pay.

        demand     3 × 7, 3 × 3          patterns so far   [7 .] [3 3 3]        objective 4
        prices     1 of a 7, 1/3 of a 3: the pattern [7 3] is worth 4/3 > 1, joins, and the objective falls to 3

    The dual prices that the knapsack sees are smoothed with the best so far, since raw ones jump about; and the bound
    of Farley holds in every round: prices divided by the worth of the best pattern are feasible for the dual.

    Args:
        lengths: (lengths,) distinct, increasing.
        max_length, max_sequences: what a pattern may hold.

    Cost: a linear programme of as many rows as there are lengths, and a knapsack, for each round; a few dozen rounds.
    Source: Gilmore and Gomory (1961, 1963); Farley, A note on bounding a class of linear programming problems (1990);
    smoothing: Wentges (1997).
    """

    def __init__(self, lengths: IntArray, max_length: int, max_sequences: int | None) -> None:
        import highspy

        self._lengths = lengths
        self._knapsack = PatternKnapsack(lengths, max_length, max_sequences)
        self._columns: list[IntArray] = []
        self._known: set[bytes] = set()
        self._demand: IntArray = np.zeros(len(lengths), np.int64)
        binding: Any = highspy.Highs.__base__  # the class on top of it prints a banner as soon as it is made
        self._highs = binding()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        for _ in range(len(lengths)):
            self._highs.addRow(0.0, highspy.kHighsInf, 0, np.zeros(0, np.int32), np.zeros(0))
        self._infinity = highspy.kHighsInf

    @property
    def columns(self) -> Sequence[IntArray]:
        """For each pattern found so far, (lengths,) copies of each length."""
        return self._columns

    def add(self, copies: IntArray) -> bool:
        """Let a pattern join, unless it is known."""
        key = copies.tobytes()
        if key in self._known:
            return False
        self._known.add(key)
        self._columns.append(copies)
        held = np.flatnonzero(copies).astype(np.int32)
        self._highs.addCol(1.0, 0.0, self._infinity, len(held), held, copies[held].astype(np.float64))
        return True

    def add_patterns(self, patterns: Patterns) -> None:
        """Let all these patterns join; they hold none but the lengths of the programme."""
        places = np.searchsorted(self._lengths, patterns.lengths)
        for start, end in zip(patterns.offsets[:-1].tolist(), patterns.offsets[1:].tolist(), strict=True):
            copies = np.zeros(len(self._lengths), np.int64)
            copies[places[start:end]] = patterns.copies[start:end]
            self.add(copies)

    def demand(self, demand: IntArray) -> None:
        """How many sequences of each length there are to cover; the programme needs patterns that can."""
        for row in np.flatnonzero(demand != self._demand).tolist():
            self._highs.changeRowBounds(row, float(demand[row]), self._infinity)
        self._demand = demand.copy()

    def solve(self, deadline: float = math.inf, most_rounds: int | None = None, enough: float = 0.0) -> LinearSolution:
        """Let patterns join until none pays, the bound rounds up to the objective, or the objective is good enough.

        Args:
            deadline: a time of time.perf_counter() after which no new round begins.
            most_rounds: the same, in rounds.
            enough: an objective, in packs, at which to stop.

        Raises:
            RuntimeError: the solver of the linear programme failed.
        """
        best, best_prices = 0.0, np.zeros(len(self._demand))
        rounds = 0
        while True:
            objective, prices, repeats = self._optimize()
            smoothed = [_mix(best_prices, prices), prices] if rounds else [prices]
            joined = 0
            for candidate in smoothed:
                worth = max(1.0, float(self._knapsack.solve(candidate)))
                bound = float(self._demand @ candidate) / worth
                if bound > best:
                    best, best_prices = bound, candidate / worth
                if math.ceil(best - _WHOLE) >= math.ceil(objective - _WHOLE) or objective <= enough:
                    break
                joined = self._join(prices)
                if joined:
                    break
            rounds += 1
            stop = not joined
            if stop or rounds == most_rounds or time.perf_counter() > deadline:
                return LinearSolution(objective, best, best_prices, repeats, solved=stop)

    def _join(self, prices: npt.NDArray[np.float64]) -> int:
        """The best patterns that the knapsack found join, if they pay at the programme's own prices."""
        promising = np.argsort(-self._knapsack.best_with(), kind="stable")[:_COLUMNS_A_ROUND]
        patterns = (self._knapsack.pattern(index) for index in promising.tolist())
        return sum(self.add(copies) for copies in patterns if copies @ prices > 1 + _TOLERANCE)

    def _optimize(self) -> tuple[float, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        self._highs.run()
        status = self._highs.modelStatusToString(self._highs.getModelStatus())
        if status != "Optimal":
            raise RuntimeError(f"the linear programme ended as {status}")
        solution = self._highs.getSolution()
        prices = np.maximum(np.array(solution.row_dual), 0.0)
        return float(self._highs.getInfo().objective_function_value), prices, np.array(solution.col_value)


def _mix(best: npt.NDArray[np.float64], latest: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    mixed: npt.NDArray[np.float64] = _SMOOTHING * best + (1 - _SMOOTHING) * latest
    return mixed
