"""assign_resources: which sequence fills which place of which pack, afresh for every epoch."""

from __future__ import annotations

from collections.abc import Mapping

from brimful.assignment import PackAssignment, fill
from brimful.errors import PlanError
from brimful.resources.histogram import ResourceHistogram
from brimful.resources.plan import ResourcePlan
from brimful.resources.sizes import distinct_rows, size_rows
from brimful.validation import Lengths


def assign_resources(plan: ResourcePlan, sizes: Mapping[str, Lengths], seed: int = 0, epoch: int = 0) -> PackAssignment:
    """Fill the packs of a plan with sequences, at random wherever the plan leaves a choice.

    Sequences of equal size are exchanged and packs come in an order that depends on (seed, epoch) alone, so every
    epoch meets new company in exactly the same number of packs; within a pack the greatest size comes first, by the
    first resource of the plan, then by the second …

    Args:
        plan: covers exactly these sizes.
        sizes: for each resource of the plan, in any order, (sequences,) whole numbers.
        seed: ≥ 0; the same seed, epoch, plan and sizes give the same assignment (with the same NumPy).
        epoch: ≥ 0.

    Returns:
        Every sequence exactly once, in plan.packs packs.

    Raises:
        PlanError: the plan is for other sizes.
        LengthError: a size is no whole number ≥ 0, or a sequence has none above 0.
        SettingError: the seed or the epoch is no whole number from 0 to 2^63 − 1.

    Example:
        >>> from brimful.resources import plan_resources
        >>> sizes = {"tokens": [9, 2, 3, 7], "images": [0, 2, 1, 0]}
        >>> packs = assign_resources(plan_resources(sizes, {"tokens": 10, "images": 2}), sizes)
        >>> sorted(pack.tolist() for pack in packs)
        [[0], [2], [3, 1]]

    Cost: a sort for each resource and that of `brimful.assign`: about a second per million sequences.
    """
    names, rows = size_rows(sizes)
    wanted = plan.histogram.names
    if sorted(names) != sorted(wanted):
        raise PlanError(f"the plan is for {', '.join(wanted)}, not for {', '.join(names)}; plan anew")
    distinct, places, counts = distinct_rows(rows[:, [names.index(name) for name in wanted]])
    histogram = ResourceHistogram(wanted, distinct, counts)
    if histogram != plan.histogram:
        raise PlanError(f"the plan is for other sizes ({plan.histogram.difference(histogram)}); plan anew")
    return fill(plan.patterns, places + 1, seed, epoch)  # patterns hold the numbers of sizes, counted from 1
