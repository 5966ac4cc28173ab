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


def most_valuable_pattern(
    lengths: Sequence[int], values: Sequence[int], max_length: int, max_sequences: int | None
) -> int:
    """The worth of the best pattern, by trying every multiset of lengths that fits."""

    def best(first: int, space: int, sequences: int) -> int:
        if first == len(lengths) or sequences == 0:
            return 0
        most = best(first + 1, space, sequences)
        if lengths[first] <= space:
            most = max(most, values[first] + best(first, space - lengths[first], sequences - 1))
        return most

    return best(0, max_length, max_length if max_sequences is None else max_sequences)


def dual_feasible_bound(lengths: Sequence[int], max_length: int) -> int:
    """Fekete and Schepers' u^(k) after U^(e), over individual sequences, every k up to 50 and every threshold."""

    def inflated(share: Fraction, k: int) -> Fraction:
        return share if ((k + 1) * share).denominator == 1 else Fraction((k + 1) * share // 1, k)

    best = 0
    for k in range(1, 51):
        for threshold in sorted({0, *(length for length in lengths if length <= max_length // 2)}):
            total = Fraction(0)
            for length in lengths:
                if length > max_length - threshold:
                    total += 1
                elif length >= threshold:
                    total += inflated(Fraction(length, max_length), k)
            best = max(best, ceil(total))
    return best
