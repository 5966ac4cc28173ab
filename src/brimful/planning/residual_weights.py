"""A search for the residual weights with which non-negative least squares packs a histogram best."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from brimful.errors import SettingError
from brimful.lengths import LengthHistogram, require_fit
from brimful.planning.nonnegative_least_squares import PUBLISHED_DEPTH, nnlshp, residual_weights
from brimful.planning.problem import PackingProblem
from brimful.plans import PackPlan
from brimful.validation import validate_capacity

OFFSETS = (0, 8, 16, 32, 48, 64, 96, 128)
WEIGHTS = (0.01, 0.03, 0.09, 0.3)


@dataclass(frozen=True, slots=True)
class Trial:
    """What a pair of residual weights led to."""

    offset: int
    weight: float
    packs: int
    efficiency: float
    seconds: float


@dataclass(frozen=True, slots=True)
class TunedWeights:
    """The best pair of a search, its plan, and every trial in the order in which it was made."""

    offset: int
    weight: float
    plan: PackPlan
    trials: tuple[Trial, ...]


def tune_residual_weights(
    histogram: LengthHistogram,
    max_length: int,
    max_sequences: int | None = None,
    offsets: Sequence[int] = OFFSETS,
    weights: Sequence[float] = WEIGHTS,
) -> TunedWeights:
    """Plan with `nnlshp` for every pair of an offset and a weight, and keep the one with the fewest packs.

        weight of lengths 1 to offset        0.09 0.09 … 0.09 | 1 1 1 … 1        smaller: rather short than left over

    Where the data have no sequences of up to 8 tokens, as questions with their context do, padding has to come in
    longer pieces than the published weights suppose. A progress bar is on standard error if that is a terminal.

    Args:
        histogram: how many sequences there are of each length.
        max_length: token slots in a pack.
        max_sequences: most sequences in a pack; None for 3, as in `nnlshp`.
        offsets: each ≥ 0; those above max_length count as max_length.
        weights: each from 0.001 to 1. With offset 0 there is nothing to weigh, and only the first is tried.

    Returns:
        The best pair, of equals the one tried first, with its plan and the table of all.

    Raises:
        CapacityError: a sequence is longer than max_length.
        LengthError: capacities that are not whole numbers ≥ 1.
        SettingError: nothing to try, or an offset or weight out of range.

    Example:
        >>> histogram = LengthHistogram.from_lengths([7, 7, 3, 2])
        >>> best = tune_residual_weights(histogram, max_length=10, offsets=[0, 2], weights=[0.09])
        >>> best.offset, best.plan.packs, len(best.trials)
        (0, 2, 2)

    Cost: that of `nnlshp` for each pair; half a minute for the 29 pairs at max_length 384.
    Source: arXiv 2107.02027, section F.5.
    """
    max_length = validate_capacity(max_length, "max_length")
    depth = PUBLISHED_DEPTH if max_sequences is None else validate_capacity(max_sequences, "max_sequences")
    require_fit(histogram, max_length)
    pairs = list(itertools.product(offsets, weights))
    pairs = [(offset, weight) for offset, weight in pairs if offset or weight == weights[0]]
    if not pairs:
        raise SettingError("tuning needs at least one offset and one weight to try")
    for offset, weight in pairs:
        residual_weights(max_length, offset, weight)
    problem = PackingProblem(histogram, max_length, depth, None)
    tried = []
    for offset, weight in _shown(pairs):
        started = time.perf_counter()
        patterns = nnlshp(problem, offset, weight).patterns
        seconds = time.perf_counter() - started
        plan = PackPlan(histogram, max_length, depth, "nnlshp", patterns, seconds=seconds)
        tried.append((Trial(offset, weight, plan.packs, plan.efficiency, seconds), plan))
    best, plan = min(tried, key=lambda trial_and_plan: trial_and_plan[0].packs)
    return TunedWeights(best.offset, best.weight, plan, tuple(trial for trial, _ in tried))


def _shown(pairs: list[tuple[int, float]]) -> Iterable[tuple[int, float]]:
    """The pairs, with a progress bar if somebody watches standard error."""
    return _with_bar(pairs) if sys.stderr.isatty() else pairs


def _with_bar(pairs: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    from rich.console import Console
    from rich.progress import track

    yield from track(pairs, "residual weights", console=Console(stderr=True))
