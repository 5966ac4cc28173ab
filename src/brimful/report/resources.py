"""The figures of one plan for several resources, as a few aligned lines."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from brimful.report.figures import lines_table


def resources_table(figures: dict[str, Any], bound_kind: str) -> Table:
    """The figures under their names, one a line.

    Args:
        figures: what `ResourcePlan.figures` gives.
        bound_kind: the argument that proves the lower bound.
    """
    limit = figures["max_sequences"]
    lines = {
        "sequences": f"{figures['sequences']:,} of {_each(figures['totals'])}",
        "packs": f"{figures['packs']:,} of {_each(figures['capacities'])}",
        "max_sequences": "no limit" if limit is None else f"{limit:,} in a pack",
        "algorithm": f"{figures['algorithm']}, greatest {figures['priority']} first, {figures['seconds']:.3f} s",
        "efficiency": ", ".join(f"{share:.2%} of the {name}" for name, share in figures["efficiency"].items()),
        "packing factor": f"{figures['packing_factor']:.2f} sequences in a pack",
        "speed-up limit": f"at best {figures['speedup_limit']:.2f} times fewer packs than one for each sequence",
        "lower bound": f"{figures['lower_bound']:,} packs ({bound_kind}): no packing needs fewer",
        "by resource": ", ".join(f"{packs:,} packs for the {name}" for name, packs in figures["lower_bounds"].items()),
        "gap": f"{figures['gap']:.2%} above that bound at most",
    }
    return lines_table(lines)


def _each(numbers: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in numbers.items())
