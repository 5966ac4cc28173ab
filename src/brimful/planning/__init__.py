"""Planning: from a histogram to a plan, by an algorithm of the registry.

One algorithm a file, one function shape: `PackingProblem -> Patterns`. What is registered in `ALGORITHMS` is offered by
`plan`, by the command line and by `analyze`, and is put through every property test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from brimful.errors import PlanError, shown
from brimful.lengths import LengthHistogram, Lengths, require_fit, validate_capacity, validate_lengths
from brimful.patterns import Patterns
from brimful.planning.longest_pack_first import lpfhp
from brimful.planning.next_fit import next_fit
from brimful.planning.problem import PackingProblem
from brimful.planning.shortest_pack_first import spfhp
from brimful.planning.unpacked import unpacked
from brimful.plans import PackPlan

__all__ = ["ALGORITHMS", "AUTO", "DATA_ORDER", "PackingProblem", "plan", "resolve_algorithm"]

ALGORITHMS: Mapping[str, Callable[[PackingProblem], Patterns]] = MappingProxyType(
    {"lpfhp": lpfhp, "spfhp": spfhp, "next_fit": next_fit, "none": unpacked}
)
"""Every algorithm by name."""

DATA_ORDER = frozenset({"next_fit"})
"""The algorithms that need the lengths in data order; the others do with the histogram."""

AUTO = "lpfhp"
"""What `algorithm="auto"` stands for."""


def resolve_algorithm(name: str) -> str:
    """The name of the algorithm that `name` stands for, or a PlanError that lists those there are."""
    if not isinstance(name, str) or name not in {"auto", *ALGORITHMS}:
        raise PlanError(f"there is no algorithm {shown(name)}; there are auto, {', '.join(ALGORITHMS)}")
    return AUTO if name == "auto" else name


def plan(
    data: LengthHistogram | Lengths,
    max_length: int,
    max_sequences: int | None = None,
    algorithm: str = "auto",
) -> PackPlan:
    """Decide which lengths share a pack.

    Args:
        data: a histogram, or (sequences,) lengths in tokens, each ≥ 1 and ≤ max_length.
        max_length: token slots in a pack, ≥ 1.
        max_sequences: most sequences in a pack (the paper's packing depth), ≥ 1; None for no limit.
        algorithm: a name from `ALGORITHMS`, or "auto" (now lpfhp):

            - lpfhp: best fit decreasing on the histogram; near the bound on most data, in milliseconds;
            - spfhp: the paper's algorithm, worst fit decreasing as published;
            - next_fit: greedy in data order; needs lengths, not a histogram;
            - none: every sequence alone.

    Returns:
        A plan that covers the data exactly, with its proven lower bound. The same input gives the same plan.

    Raises:
        CapacityError: a sequence is longer than max_length.
        LengthError: lengths or capacities that are not whole numbers ≥ 1, or a histogram for next_fit.
        PlanError: an algorithm that there is not.

    Example:
        >>> plan([9, 2, 3, 7], max_length=10)
        PackPlan(lpfhp, 4 sequences in 3 packs of 10, efficiency 70.00%, at most 0.00% above the optimum)

    Cost: independent of the number of sequences once they are counted; a few milliseconds at max_length 512.
    Source: arXiv 2107.02027, section 3.1.
    """
    max_length = validate_capacity(max_length, "max_length")
    if max_sequences is not None:
        max_sequences = validate_capacity(max_sequences, "max_sequences")
    name = resolve_algorithm(algorithm)
    started = time.perf_counter()
    if isinstance(data, LengthHistogram):
        histogram, lengths = data, None
    else:
        lengths = validate_lengths(data)
        histogram = LengthHistogram.from_lengths(lengths)
    require_fit(histogram, max_length)
    patterns = ALGORITHMS[name](PackingProblem(histogram, max_length, max_sequences, lengths))
    return PackPlan(histogram, max_length, max_sequences, name, patterns, time.perf_counter() - started)
