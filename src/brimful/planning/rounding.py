"""From fractions of patterns to whole packs: diving through the linear programme, with best fit for the rest."""

from __future__ import annotations

import math
import time

import numpy as np

from brimful.lengths import LengthHistogram
from brimful.patterns import Patterns
from brimful.planning.column_generation import PatternProgramme
from brimful.planning.longest_pack_first import lpfhp
from brimful.planning.problem import PackingProblem
from brimful.validation import IntArray

_ROUNDED_UP_SHARE = 0.5
_ROUNDS_A_DIVE = 1


def round_to_packs(
    programme: PatternProgramme, problem: PackingProblem, target: int, deadline: float = math.inf
) -> Patterns:
    """Whole packs that cover the problem exactly, as near to the linear programme as can be found.

        repeats 2.7, 0.6, 0.4   ->   2 packs of the first for good; what they leave is a smaller problem of its own,
        solved again; when nothing is whole any more, the largest fractions are rounded up one by one

    At every step best fit packs what is left as well; the best of all these plans is returned.

    Args:
        programme: solved for the problem's demand; it is spent on smaller demands.
        problem: what is to be packed.
        target: packs at which to stop, since no plan can do better.
        deadline: a time of time.perf_counter() after which the best so far is returned.

    Returns:
        Patterns that cover the problem's histogram exactly.

    Cost: some dozens of small linear programmes, each started from the one before.
    Source: diving and sequential residue: Wäscher and Gau, Heuristics for the integer one-dimensional cutting stock
    problem (1996).
    """
    lengths = problem.histogram.lengths
    left = problem.histogram.counts.copy()
    solution = programme.solve(deadline, most_rounds=1)
    chosen: list[tuple[IntArray, int]] = []  # (copies, count), nothing beyond what was left
    n_chosen = 0
    best: tuple[int, int, Patterns] | None = None  # packs, how many of chosen come first, best fit for the rest
    while True:
        rest = _best_fit(lengths, left, problem)
        if best is None or n_chosen + rest.packs < best[0]:
            best = n_chosen + rest.packs, len(chosen), rest
        if best[0] <= target or not left.any() or time.perf_counter() > deadline:
            break
        columns = programme.columns
        whole = np.floor(solution.repeats + 1e-6).astype(np.int64)
        before = n_chosen
        for index in np.flatnonzero(whole).tolist():
            n_chosen += _take(columns[index], int(whole[index]), left, chosen)
        if n_chosen == before:
            used = np.flatnonzero(solution.repeats > 1e-6)
            largest = used[np.argsort(-solution.repeats[used], kind="stable")]
            for index in largest[: max(1, int(len(used) * _ROUNDED_UP_SHARE))].tolist():
                if n_chosen == before or (columns[index] <= left).all():
                    n_chosen += _take(np.minimum(columns[index], left), 1, left, chosen)
        programme.demand(left)
        solution = programme.solve(deadline, most_rounds=_ROUNDS_A_DIVE)
    _, n_first, rest = best
    return _as_patterns(lengths, chosen[:n_first]) + rest


def _take(copies: IntArray, count: int, left: IntArray, chosen: list[tuple[IntArray, int]]) -> int:
    """Choose `count` of these packs, the last ones with what is still left of their sequences; how many that were.

    The programme may cover a length more often than demanded, so that the patterns it repeats hold more than is left.
    """
    copies = np.minimum(copies, left)
    n_chosen = 0
    while n_chosen < count and copies.any():
        held = copies > 0
        full = min(count - n_chosen, int((left[held] // copies[held]).min()))
        if full:
            chosen.append((copies, full))
            left -= full * copies
            n_chosen += full
        copies = np.minimum(copies, left)
    return n_chosen


def _best_fit(lengths: IntArray, left: IntArray, problem: PackingProblem) -> Patterns:
    some = left > 0
    histogram = LengthHistogram(lengths[some], left[some])
    return lpfhp(PackingProblem(histogram, problem.max_length, problem.max_sequences, None)).patterns


def _as_patterns(lengths: IntArray, chosen: list[tuple[IntArray, int]]) -> Patterns:
    if not chosen:
        return Patterns.empty()
    held = [np.flatnonzero(copies)[::-1] for copies, _ in chosen]  # longest first
    return Patterns(
        lengths[np.concatenate(held)],
        np.concatenate([copies[places] for (copies, _), places in zip(chosen, held, strict=True)]),
        np.cumsum([0, *map(len, held)]),
        np.array([count for _, count in chosen], np.int64),
    )
