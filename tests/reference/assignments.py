"""What an assignment promises, checked sequence by sequence, and how evenly chance is spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def packs_of(sequence_ids: Sequence[int], pack_offsets: Sequence[int]) -> list[list[int]]:
    """The ids in each pack."""
    return [
        [sequence_ids[slot] for slot in range(pack_offsets[pack], pack_offsets[pack + 1])]
        for pack in range(len(pack_offsets) - 1)
    ]


def check_assignment(
    packs: list[list[int]], lengths: Sequence[int], patterns: Iterable[tuple[tuple[int, ...], int]]
) -> None:
    """Every sequence exactly once; every pack a pattern of the plan, as often as planned; the longest first."""
    assert sorted(sequence for pack in packs for sequence in pack) == list(range(len(lengths)))
    filled = [tuple(lengths[sequence] for sequence in pack) for pack in packs]
    for pack in filled:
        assert list(pack) == sorted(pack, reverse=True)
    planned: Counter[tuple[int, ...]] = Counter()
    for pattern, count in patterns:
        planned[pattern] += count
    assert Counter(filled) == planned


def unevenness(table: Sequence[Sequence[float]]) -> float:
    """χ² per degree of freedom of a square table of how often each item was in each place; about 1 for pure chance.

    Every row and every column of such a table has the same sum, so n × n cells have (n − 1)² degrees of freedom.
    A choice that is not fair gives much more than 1; one that takes turns instead of drawing gives much less.
    """
    n = len(table)
    expected = sum(map(sum, table)) / n**2
    return sum((cell - expected) ** 2 / expected for row in table for cell in row) / (n - 1) ** 2
