"""Lower bounds by their definitions, over individual sequences and every threshold."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil


def token_bound(lengths: Sequence[int], max_length: int) -> int:
    """L1: the tokens, cut anywhere."""
    return ceil(Fraction(sum(lengths), max_length))


def martello_toth_bound(lengths: Sequence[int], max_length: int) -> int:
    """L2 as in Martello and Toth, Knapsack Problems (1990), section 8.3.2, for every threshold up to half a pack."""
    best = 0
    for threshold in range(max_length // 2 + 1):
        alone = [length for length in lengths if length > max_length - threshold]
        large = [length for length in lengths if Fraction(max_length, 2) < length <= max_length - threshold]
        small = [length for length in lengths if threshold <= length <= Fraction(max_length, 2)]
        space = sum(max_length - length for length in large)
        more = max(0, ceil(Fraction(sum(small) - space, max_length)))
        best = max(best, len(alone) + len(large) + more)
    return best
