"""What each algorithm would give, side by side, and what there is to say about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich import box
from rich.table import Table

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import LowerBound

_UNPACKED = "none"
_FAR_ABOVE = 1.05


def comparison_table(plans: Sequence[dict[str, Any]], best: dict[str, Any], left_out: Sequence[str] = ()) -> Table:
    """The plans of all algorithms in at most 80 columns; limits that lead to equal plans share a line.

    Args:
        plans: what `PackPlan.figures` gives; plans of one algorithm follow each other, the tightest limit first.
        best: the one to mark.
        left_out: algorithms that had no data order to pack in.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    table.add_column("algorithm", no_wrap=True)
    for title in ("sequences\nper pack", "packs", "efficiency", "packing\nfactor", "gap", "seconds"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    for limits, figures in _lines(plans):
        is_best = (figures["algorithm"], figures["packs"]) == (best["algorithm"], best["packs"])
        table.add_row(
            figures["algorithm"],
            limits,
            f"{figures['packs']:,}",
            f"{figures['efficiency']:.2%}",
            f"{figures['packing_factor']:.2f}",
            f"{figures['gap']:.2%}",
            f"{figures['seconds']:.3f}",
            "*" if is_best else "",
            style="bold green" if is_best else "",
        )
    for algorithm in left_out:
        table.add_row(algorithm, "no data order", "-", "-", "-", "-", "-", style="dim")
    return table


def explain_collapse(plans: Sequence[dict[str, Any]], histogram: LengthHistogram, max_length: int) -> str | None:
    """Why the paper's algorithm is far above lpfhp, where it is."""
    packs = {figures["algorithm"]: figures["packs"] for figures in plans}  # with the widest limit: the last of each
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
        "linear-programme": "the linear programme of all patterns needs that many",
    }
    return f"Proven: no packing needs fewer than {bound.packs:,} packs ({reasons.get(bound.kind, bound.kind)})."


def _lines(plans: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Limits in words, and figures; neighbours with equal packs and bound in one line."""

    def same(figures: dict[str, Any]) -> tuple[str, int, int]:
        return figures["algorithm"], figures["packs"], figures["lower_bound"]

    for _, group in groupby(plans, key=same):
        alike = list(group)
        first, last = alike[0]["max_sequences"], alike[-1]["max_sequences"]
        if alike[0]["algorithm"] == _UNPACKED:
            limits = "1"
        elif first is None:
            limits = "any number"
        elif last is None:
            limits = f"{first} or more"
        elif first == last:
            limits = f"at most {first}"
        else:
            limits = f"{first} to {last}"
        yield limits, alike[0]
