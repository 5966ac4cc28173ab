"""What each way of packing would give: every algorithm at a few limits of sequences per pack, side by side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import LowerBound
from brimful.planning import ALGORITHMS, AUTO, DATA_ORDER, plan

DEPTHS: tuple[int | None, ...] = (2, 3, 4, 8, None)
"""The limits of sequences per pack that are compared; None is no limit."""

_UNPACKED = "none"
_FAR_ABOVE = 1.05


@dataclass(frozen=True, slots=True)
class Method:
    """One algorithm with one limit, and the figures of its plan; None when it needs the data order, not known here."""

    algorithm: str
    max_sequences: int | None
    figures: dict[str, Any] | None

    @property
    def packs(self) -> int:
        """How many packs it makes; 0 without figures."""
        return int(self.figures["packs"]) if self.figures else 0


def compare(
    histogram: LengthHistogram,
    lengths: npt.NDArray[np.integer[Any]] | None,
    max_length: int,
    max_sequences: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Method]:
    """Plan with every algorithm there is.

    Args:
        histogram: the sequences.
        lengths: the same in data order, or None when only the histogram is known.
        max_length: token slots in a pack.
        max_sequences: the limit to compare at; None for each of DEPTHS.
        progress: called with the name of each algorithm before it runs.

    Returns:
        The simplest algorithm first; within one, the tightest limit first.

    Raises:
        CapacityError: a sequence is longer than max_length.

    Example:
        >>> methods = compare(LengthHistogram.from_lengths([9, 2, 3, 7]), None, max_length=10, max_sequences=2)
        >>> [(method.algorithm, method.packs) for method in methods if method.figures]
        [('none', 4), ('spfhp', 3), ('lpfhp', 3)]

    Cost: a plan for each algorithm and limit: milliseconds, or seconds where there are 100,000 distinct lengths.
    """
    methods = []
    for algorithm in reversed(list(ALGORITHMS)):
        progress(algorithm)
        if algorithm in DATA_ORDER and lengths is None:
            methods.append(Method(algorithm, max_sequences, None))
            continue
        data = lengths if lengths is not None and algorithm in DATA_ORDER else histogram
        one_limit = algorithm == _UNPACKED or algorithm in DATA_ORDER or max_sequences is not None
        for depth in (max_sequences,) if one_limit else DEPTHS:
            figures = plan(data, max_length, depth, algorithm).figures()
            methods.append(Method(algorithm, depth, figures))
    return methods


def best(methods: list[Method]) -> Method:
    """The method with the fewest packs; among equals the default algorithm, and the one with fewer limits."""

    def rank(method: Method) -> tuple[int, bool, float]:
        return method.packs, method.algorithm != AUTO, -(method.max_sequences or float("inf"))

    return min((method for method in methods if method.figures), key=rank)


def methods_table(methods: list[Method]) -> Table:
    """The comparison as a table of at most 80 columns; limits that lead to the same plan share a line."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("method", no_wrap=True)
    for title in ("sequences\nper pack", "packs", "efficiency", "packing\nfactor", "gap", "seconds"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    top = best(methods)
    for algorithm, limits, figures in _lines(methods):
        if figures is None:
            table.add_row(algorithm, "no data order", "-", "-", "-", "-", "-", style="dim")
            continue
        is_best = algorithm == top.algorithm and figures["packs"] == top.packs
        table.add_row(
            algorithm,
            limits,
            f"{figures['packs']:,}",
            f"{figures['efficiency']:.2%}",
            f"{figures['packing_factor']:.2f}",
            f"{figures['gap']:.2%}",
            f"{figures['seconds']:.3f}",
            "*" if is_best else "",
            style="bold green" if is_best else "",
        )
    return table


def explain_gap(methods: list[Method], histogram: LengthHistogram, max_length: int) -> str | None:
    """Why the paper's algorithm is far above the default one, where it is."""
    packs = {method.algorithm: method.packs for method in methods if method.figures}  # without limit: the last of each
    published, ours = packs.get("spfhp", 0), packs.get("lpfhp", 0)
    if not ours or published < _FAR_ABOVE * ours:
        return None
    reason = "spfhp opens one pack for each sequence of the longest lengths, even where several would fit into one"
    if 2 * histogram.longest <= max_length:
        times = max_length / histogram.longest
        reason += f"; here max_length is {times:.3g} times the longest, so it collapses"
    return f"{reason}. It needs {published / ours - 1:.0%} more packs than lpfhp, which has no such weakness."


def explain_bound(bound: LowerBound) -> str:
    """The proven least number of packs, with the argument in a few words."""
    reasons = {
        "tokens": "the tokens alone fill that many",
        "martello-toth": "sequences longer than half a pack cannot share one",
        "max_sequences": "a pack may hold no more sequences than that",
    }
    return f"Proven: no packing needs fewer than {bound.packs:,} packs ({reasons.get(bound.kind, bound.kind)})."


def _lines(methods: list[Method]) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Algorithm, limits in words, and figures; neighbours with equal packs and bound in one line."""

    def same(method: Method) -> tuple[str, int, int]:
        return method.algorithm, method.packs, method.figures["lower_bound"] if method.figures else 0

    lines = []
    for _, group in groupby(methods, key=same):
        alike = list(group)
        first, last = alike[0], alike[-1]
        if first.algorithm == _UNPACKED:
            limits = "1"
        elif first.max_sequences is None:
            limits = "any number"
        elif last.max_sequences is None:
            limits = f"{first.max_sequences} or more"
        elif first is last:
            limits = f"at most {first.max_sequences}"
        else:
            limits = f"{first.max_sequences} to {last.max_sequences}"
        lines.append((first.algorithm, limits, first.figures))
    return lines
