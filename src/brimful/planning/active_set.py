"""Non-negative least squares over all full patterns, none of which is listed: an active set method with pricing."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from brimful.planning.full_patterns import Floats, FullPatterns
from brimful.validation import IntArray

_COLUMNS_A_ROUND = 20
_WORTH_TRYING = 0.02  # a pattern joins if its gradient is at least this share of the best one
_INDEPENDENT = 1e-10  # squared distance from the span of the others, relative to its own square
_ROUNDING = 1e-14  # share of the sum of squares at the start that floating point cannot resolve
_ORTHOGONAL = 1e-11  # what may be left of a product that ought to be 0, relative to a square
_SETTLED = 0.01  # of the steepest gradient: what counts as 0 for the patterns in use
_TRUSTED = 1e-3  # how wrong a step by an inverse that was updated may be
_MOST_STEPS = 10_000
_MOST_STALLS = 8  # steps in a row that leave more than half of the gradient
_LEAST_FALL = 1e-15  # of the objective in a round, relative: less is noise


@dataclass(frozen=True, slots=True)
class FullPatternFit:
    """Where the least squares stand.

    Args:
        copies: (patterns, max_length) how many sequences of each length from 1 up a pattern holds; independent rows.
        repeats: (patterns,) how often each is used, > 0.
        objective: half the weighted sum of squares.
        gap: the objective is proven to be at most so much above the least possible.
        rounds: how many times patterns were priced.
    """

    copies: IntArray
    repeats: Floats
    objective: float
    gap: float
    rounds: int


def fit_full_patterns(
    demand: Floats,
    leftover_weights: Floats,
    padding_weights: Floats,
    max_sequences: int,
    within: float,
    deadline: float = math.inf,
) -> FullPatternFit:
    """min ½ Σ (weight × residual)² over repeats ≥ 0 of all full patterns; residual = demand − repeats · copies.

    A length that the patterns hold too seldom is weighted with its leftover weight, one that they hold too often with
    its padding weight. Where both are equal this is non-negative least squares.

    Every round solves for the patterns in use, drops those that would become negative (Lawson and Hanson), and lets
    patterns of positive gradient join, several at once. The gradient of a pattern is the sum of weight² × residual over
    its sequences, so that the steepest ones are found by a knapsack.

    The proof of the gap: subtract from weight² × residual so much per token that no full pattern is worth more than 0;
    what results is feasible for the dual problem. The fit then differs from the exact one by at most √(2 gap) in the
    norm of the lighter weights: ‖weight × (fit − exact fit)‖ ≤ within, unless floating point cannot resolve as much.

    Args:
        demand: (max_length,) sequences of each length from 1 up, ≥ 0.
        leftover_weights, padding_weights: (max_length,) > 0.
        max_sequences: most sequences in a pattern.
        within: how near to the exact fit is near enough, > 0.
        deadline: a time of time.perf_counter() after which the fit so far is returned.

    Cost: up to max_length patterns in use, whose inverse normal matrix is kept and updated: max_length² steps for each
    pattern that joins or leaves, some thousands of them at max_length 512; and a knapsack each round.
    Source: Lawson and Hanson, Solving Least Squares Problems (1974), chapter 23; Bro and de Jong (1997).
    """
    used = _InUse(demand, leftover_weights**2, padding_weights**2)
    full = FullPatterns(len(demand), max_sequences)
    lengths = np.arange(1.0, len(demand) + 1)
    squares = used.objective()
    tolerance = within**2 / 2 + _ROUNDING * squares
    rounds, gaining = 0, True  # not gaining: what is left to gain is below the noise of floating point
    while True:
        values = used.values()
        worth = full.solve(values)
        steepest = float(worth.max())
        feasible = values - max(steepest, 0.0) / len(demand) * lengths
        gap = used.objective() - used.dual(feasible)
        rounds += 1
        if gap <= tolerance or not gaining or time.perf_counter() > deadline or rounds > 20 * len(demand) + 100:
            break
        order = np.argsort(-worth, kind="stable")[: 3 * _COLUMNS_A_ROUND]  # most are found from each of their lengths
        found = full.trace(order[worth[order] > _WORTH_TRYING * steepest])
        copies = np.array(list({row.tobytes(): row for row in found}.values())[:_COLUMNS_A_ROUND], np.float64)
        used.join(copies)
        gaining = used.settle(_SETTLED * steepest)
    some = used.repeats > 0
    return FullPatternFit(
        used.copies[some].astype(np.int64), used.repeats[some], used.objective(), max(gap, 0.0), rounds
    )


class _InUse:
    """The patterns in use, their repeats, and the inverse of their normal matrix."""

    def __init__(self, demand: Floats, leftover_squares: Floats, padding_squares: Floats) -> None:
        self._demand = demand
        self._squares = leftover_squares, padding_squares
        self._row_squares = leftover_squares.copy()  # of which the normal matrix is made
        self._blurred = 1e-9 * float(demand.max(initial=0))
        self._size = 0
        self._copies = np.zeros((64, len(demand)))
        self._inverse = np.zeros((64, 64))
        self._repeats = np.zeros(64)
        self._residual = demand.copy()
        self._exact = False  # whether the inverse is fresh

    @property
    def copies(self) -> Floats:
        """(patterns, max_length)"""
        return self._copies[: self._size]

    @property
    def repeats(self) -> Floats:
        """(patterns,)"""
        return self._repeats[: self._size]

    @property
    def _matrix(self) -> Floats:
        return self._inverse[: self._size, : self._size]

    def values(self) -> Floats:
        """(max_length,) weight² × residual: the gain from one more sequence of each length."""
        return self._weighted(self._residual)

    def objective(self) -> float:
        """Half the weighted sum of squares."""
        return float(self.values() @ self._residual) / 2

    def dual(self, values: Floats) -> float:
        """The value of the dual problem for values that make no full pattern worth more than 0."""
        leftover, padding = self._squares
        return float(values @ self._demand - (values**2 / np.where(values > 0, leftover, padding)).sum() / 2)

    def join(self, copies: Floats) -> None:
        """Let those of these patterns join that depend neither on the ones in use nor on each other."""
        own = (copies**2 * self._row_squares).sum(axis=1)
        image, apart = np.zeros((self._size, len(copies))), copies
        for turn in range(6):
            overlap = self.copies @ (apart * self._row_squares).T
            if np.abs(overlap).max(initial=0) <= _ORTHOGONAL * own.max():
                break
            if turn == 3 and not self._exact:
                self._invert()
                image, apart = np.zeros_like(image), copies
                continue
            image += self._matrix @ overlap
            apart = copies - image.T @ self.copies
        schur = (apart * self._row_squares) @ apart.T
        chosen = _independent(schur, own)
        count = len(chosen)
        if not count:
            return
        old, new = self._size, self._size + count
        self._reserve(new)
        image, corner = image[:, chosen], np.linalg.inv(schur[np.ix_(chosen, chosen)])
        edge = image @ corner
        self._inverse[:old, :old] += edge @ image.T
        self._inverse[:old, old:new] = -edge
        self._inverse[old:new, :old] = -edge.T
        self._inverse[old:new, old:new] = corner
        self._copies[old:new] = copies[chosen]
        self._repeats[old:new] = 0.0
        self._size = new
        self._exact = False

    def settle(self, small: float) -> bool:
        """Solve for the patterns in use, and drop those that stop at 0; whether the objective fell.

        Args:
            small: a gradient that is as good as 0.
        """
        before = self.objective()
        last = math.inf  # gradient of the step before, if that was not cut short
        stalls = 0
        for _ in range(_MOST_STEPS):
            self._reweigh()
            gradient, step, change = self._newton()
            stuck = (self.repeats <= 0) & (step <= 0)
            if stuck.any():
                self._drop(np.flatnonzero(stuck))
                continue
            largest = float(np.abs(gradient).max(initial=0))
            if largest <= small or stalls == _MOST_STALLS:
                break
            if largest > last / 2:
                stalls += 1
                if not self._exact:
                    self._invert()
                    last = math.inf
                    continue
            last = largest
            falls = step < 0
            limits = np.full(len(step), np.inf)
            limits[falls] = self.repeats[falls] / -step[falls]
            limit = float(limits.min(initial=np.inf))
            share = self._best_share(change, min(limit, 2.0))
            self._repeats[: self._size] += share * step
            if share == limit:
                self._repeats[: self._size][limits <= limit * (1 + 1e-12)] = 0.0
            self._residual = self._demand - _times(self.copies.T, self.repeats)
            if share == limit:
                self._drop(np.flatnonzero(self.repeats <= 0))
                last, stalls = math.inf, 0
        return before - self.objective() > _LEAST_FALL * before

    def _newton(self) -> tuple[Floats, Floats, Floats]:
        """The gradient, the step that would make it 0, and what that step adds to the fit."""
        gradient = _times(self.copies, self.values())
        while True:
            step = _times(self._matrix, gradient)
            change = _times(self.copies.T, step)
            error = gradient - _times(self.copies, self._row_squares * change)
            if self._exact or np.abs(error).max(initial=0) <= _TRUSTED * np.abs(gradient).max(initial=0):
                return gradient, step, change
            self._invert()

    def _best_share(self, change: Floats, limit: float) -> float:
        """How much of a step from 0 to limit lowers the objective most; change is what a whole step adds to the fit."""

        def slope(share: float) -> float:
            return -float(self._weighted(self._residual - share * change) @ change)

        if slope(limit) <= 0:
            return limit
        moving = change != 0
        turns = self._residual[moving] / change[moving]  # where a residual changes its sign, and perhaps its weight
        turns = np.concatenate([[0.0], np.unique(turns[(turns > 0) & (turns < limit)]), [limit]])
        low, high = 0, len(turns) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if slope(float(turns[middle])) <= 0 else (low, middle)
        start, end = float(turns[low]), float(turns[high])
        at_start, at_end = slope(start), slope(end)
        return start + (end - start) * (-at_start / (at_end - at_start)) if at_end > at_start else start

    def _weighted(self, residual: Floats) -> Floats:
        leftover, padding = self._squares
        weighted: Floats = np.where(residual > 0, leftover, padding) * residual
        return weighted

    def _reweigh(self) -> None:
        """Bring the inverse up to date with the signs of the residual, except where it is 0 but for rounding."""
        leftover, padding = self._squares
        squares = np.where(self._residual > 0, leftover, padding)
        squares = np.where(np.abs(self._residual) <= self._blurred, self._row_squares, squares)
        rows = np.flatnonzero(squares != self._row_squares)
        if not len(rows):
            return
        change = squares[rows] - self._row_squares[rows]
        self._row_squares = squares
        if 4 * len(rows) > self._size:
            self._invert()
            return
        held = self.copies[:, rows]
        image = self._matrix @ held
        core = np.diag(1 / change) + held.T @ image
        self._inverse[: self._size, : self._size] -= image @ np.linalg.solve(core, image.T)
        self._exact = False

    def _invert(self) -> None:
        """The inverse anew, free of what rounding has added up."""
        triangle = np.linalg.qr((self.copies * np.sqrt(self._row_squares)).T, mode="r")
        root = np.linalg.inv(triangle)
        self._inverse[: self._size, : self._size] = root @ root.T
        self._exact = True

    def _drop(self, places: IntArray) -> None:
        """Take these patterns out; the last ones in use move to their places."""
        new = self._size - len(places)
        gone = np.zeros(self._size, bool)
        gone[places] = True
        here, there = np.flatnonzero(gone[:new]), new + np.flatnonzero(~gone[new:])
        for array in (self._copies, self._repeats, self._inverse, self._inverse.T):
            array[here], array[there] = array[there], array[here]  # fancy indexing copies first
        kept, edge = self._inverse[:new, :new], self._inverse[:new, new : self._size]
        corner = self._inverse[new : self._size, new : self._size]
        self._size, self._exact = new, False
        try:
            if len(places) == 1:
                kept -= np.outer(edge, edge / corner)
            else:
                kept -= edge @ np.linalg.solve(corner, edge.T)
        except np.linalg.LinAlgError:  # too many roundings since the inverse was fresh
            self._invert()

    def _reserve(self, size: int) -> None:
        room = len(self._repeats)
        if size > room:
            more = max(size, 2 * room) - room
            self._copies = np.pad(self._copies, ((0, more), (0, 0)))
            self._inverse = np.pad(self._inverse, ((0, more), (0, more)))
            self._repeats = np.pad(self._repeats, (0, more))


def _times(matrix: Floats, vector: Floats) -> Floats:
    """matrix @ vector, but never in several threads: for products this small they cost more than they save."""
    product: Floats = np.einsum("ij,j->i", matrix, vector)
    return product


def _independent(schur: Floats, own: Floats) -> IntArray:
    """Which columns, first come first served, are not spanned by those before them: by elimination of a copy."""
    left = schur.copy()
    chosen = []
    for place in range(len(own)):
        pivot = left[place, place]
        if pivot > _INDEPENDENT * own[place]:
            chosen.append(place)
            left -= np.outer(left[:, place], left[place] / pivot)
    return np.array(chosen, np.int64)
