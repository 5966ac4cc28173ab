"""Groups of sequences of nearly equal cost: which rank, or which micro-batch, takes what."""

from __future__ import annotations

import heapq
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from brimful.assignment import assign
from brimful.batching.exchange import even_out
from brimful.errors import CapacityError, LengthError, SettingError, shown
from brimful.planning import plan
from brimful.validation import IntArray, Lengths, is_number, validate_capacity, validate_lengths

Costs: TypeAlias = npt.NDArray[Any]  # (items,) int64 or float64
Groups: TypeAlias = list[IntArray]

_GREATEST = 2.0**62


def attention_cost(lengths: Lengths, linear: float = 1, quadratic: float = 0) -> Costs:
    """What a sequence costs a transformer: linear · length + quadratic · length².

    Args:
        lengths: (sequences,) tokens, each ≥ 1.
        linear: cost of a token in the layers that see it alone, ≥ 0; with quadratic 0 the cost is tokens.
        quadratic: cost of a pair of tokens in attention, ≥ 0.

    Returns:
        (sequences,) int64 if both factors are whole numbers, otherwise float64.

    Raises:
        LengthError: a length is no whole number ≥ 1, or a sequence costs 2^62 or more.
        SettingError: a factor below 0.

    Example:
        >>> attention_cost([1, 2, 3], linear=10, quadratic=1)
        array([11, 24, 39])
    """
    array = validate_lengths(lengths).astype(np.int64)
    for factor, name in ((linear, "linear"), (quadratic, "quadratic")):
        if not is_number(factor) or factor < 0:
            raise SettingError(f"{name} is a number from 0 up, not {shown(factor)}")
    about = linear * array.astype(np.float64) + quadratic * array.astype(np.float64) ** 2
    if not about.max(initial=0) < _GREATEST:  # the exact product would leave int64 in silence
        at = int(np.argmax(about))
        raise LengthError(
            f"a sequence costs less than 2^62, but item {at}, of {array[at]} tokens, about {about[at]:.3g}; "
            "give smaller factors"
        )
    costs: Costs = linear * array + quadratic * array**2
    return costs


def balance(
    costs: Lengths | npt.NDArray[Any],
    k: int,
    capacity: float | None = None,
    equal_size: bool = False,
    *,
    sizes: Lengths | None = None,
) -> Groups:
    """Split items into k groups so that the costliest group costs as little as can be found.

        costs 8 7 6 5 4, 2 groups    longest first: [8 5 4] [7 6], 17 and 13    here: [8 7] [6 5 4], 15 and 15

    Two starting points, Karmarkar and Karp's differencing and the costliest item first to the least group (LPT), are
    improved by moving and exchanging items; the better one is the answer. So it is never worse than LPT.

    Args:
        costs: (items,) ≥ 0, whole or floating numbers, such as tokens, or `attention_cost`.
        k: groups, ≥ 1.
        capacity: no group's sizes add up to more, > 0; None for no limit.
        equal_size: groups have equally many items, or differ by one where k does not divide them.
        sizes: (items,) what counts against the capacity, such as tokens where costs are those of attention; None takes
            the costs.

    Returns:
        k arrays of the indices of their items, rising; the costliest group first. Each index stands in one of them;
        with fewer than k items some are empty.

    Raises:
        CapacityError: an item or all together do not fit into the capacity, or no way was found to make them fit.
        LengthError: costs or sizes that are no numbers ≥ 0, or k no whole number ≥ 1.
        SettingError: a capacity that is no number above 0, sizes without one.

    Example:
        >>> [group.tolist() for group in balance([8, 7, 6, 5, 4], 2)]
        [[2, 3, 4], [0, 1]]
        >>> [group.tolist() for group in balance([9, 1, 1, 1], 2, equal_size=True)]
        [[0, 3], [1, 2]]

    Cost: items × k steps for differencing, then exchanges between pairs of groups; a thousand items in 8 groups take
    about 20 ms.
    Source: Karmarkar and Karp, The differencing method of set partitioning (1982); for equal sizes, its balanced form:
    Michiels, Korst, Aarts and van Leeuwen (2003).
    """
    values = _numbers(costs, "costs")
    k = validate_capacity(k, "k")
    loads, capacity = _loads(values, sizes, capacity, k)
    starts = [
        start(basis, k, equal_size)
        for basis in ([values] if sizes is None else [values, loads])
        for start in (differencing, longest_first)
    ]
    found = [groups for groups in starts if _fits(groups, loads, capacity)]
    if not found:
        found = [_packed(loads, k, capacity, equal_size)]
    results = [even_out(groups, values, loads, capacity, equal_size) for groups in found]
    best = min(results, key=lambda groups: sorted((values[group].sum() for group in groups), reverse=True))
    order = np.argsort([-values[group].sum() for group in best], kind="stable")
    return [np.sort(best[at]) for at in order]


