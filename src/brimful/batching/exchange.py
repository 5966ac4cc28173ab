"""Moving and exchanging items between groups, as long as the costliest group gets cheaper."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.validation import IntArray

_MOST_ITEMS = 512  # of a group that are tried with those of another
_NOISE = 1e-12  # a share of a sum below which a gain is rounding


def even_out(
    groups: list[IntArray],
    costs: npt.NDArray[Any],
    loads: npt.NDArray[Any],
    capacity: float = np.inf,
    equal_size: bool = False,
) -> list[IntArray]:
    """Lower the cost of the costliest group, by one item moved or two exchanged at a time, until no such step helps.

        costs [8 5 4] [7 6], 17 and 13    exchange 8 for 6    ->    [6 5 4] [7 8], 15 and 15

    Args:
        groups: arrays of indices of items, each within the capacity.
        costs: (items,) ≥ 0.
        loads: (items,) what counts against the capacity.
        capacity: no group's loads add up to more.
        equal_size: exchange only, so that every group keeps its number of items.

    Returns:
        As many groups of the same items; the costliest is never costlier than before.

    Example:
        >>> costs = np.array([8, 7, 6, 5, 4])
        >>> [group.tolist() for group in even_out([np.array([0, 3, 4]), np.array([1, 2])], costs, costs)]
        [[3, 4, 2], [1, 0]]

    Cost: for each step, the pairs of items of two groups (of up to 512 items each), until a pair of groups gains.
    """
    groups = [group.copy() for group in groups]
    totals = np.array([costs[group].sum() for group in groups])
    filled = np.array([loads[group].sum() for group in groups])
    for _ in range(len(costs) + len(groups)):
        heavy = int(np.argmax(totals))
        for light in np.argsort(totals, kind="stable").tolist():
            gap = totals[heavy] - totals[light]
            if gap <= _NOISE * totals[heavy]:
                return groups
            step = _best_step(
                groups[heavy], groups[light], costs, loads, gap, capacity - filled[[heavy, light]], equal_size
            )
            if step is not None:
                break
        else:
            return groups
        out, back = step
        leaves = groups[heavy][out]
        comes = groups[light][back : back + 1]
        groups[heavy] = np.append(np.delete(groups[heavy], out), comes)
        groups[light] = np.append(np.delete(groups[light], slice(back, back + 1)), leaves)
        for group in (heavy, light):  # added up afresh: floating sums do not drift
            totals[group], filled[group] = costs[groups[group]].sum(), loads[groups[group]].sum()
    return groups


def _best_step(
    heavy: IntArray,
    light: IntArray,
    costs: npt.NDArray[Any],
    loads: npt.NDArray[Any],
    gap: Any,
    room: npt.NDArray[Any],  # (2,) what the heavy and the light group can still hold
    equal_size: bool,
) -> tuple[int, int] | None:
    """Places of the items that change sides; the second is one past the light group's if nothing comes back."""
    out = np.arange(0, len(heavy), -(-len(heavy) // _MOST_ITEMS) or 1)
    back = np.arange(0, len(light), -(-len(light) // _MOST_ITEMS) or 1)
    light_costs, light_loads = costs[light[back]], loads[light[back]]
    if not equal_size:
        back = np.append(back, len(light))
        light_costs, light_loads = np.append(light_costs, 0), np.append(light_loads, 0)
    if not len(out) or not len(back):
        return None
    gain = costs[heavy[out]][:, None] - light_costs
    growth = loads[heavy[out]][:, None] - light_loads
    uneven = np.abs(2 * gain - gap)  # what would remain of the gap
    uneven = np.where((growth <= room[1]) & (-growth <= room[0]), uneven, gap)
    best = int(np.argmin(uneven))
    if uneven.flat[best] >= gap * (1 - _NOISE):
        return None
    row, column = divmod(best, len(back))
    return int(out[row]), int(back[column])
