"""Plans optimal to within a few packs, with the dual prices that prove it."""

from __future__ import annotations

import logging
import math
import time

import numpy as np
import numpy.typing as npt

from brimful.lower_bounds import PRICE_UNIT, DualPrices, dual_price_bound, lower_bound, provable
from brimful.planning.column_generation import LinearSolution, PatternProgramme
from brimful.planning.grids import GridProblem
from brimful.planning.longest_pack_first import lpfhp
from brimful.planning.problem import PackingProblem, Solution
from brimful.planning.rounding import round_to_packs
from brimful.validation import IntArray

_WORK_AT_ONCE = 2**20  # slots × lengths of a programme that takes about a second

_SHARE_OF_TARGET = 0.8  # what the linear programme of a grid may use up of the target gap; the rest is for rounding

_log = logging.getLogger(__name__)


def optimal(problem: PackingProblem) -> Solution:
    """Column generation over all patterns, rounded to whole packs; never worse than `lpfhp`.

        linear programme over the patterns that pay     ->  dual prices: a proof of how few packs can do
        its fractions rounded, the rest by best fit     ->  a plan, most often within a few packs of the proof

    Where max_length is large, lengths are first rounded up to a coarse grid, so that the programme is small, then to
    finer ones, each started with the patterns of the one before, until the plan is within target_gap of the bound.

    The same input gives the same plan unless problem.time_limit cuts it short; then the best plan so far is returned
    with the bound proven so far. If the solver fails, that is the plan of `lpfhp`, and the log says so.

    Cost: about a second at max_length 512 with any number of sequences; some seconds at 4096; memory for the patterns.
    Source: Gilmore and Gomory (1961, 1963); the exact proof from rounded prices follows Neumaier and Shcherbina, Safe
    bounds in linear and mixed-integer linear programming (2004).
    """
    deadline = math.inf if problem.time_limit is None else time.perf_counter() + problem.time_limit
    best = lpfhp(problem)
    proven = lower_bound(problem.histogram, problem.max_length, problem.max_sequences).packs
    coarser: tuple[GridProblem, list[IntArray]] | None = None
    for grid in _grids(problem):
        gap = (best.patterns.packs - proven) / max(proven, 1)
        if best.patterns.packs <= proven or (coarser and gap <= problem.target_gap) or time.perf_counter() > deadline:
            break
        on_grid = GridProblem.of(problem, grid)
        try:
            programme = _programme(on_grid, coarser)
            enough = 0.0 if grid == 1 else proven * (1 + _SHARE_OF_TARGET * problem.target_gap)
            solution = programme.solve(deadline, enough=enough)
            prices = _exact(on_grid, solution)
            bound = dual_price_bound(problem.histogram, problem.max_length, problem.max_sequences, prices).packs
            if bound > proven:
                best, proven = Solution(best.patterns, prices), bound
            used = [programme.columns[index] for index in np.flatnonzero(solution.repeats > 0).tolist()]
            loss = 0.0 if grid == 1 else (1 - _SHARE_OF_TARGET) * problem.target_gap * solution.objective
            target = proven if grid == 1 else math.floor(solution.objective + loss)
            patterns = on_grid.in_tokens(round_to_packs(programme, on_grid.problem, target, deadline))
        except RuntimeError as fault:
            _log.warning("column generation stopped: %s; the best plan so far is used", fault)
            break
        if patterns.packs < best.patterns.packs:
            best = Solution(patterns, best.prices)
        coarser = on_grid, used
    return best


def _grids(problem: PackingProblem) -> list[int]:
    """Units of tokens, from the coarsest with a small programme to single tokens, or the finest that can be proven."""
    grid, slots = 1, problem.max_length
    while slots * min(len(problem.histogram.lengths), slots) > _WORK_AT_ONCE:
        grid *= 2
        slots = problem.max_length // grid
    finer = (grid >> step for step in range(grid.bit_length()))
    return [unit for unit in finer if provable(problem.histogram, problem.max_length, problem.max_sequences, unit)]


def _programme(on_grid: GridProblem, coarser: tuple[GridProblem, list[IntArray]] | None) -> PatternProgramme:
    """The linear programme of a grid, with the patterns of best fit and those that the coarser grid used."""
    units = on_grid.problem.histogram.lengths
    programme = PatternProgramme(units, on_grid.problem.max_length, on_grid.problem.max_sequences)
    programme.add_patterns(lpfhp(on_grid.problem).patterns)
    if coarser is not None:
        before, columns = coarser
        ratio = before.grid // on_grid.grid
        for shorter in range(ratio):
            # A class of the coarser grid becomes one of its finer classes: all the longest, all the next …
            fine = before.problem.histogram.lengths * ratio - shorter
            place = np.searchsorted(units, fine)
            there = (place < len(units)) & (units[np.minimum(place, len(units) - 1)] == fine)
            for copies in columns:
                finer = np.zeros(len(units), np.int64)
                np.add.at(finer, place[there], copies[there])
                if finer.any() and finer @ units <= on_grid.problem.max_length:
                    programme.add(finer)
    programme.demand(on_grid.problem.histogram.counts)
    return programme


def _exact(on_grid: GridProblem, solution: LinearSolution) -> DualPrices:
    """The prices as whole numbers, for lengths rounded down to the grid: what is proven with them holds in tokens."""
    classes = np.unique(on_grid.original.histogram.lengths // on_grid.grid)
    units = on_grid.problem.histogram.lengths
    prices: npt.NDArray[np.float64] = np.interp(classes, units, solution.prices)
    prices[classes == 0] = 0.0
    return DualPrices(on_grid.grid, np.floor(np.clip(prices, 0.0, 1.0) * PRICE_UNIT).astype(np.int64))