def differencing(costs: Costs, k: int, equal_size: bool = False) -> Groups:
    """Karmarkar and Karp: put the two most uneven partial splits together, heavy on light, until one is left.

    Example:
        >>> [sorted(group.tolist()) for group in differencing(np.array([8, 7, 6, 5, 4]), 2)]  # 16 and 14
        [[1, 3, 4], [0, 2]]
    """
    order = np.argsort(-costs, kind="stable").tolist()
    # A partial split: its difference first (negated: the heap gives the least), then sums and members, heaviest first.
    # Members are nested pairs, so that putting groups together costs nothing.
    splits = []
    for number, start in enumerate(range(0, len(order), k if equal_size else 1)):
        members: list[Any] = [(item,) for item in order[start : start + (k if equal_size else 1)]]
        sums = [costs[member[0]].item() for member in members] + [0] * (k - len(members))
        splits.append((min(sums) - max(sums), number, sums, members + [()] * (k - len(members))))
    heapq.heapify(splits)
    number = len(splits)
    while len(splits) > 1:
        _, _, sums, members = heapq.heappop(splits)
        _, _, other_sums, other_members = heapq.heappop(splits)
        joined = [(sums[at] + other_sums[-1 - at], at) for at in range(k)]
        joined.sort(key=lambda pair: -pair[0])
        sums, members = (
            [total for total, _ in joined],
            [(members[at], other_members[-1 - at]) for _, at in joined],
        )
        heapq.heappush(splits, (sums[-1] - sums[0], number, sums, members))
        number += 1
    return [_flat(member) for member in splits[0][3]] if splits else [np.zeros(0, np.int64)] * k


def longest_first(costs: Costs, k: int, equal_size: bool = False) -> Groups:
    """LPT: each item, the costliest first, to the group that costs least so far and has room for one more.

    Example:
        >>> [group.tolist() for group in longest_first(np.array([8, 7, 6, 5, 4]), 2)]  # 17 and 13
        [[0, 3, 4], [1, 2]]
    """
    n = len(costs)
    groups: list[list[int]] = [[] for _ in range(k)]
    heap: list[tuple[float, int]] = [(0, group) for group in range(k)]
    n_larger = n % k or k  # groups of ⌈n / k⌉ items; the others have one less
    for item in np.argsort(-costs, kind="stable").tolist():
        total, group = heapq.heappop(heap)
        groups[group].append(item)
        if equal_size and len(groups[group]) == -(-n // k):
            n_larger -= 1
            if not n_larger:
                heap = [entry for entry in heap if len(groups[entry[1]]) < n // k]
                heapq.heapify(heap)
        elif not equal_size or n_larger or len(groups[group]) < n // k:
            heapq.heappush(heap, (total + costs[item].item(), group))
    return [np.array(group, np.int64) for group in groups]


def _flat(member: Any) -> IntArray:
    """The items in nested pairs, without recursion: they can be as deep as there are items."""
    items, stack = [], [member]
    while stack:
        part = stack.pop()
        if isinstance(part, tuple):
            stack += part
        else:
            items.append(part)
    return np.array(items, np.int64)


def _numbers(values: Any, name: str) -> Costs:
    """A flat array of int64 or float64, each a number ≥ 0 and small enough to be added up."""
    array = np.asarray(values)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iuf"):
        raise LengthError(f"{name} are a flat list of numbers, not {shown(values)}")
    wrong = ~((array >= 0) & (array < _GREATEST / max(len(array), 1)))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise LengthError(f"{name} are numbers from 0 up whose sum is below 2^62, but item {at} is {array[at]}")
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64)


def _loads(costs: Costs, sizes: Any, capacity: Any, k: int) -> tuple[Costs, float]:
    """What counts against the capacity, and the capacity; or an error if it is plain that they cannot fit."""
    if capacity is None:
        if sizes is not None:
            raise SettingError("sizes count against a capacity; give one, or leave sizes out")
        return costs, np.inf
    if not is_number(capacity) or capacity <= 0:
        raise SettingError(f"a capacity is a number above 0, or None for no limit, not {shown(capacity)}")
    loads = costs if sizes is None else _numbers(sizes, "sizes")
    if len(loads) != len(costs):
        raise LengthError(f"sizes are one for each of {len(costs)} costs, not {len(loads)}")
    if len(loads) and loads.max() > capacity:
        at = int(np.argmax(loads))
        raise CapacityError(
            f"item {at} has size {loads[at]}, more than the capacity {capacity}; raise it, or split the item"
        )
    if loads.sum() > k * capacity:
        raise CapacityError(
            f"all items have size {loads.sum()} together, more than {k} groups of capacity {capacity} hold; "
            "raise k or the capacity"
        )
    return loads, float(capacity)


def _fits(groups: Groups, loads: Costs, capacity: float) -> bool:
    return all(bool(loads[group].sum() <= capacity) for group in groups)


def _packed(loads: Costs, k: int, capacity: float, equal_size: bool) -> Groups:
    """Groups that hold no more than the capacity, from a plan of packs; or an error that says why there are none."""
    most = -(-len(loads) // k)
    proof = ""
    if loads.dtype == np.int64 and loads.min() >= 1 and capacity < 2**31:
        packs = plan(loads, int(capacity), most if equal_size else None, "optimal")
        if packs.packs <= k:
            filled = assign(packs, loads)
            groups = [filled[pack] for pack in range(packs.packs)] + [np.zeros(0, np.int64)] * (k - packs.packs)
            if not equal_size or min(map(len, groups)) >= len(loads) // k:
                return groups
        elif packs.lower_bound > k:
            proof = f": they need {packs.lower_bound} groups at least"
    raise CapacityError(
        f"no way was found to put {len(loads)} items into {k} groups of capacity {shown(capacity)}"
        f"{' and equal size' if equal_size else ''}{proof}; raise k or the capacity"
    )
