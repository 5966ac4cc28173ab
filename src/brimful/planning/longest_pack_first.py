"""Longest-pack-first histogram packing: best fit decreasing, on the histogram."""

from __future__ import annotations

from brimful.planning.open_packs import OpenPacks
from brimful.planning.problem import PackingProblem, Solution


def lpfhp(problem: PackingProblem) -> Solution:
    """Lengths from long to short, each into the open pack with the least space that still takes it (best fit).

        lengths  7 5 3 2 2, max_length 10:

        7 -> [7......]        5 -> [5....]         3 -> [7 3]         2, 2 -> [5 2 2.]

    Several copies of one length go into a pack at once, into a new one too, which is what best fit would do with them
    one by one: a pack that has just taken a copy has the least space, and takes the next.

    Cost: independent of the number of sequences; a few steps of about a microsecond per distinct length and group of
    equal packs.
    Source: best fit decreasing: Johnson, Near-optimal bin packing algorithms (1973); on histograms: the companion code
    of arXiv 2107.02027.
    """
    packs = OpenPacks(problem.max_length, problem.max_sequences)
    most = problem.max_sequences or problem.max_length
    histogram = problem.histogram
    for length, count in zip(histogram.lengths[::-1].tolist(), histogram.counts[::-1].tolist(), strict=True):
        left = count
        while left and (space := packs.tightest(length)):
            left -= packs.fill(space, length, left)
        while left:
            copies = min(problem.max_length // length, most, left)
            packs.open(length, copies, left // copies)
            left %= copies
    return Solution(packs.patterns())
