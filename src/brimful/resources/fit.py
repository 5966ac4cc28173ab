"""First fit and best fit decreasing for packs with several capacities, on the histogram."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from brimful.patterns import Patterns
from brimful.resources.groups import Group, Key, OrderedGroups, Space
from brimful.resources.runs import NO_RUN, Runs
from brimful.validation import MAX_TOKENS, IntArray

SHARE_UNIT = 2**40
"""A whole capacity, in the units in which sizes of different resources are compared."""

PRIORITIES: Mapping[str, Callable[[IntArray], IntArray]] = MappingProxyType(
    {
        "sum": lambda shares: shares.sum(axis=1),
        "max": lambda shares: shares.max(axis=1),
        "product": lambda shares: shares.astype(object).prod(axis=1),  # Python's whole numbers: exact
    }
)
"""Which sequences are placed first: those for which this function of their shares of the capacities is greatest."""

ALGORITHMS = ("best_fit", "first_fit")
"""They differ in the order in which open packs are offered a sequence: the first with space for it takes it."""


def fit(sizes: IntArray, counts: IntArray, capacities: IntArray, algorithm: str, priority: str) -> Patterns:
    """Sequences by falling priority, each into the first open pack with space for it, or else into a new one.

        capacities 10 and 2; sizes (4, 1) (3, 1) (2, 1) (7, 0), whose shares add up to 0.9 0.8 0.7 0.7:

        (4, 1) -> [(4, 1)]      (3, 1) -> [(4, 1) (3, 1)]      (2, 1) -> [(2, 1)]      (7, 0) -> [(2, 1) (7, 0)]

    First fit takes the pack that was opened first; best fit the one with the least space, as the sum of its shares of
    the capacities in units of 1 / SHARE_UNIT, and of equal sums the one with less of the first resource in which they
    differ. Several copies of one size go into a pack at once, into a new one too, which is what either rule would do
    with them one by one: the pack that has just taken a copy comes before all others with space, and takes the next.

    Args:
        sizes: (distinct, resources) int64, ≥ 0, none above its capacity, each with one above 0.
        counts: (distinct,) int64, sequences of each size, ≥ 1.
        capacities: (resources,) int64, ≥ 1.
        algorithm: one of ALGORITHMS.
        priority: a name in PRIORITIES; of equal priorities, the later size in `sizes` comes first.

    Returns:
        Patterns whose lengths are rows of `sizes`, counted from 1.

    Cost: grows with the distinct sizes and the packs' patterns, not with the sequences: some 20 µs for each run of
    a pattern.
    Source: vector bin packing by first fit decreasing: Kou and Markowsky (1977); orders and measures as in Panigrahy,
    Talwar, Uyeda and Wieder, Heuristics for vector bin packing (2011). On histograms: as in `longest_pack_first`.
    """
    if not len(sizes):
        return Patterns.empty()
    weights = SHARE_UNIT // capacities
    order = np.argsort(PRIORITIES[priority](sizes * weights), kind="stable")[::-1]
    least = np.minimum.accumulate(sizes[order][::-1])[::-1]  # the least of every resource from there on
    later = [*map(tuple, least[1:].tolist()), (MAX_TOKENS,) * len(capacities)]
    empty = tuple(capacities.tolist())
    groups = OrderedGroups(len(empty), _earliest if algorithm == "first_fit" else _tightest(weights.tolist()))
    runs = Runs()
    opened = 0
    for row, size, count, rest in zip(
        order.tolist(), map(tuple, sizes[order].tolist()), counts[order].tolist(), later, strict=True
    ):
        left = count
        while left:
            place = groups.first_fitting(size)
            if place is None:
                group = Group(max(1, left // _copies(empty, size)), opened, NO_RUN, empty)
                opened += group.packs
            else:
                group = groups.pop(place)
            copies = min(_copies(group.space, size), left)
            packs = min(left // copies, group.packs)
            left -= packs * copies
            if packs < group.packs:
                groups.add(Group(group.packs - packs, group.first + packs, group.run, group.space))
            space = tuple(free - copies * one for free, one in zip(group.space, size, strict=True))
            run = runs.add(group.run, row + 1, copies)
            if any(free < one for free, one in zip(space, rest, strict=True)):
                runs.close(run, packs)  # nothing that is still to come fits
            else:
                groups.add(Group(packs, group.first, run, space))
    for group in groups.all():
        runs.close(group.run, group.packs)
    return runs.patterns()


def _earliest(group: Group) -> Key:
    return (group.first,)


def _tightest(weights: Sequence[int]) -> Callable[[Group], Key]:
    return lambda group: (sum(map(operator.mul, group.space, weights)), *group.space)


def _copies(space: Space, size: Space) -> int:
    """How many sequences of a size go into this space."""
    return min(free // one for free, one in zip(space, size, strict=True) if one)
