"""Planning: from a histogram to a plan, by an algorithm of the registry.

One algorithm a file, one function shape: `PackingProblem -> Solution`. What is registered in `ALGORITHMS` is offered by
`plan`, by the command line and by `analyze`, and is put through every property test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from brimful.errors import SettingError, shown
from brimful.lengths import LengthHistogram, require_fit
from brimful.lower_bounds import LowerBound, lower_bound, martello_toth_bound
from brimful.planning.cutting_stock import optimal
from brimful.planning.longest_pack_first import lpfhp
from brimful.planning.next_fit import next_fit
from brimful.planning.nonnegative_least_squares import ennlshp, nnlshp
from brimful.planning.problem import PackingProblem, Solution
from brimful.planning.shortest_pack_first import spfhp
from brimful.planning.unpacked import unpacked
from brimful.plans import PackPlan
from brimful.validation import Lengths, aligned, is_number, validate_align, validate_capacity, validate_lengths

__all__ = ["ALGORITHMS", "DATA_ORDER", "LEAST_SQUARES", "PackingProblem", "Solution", "plan", "require_algorithm"]

ALGORITHMS: Mapping[str, Callable[[PackingProblem], Solution]] = MappingProxyType(
    {
        "lpfhp": lpfhp,
        "optimal": optimal,
        "spfhp": spfhp,
        "nnlshp": nnlshp,
        "ennlshp": ennlshp,
        "next_fit": next_fit,
        "none": unpacked,
    }
)
"""Every algorithm by name."""

DATA_ORDER = frozenset({"next_fit"})
"""The algorithms that need the lengths in data order; the others do with the histogram."""

LEAST_SQUARES = frozenset({"nnlshp", "ennlshp"})
"""The algorithms whose cost grows with the square of max_length and more; `analyze` leaves them out."""

_AUTO_WORK = 2**19  # max_length × lengths for which auto tries optimal: about a second


def require_algorithm(name: str) -> None:
    """Nothing, if there is such an algorithm; otherwise a SettingError that lists those there are."""
    if not isinstance(name, str) or name not in {"auto", *ALGORITHMS}:
        raise SettingError(f"there is no algorithm {shown(name)}; there are auto, {', '.join(ALGORITHMS)}")


def plan(
    data: LengthHistogram | Lengths,
    max_length: int,
    max_sequences: int | None = None,
    algorithm: str = "auto",
    *,
    align: int = 1,
    time_limit: float | None = None,
    target_gap: float = 0.001,
) -> PackPlan:
    """Decide which lengths share a pack.

    Args:
        data: a histogram, or (sequences,) lengths in tokens, each ≥ 1 and ≤ max_length.
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack (the paper's packing depth), ≥ 1; None for no limit.
        algorithm: a name from `ALGORITHMS`, or "auto": lpfhp, and optimal where lpfhp is more than target_gap above the
            proven bound and the problem is small enough to take about a second, or a time_limit is given.

            - lpfhp: best fit decreasing on the histogram; near the bound on most data, in milliseconds;
            - optimal: column generation; most often within a few packs of the bound, with a proof of its own;
            - spfhp: the paper's algorithm, worst fit decreasing as published;
            - nnlshp, ennlshp: the paper's non-negative least squares, of at most 3 sequences in a pack unless
              max_sequences says otherwise; and the same with padding in the model;
            - next_fit: greedy in data order; needs lengths, not a histogram;
            - none: every sequence alone.
        align: each sequence is padded to a multiple of this many token slots inside the pack (for context parallelism,
            or fp8), ≥ 1; max_length is a multiple of it.
        time_limit: seconds, above 0, after which optimal, nnlshp and ennlshp return the best plan so far, optimal with
            the bound proven so far (a plan that was cut short may differ from run to run); None for no limit. Other
            algorithms take milliseconds, and ignore it.
        target_gap: (packs − bound) / bound, ≥ 0, at which auto is content, and optimal leaves finer grids alone.

    Returns:
        A plan that covers the data exactly, with its proven lower bound. The same input gives the same plan.

    Raises:
        CapacityError: a sequence is longer than max_length.
        LengthError: lengths or capacities that are not whole numbers ≥ 1, or a max_length that is no multiple of align.
        SettingError: an algorithm that there is not, next_fit with a histogram, time_limit or target_gap out of range.

    Example:
        >>> plan([9, 2, 3, 7], max_length=10)
        PackPlan(lpfhp, 4 sequences in 3 packs of 10, efficiency 70.00%, at most 0.00% above the optimum)

    Cost: counting the lengths, then a few milliseconds at max_length 512, however many sequences there are (next_fit
    alone takes a step for each pack).
    Source: arXiv 2107.02027, section 3.1.
    """
    max_length = validate_capacity(max_length, "max_length")
    if max_sequences is not None:
        max_sequences = validate_capacity(max_sequences, "max_sequences")
    align = validate_align(align, max_length)
    require_algorithm(algorithm)
    started = time.perf_counter()
    if isinstance(data, LengthHistogram):
        histogram, lengths = data, None
    else:
        lengths = validate_lengths(data)
        histogram = LengthHistogram.from_lengths(lengths)
    require_fit(histogram, max_length)
    problem = PackingProblem(
        histogram.in_units(align),
        max_length // align,
        max_sequences,
        None if lengths is None else aligned(lengths, align) // align,
        validate_time_limit(time_limit),
        _gap(target_gap),
    )
    if algorithm == "auto":
        name, solution, reason = _auto(problem)
    else:
        name, solution, reason = algorithm, ALGORITHMS[algorithm](problem), "asked for"
    seconds = time.perf_counter() - started
    patterns = solution.patterns.scaled(align)
    return PackPlan(histogram, max_length, max_sequences, name, patterns, solution.prices, seconds, reason, align)


def _auto(problem: PackingProblem) -> tuple[str, Solution, str]:
    """Best fit, and more only where more can be gained for a small and certain amount of work."""
    quick = lpfhp(problem)
    gap = _gap_above(martello_toth_bound(problem.histogram, problem.max_length), quick)  # the quickest good bound
    if gap > problem.target_gap:
        gap = _gap_above(lower_bound(problem.histogram, problem.max_length, problem.max_sequences), quick)
    target = f"the target of {problem.target_gap:.2%}"
    if gap <= problem.target_gap:
        return "lpfhp", quick, f"auto: lpfhp is at most {gap:.2%} above the optimum, within {target}"
    if problem.max_length * len(problem.histogram.lengths) > _AUTO_WORK and problem.time_limit is None:
        return "lpfhp", quick, f"auto: lpfhp, {gap:.2%} above the bound; optimal would take long: ask for it by name"
    solution = optimal(problem)
    why = f"auto: lpfhp was {gap:.2%} above the bound, more than {target}"
    if solution.patterns.packs < quick.patterns.packs or solution.prices is not None:
        return "optimal", solution, why
    return "lpfhp", quick, f"{why}, and optimal found nothing better"


def _gap_above(bound: LowerBound, solution: Solution) -> float:
    return (solution.patterns.packs - bound.packs) / max(bound.packs, 1)


def validate_time_limit(seconds: float | None) -> float | None:
    """A number of seconds above 0, or None; otherwise a SettingError."""
    if seconds is None:
        return None
    if not is_number(seconds) or seconds <= 0:
        raise SettingError(f"time_limit is a number of seconds above 0, or None for no limit, not {shown(seconds)}")
    return float(seconds)


def _gap(gap: float) -> float:
    if not is_number(gap) or gap < 0:
        raise SettingError(f"target_gap is a fraction from 0 up, such as 0.001, not {shown(gap)}")
    return float(gap)
