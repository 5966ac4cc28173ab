"""Packing in several resources one sequence at a time, and by trying everything: what the fast planner must agree with.

A pack is a list of sizes, and a size is a tuple of numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from math import prod
from typing import TypeAlias

Size: TypeAlias = tuple[int, ...]
Pack: TypeAlias = list[Size]


RULES: dict[str, Callable[[list[int]], int]] = {"sum": sum, "max": max, "product": prod}


def first_fit_decreasing(
    sizes: Iterable[Size], capacities: Size, max_sequences: int | None, priority: str
) -> list[Pack]:
    """Into the pack that was opened first, of those with space."""
    packs: list[Pack] = []
    for size in _decreasing(sizes, capacities, max_sequences, priority):
        fitting = [pack for pack in packs if fits([*pack, size], capacities, max_sequences)]
        if fitting:
            fitting[0].append(size)
        else:
            packs.append([size])
    return packs


def best_fit_decreasing(
    sizes: Iterable[Size], capacities: Size, max_sequences: int | None, priority: str
) -> list[Pack]:
    """Into the pack with the least space, of those with space; of equal ones, into the one that was changed last."""
    packs: list[Pack] = []  # in the order in which they were last changed
    for size in _decreasing(sizes, capacities, max_sequences, priority):
        fitting = [at for at, pack in enumerate(packs) if fits([*pack, size], capacities, max_sequences)]
        if fitting:
            at = min(fitting, key=lambda at: (*_space(packs[at], capacities, max_sequences), -at))
            packs.append([*packs.pop(at), size])
        else:
            packs.append([size])
    return packs


def fewest_packs(sizes: Sequence[Size], capacities: Size, max_sequences: int | None) -> int:
    """The optimum, by trying every way to put the sequences together; for up to about eight sequences."""

    def search(packs: list[Pack], left: Sequence[Size]) -> int:
        if not left:
            return len(packs)
        size, left = left[0], left[1:]
        choices = [
            search([*packs[:at], [*pack, size], *packs[at + 1 :]], left)
            for at, pack in enumerate(packs)
            if fits([*pack, size], capacities, max_sequences)
        ]
        return min([*choices, search([*packs, [size]], left)])

    return search([], sizes)


def fits(pack: Pack, capacities: Size, max_sequences: int | None) -> bool:
    """Does the pack keep every capacity?"""
    loads = [sum(size[resource] for size in pack) for resource in range(len(capacities))]
    within = all(load <= capacity for load, capacity in zip(loads, capacities, strict=True))
    return within and (max_sequences is None or len(pack) <= max_sequences)


def multiset(packs: Iterable[Iterable[Size]]) -> Counter[tuple[Size, ...]]:
    """How often each pack occurs, whatever the order of packs and of the sequences within one."""
    return Counter(tuple(sorted(pack, reverse=True)) for pack in packs)


def total_bound(sizes: Sequence[Size], capacities: Size) -> int:
    """The packs that the resource which is scarcest would fill if sequences could be cut anywhere."""
    shares = [Fraction(sum(size[resource] for size in sizes), capacity) for resource, capacity in enumerate(capacities)]
    return max(-(-share.numerator // share.denominator) for share in shares)


def _decreasing(sizes: Iterable[Size], capacities: Size, max_sequences: int | None, priority: str) -> list[Size]:
    rule = RULES[priority]
    return sorted(sizes, key=lambda size: (rule(_shares(size, 1, capacities, max_sequences)), size), reverse=True)


def _space(pack: Pack, capacities: Size, max_sequences: int | None) -> Size:
    """How much space a pack has: all resources together in units of 2^-40 of the capacities, then one by one."""
    left = [capacity - sum(size[at] for size in pack) for at, capacity in enumerate(capacities)]
    sequences_left = 0 if max_sequences is None else max_sequences - len(pack)
    together = sum(_shares(left, sequences_left, capacities, max_sequences))
    return (together, *left, sequences_left)


def _shares(numbers: Sequence[int], sequences: int, capacities: Size, max_sequences: int | None) -> list[int]:
    """Each number as a share of its capacity; the number of sequences is one of them where it is limited."""
    pairs = list(zip(numbers, capacities, strict=True))
    if max_sequences is not None:
        pairs.append((sequences, max_sequences))
    return [number * (2**40 // capacity) for number, capacity in pairs]
