"""What each algorithm would give: all of them at a few limits of sequences per pack, and the best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import LowerBound
from brimful.planning import ALGORITHMS, DATA_ORDER, LEAST_SQUARES, plan
from brimful.plans import packing_figures

LIMITS: tuple[int | None, ...] = (2, 3, 4, 8, None)
"""The values of max_sequences that are compared; None is no limit."""

_UNPACKED = "none"
SECONDS = 5.0
"""For each plan: enough for the best one where auto would look for it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Plans side by side.

    Args:
        plans: the figures of each plan, the simplest algorithm first; within one, the tightest limit first. Plans with
            one limit share the best bound that any of them has proved.
        bound: the best bound for the limit that was asked for.
    """

    plans: list[dict[str, Any]]
    bound: LowerBound


def compare(
    histogram: LengthHistogram,
    lengths: npt.NDArray[np.integer[Any]] | None,
    max_length: int,
    max_sequences: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Plan with every algorithm that can, but for the slow ones of least squares.

    Args:
        histogram: the sequences.
        lengths: the same in data order, or None when only the histogram is known.
        max_length: token slots in a pack.
        max_sequences: the limit to compare at; None for each of LIMITS.
        progress: called with the name of each algorithm before it runs.

    Returns:
        The comparison; algorithms that need a data order which is not known are left out.

    Raises:
        CapacityError: a sequence is longer than max_length.

    Example:
        >>> compared = compare(LengthHistogram.from_lengths([9, 2, 3, 7]), None, max_length=10, max_sequences=2)
        >>> compared.plans[0]["algorithm"], compared.plans[0]["packs"], compared.bound.packs
        ('none', 4, 3)

    Cost: a plan for each algorithm and limit: milliseconds, or up to 5 seconds each where there are many lengths.
    """
    plans = []
    for algorithm in reversed([name for name in ALGORITHMS if name not in LEAST_SQUARES]):
        in_order = algorithm in DATA_ORDER
        if in_order and lengths is None:
            continue
        progress(algorithm)
        data = lengths if in_order and lengths is not None else histogram
        one_limit = algorithm == _UNPACKED or in_order or max_sequences is not None
        limits = (max_sequences,) if one_limit else LIMITS
        plans += [plan(data, max_length, limit, algorithm, time_limit=SECONDS) for limit in limits]
    bounds: dict[int | None, LowerBound] = {}
    for made in plans:
        known = bounds.setdefault(made.max_sequences, made.bound)
        bounds[made.max_sequences] = max(known, made.bound, key=lambda bound: bound.packs)
    figures = [
        made.figures() | packing_figures(histogram, made.packs, max_length, limit, bounds[limit])
        for made in plans
        for limit in (made.max_sequences,)
    ]
    return Comparison(figures, bounds[max_sequences])


def best(plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The plan with the fewest packs; among equals that of the first algorithm, and the one with the widest limit.

    Example:
        >>> best([{"algorithm": "none", "packs": packs, "max_sequences": None} for packs in (9, 7, 8)])["packs"]
        7
    """

    order = list(ALGORITHMS)

    def rank(figures: dict[str, Any]) -> tuple[int, int, float]:
        return figures["packs"], order.index(figures["algorithm"]), -(figures["max_sequences"] or float("inf"))

    return min(plans, key=rank)
