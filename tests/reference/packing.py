"""Packing one sequence at a time: what each histogram algorithm must agree with, pack for pack.

A pack is a list of lengths. `packs` is kept in the order in which packs were last changed, so that "the one that came
to have this space last" is simply the last in the list: the tie rule of the histogram algorithms (last in, first out).
The rule matters: with max_sequences, packs with equal space can differ in how many more sequences they may take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def worst_fit_decreasing(lengths: Sequence[int], max_length: int, max_sequences: int | None) -> list[list[int]]:
    """SPFHP as published: into the open pack with the most space; what fits into none opens a pack of its own.

    Copies of one length never join a pack that another copy of that length has opened.
    """
    packs: list[list[int]] = []
    for length in sorted(set(lengths), reverse=True):
        opened = []
        for _ in range(lengths.count(length)):
            fitting = [at for at, pack in enumerate(packs) if _fits(pack, length, max_length, max_sequences)]
            if fitting:
                at = max(fitting, key=lambda at: (max_length - sum(packs[at]), at))
                packs.append([*packs.pop(at), length])
            else:
                opened.append([length])
        packs += opened
    return packs


def best_fit_decreasing(lengths: Sequence[int], max_length: int, max_sequences: int | None) -> list[list[int]]:
    """LPFHP: longest first, into the open pack with the least space that still takes it, or else into a new one."""
    packs: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        fitting = [at for at, pack in enumerate(packs) if _fits(pack, length, max_length, max_sequences)]
        if fitting:
            at = min(fitting, key=lambda at: (max_length - sum(packs[at]), -at))
            packs.append([*packs.pop(at), length])
        else:
            packs.append([length])
    return packs


def next_fit(lengths: Sequence[int], max_length: int, max_sequences: int | None) -> list[list[int]]:
    """In data order, into the last pack, or into a new one when that cannot take it."""
    packs: list[list[int]] = []
    for length in lengths:
        if packs and _fits(packs[-1], length, max_length, max_sequences):
            packs[-1].append(length)
        else:
            packs.append([length])
    return packs


def alone(lengths: Sequence[int], max_length: int, max_sequences: int | None) -> list[list[int]]:
    """Every sequence in a pack of its own."""
    return [[length] for length in lengths]


def fewest_packs(lengths: Sequence[int], max_length: int, max_sequences: int | None) -> int:
    """The optimum, by trying every way to put the sequences together; for up to about nine sequences."""

    def search(packs: list[list[int]], left: Sequence[int]) -> int:
        if not left:
            return len(packs)
        length, left = left[0], left[1:]
        choices = [
            search([*packs[:at], [*pack, length], *packs[at + 1 :]], left)
            for at, pack in enumerate(packs)
            if _fits(pack, length, max_length, max_sequences)
        ]
        return min([*choices, search([*packs, [length]], left)])

    return search([], lengths)


def multiset(packs: Iterable[Iterable[int]]) -> Counter[tuple[int, ...]]:
    """How often each pack occurs, whatever the order of packs and of the sequences within one."""
    return Counter(tuple(sorted(pack, reverse=True)) for pack in packs)


def _fits(pack: list[int], length: int, max_length: int, max_sequences: int | None) -> bool:
    return sum(pack) + length <= max_length and (max_sequences is None or len(pack) < max_sequences)
