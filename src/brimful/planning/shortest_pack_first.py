"""Shortest-pack-first histogram packing: the algorithm of the paper, as published."""

from __future__ import annotations

from brimful.planning.open_packs import OpenPacks
from brimful.planning.problem import PackingProblem, Solution


def spfhp(problem: PackingProblem) -> Solution:
    """Lengths from long to short, each into the open pack with the most space left (worst fit).

        lengths  7 5 3 2 2, max_length 10:

        7 -> [7......]        5 -> [5....]         3 -> [5 3..]       2, 2 -> [7 2.] [5 3 2]

    What no open pack can take opens packs of its own, **one for each sequence**. That is the published rule, and it
    is harmless while the lengths are of the order of max_length. Where max_length is many times the lengths it
    collapses: a thousand sequences of the longest length open a thousand packs, although several would share one, and
    the shorter ones cannot fill them all (Wikipedia's lengths, at most 512, at max_length 2048: 88 % more packs than
    the bound). `lpfhp` has no such weakness.

    Cost: independent of the number of sequences; at most (distinct lengths)² steps, in practice a few per length.
    Source: arXiv 2107.02027, section 3.1.1.
    """
    packs = OpenPacks(problem.max_length, problem.max_sequences)
    histogram = problem.histogram
    for length, count in zip(histogram.lengths[::-1].tolist(), histogram.counts[::-1].tolist(), strict=True):
        left = count
        while left and (space := packs.roomiest()) >= length:
            left -= packs.fill(space, length, left, most_copies=1)
        if left:
            packs.open(length, copies=1, count=left)
    return Solution(packs.patterns())
