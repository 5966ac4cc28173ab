"""Batching one index at a time: the sampler that the reference text describes, and what is best by trying all ways.

`draw(n)` stands for chance: it gives a permutation of 0 … n − 1 as a list.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

Draw = Callable[[int], list[int]]


# The sampler of the reference text


def described_order(lengths: Sequence[int], group_size: int, draw: Draw) -> list[int]:
    """All indices: shuffled, cut into megabatches, sorted downwards; and the longest sample is put first.

    Positive lengths are those of samples with images. If there are both kinds, each is grouped alone, the last
    megabatch of each is kept back, the others are shuffled, and what was kept back comes last as one.
    """
    assert all(length != 0 for length in lengths)
    images = [index for index, length in enumerate(lengths) if length > 0]
    texts = [index for index, length in enumerate(lengths) if length < 0]
    if images and texts:
        *image_groups, last_images = described_megabatches(images, lengths, group_size, draw)
        *text_groups, last_texts = described_megabatches(texts, lengths, group_size, draw)
        groups = image_groups + text_groups
        megabatches = [groups[number] for number in draw(len(groups))]
        megabatches.append(longest_first(last_images + last_texts, lengths))
    else:
        megabatches = described_megabatches(list(range(len(lengths))), lengths, group_size, draw)
    if megabatches:
        longest = [abs(lengths[megabatch[0]]) for megabatch in megabatches]
        at = longest.index(max(longest))
        megabatches[0][0], megabatches[at][0] = megabatches[at][0], megabatches[0][0]
    return [index for megabatch in megabatches for index in megabatch]


def described_megabatches(ids: list[int], lengths: Sequence[int], group_size: int, draw: Draw) -> list[list[int]]:
    """Groups of shuffled ids, each sorted by length downwards."""
    shuffled = [ids[place] for place in draw(len(ids))]
    groups = [shuffled[start : start + group_size] for start in range(0, len(shuffled), group_size)]
    return [longest_first(group, lengths) for group in groups]


def longest_first(ids: list[int], lengths: Sequence[int]) -> list[int]:
    """Downwards by absolute length, equal ones as they stand."""
    return sorted(ids, key=lambda index: abs(lengths[index]), reverse=True)


def described_default(n: int, total_batch: int) -> int:
    """mega_batch_mult where none is given."""
    return min(n // (total_batch * 4), 50) or 1


def described_rank(
    lengths: Sequence[int], batch_size: int, rank: int, world: int, mult: int | None, round_up: bool, draw: Draw
) -> list[int]:
    """The indices of one rank."""
    n, total_batch = len(lengths), batch_size * world
    mult = described_default(n, total_batch) if mult is None else mult
    indices = described_order(lengths, mult * total_batch, draw)
    if round_up:
        total = math.ceil(math.ceil(n / world) / batch_size) * batch_size * world
        indices = (indices * (total // len(indices) + 1))[:total] if indices else []
    return indices[rank : len(indices) : world]


# Padding


def in_batches(indices: Sequence[int], batch_size: int) -> list[list[int]]:
    """As a DataLoader cuts what a sampler gives."""
    return [list(indices[start : start + batch_size]) for start in range(0, len(indices), batch_size)]


def padded_tokens(batches: Sequence[Sequence[int]], lengths: Sequence[int]) -> int:
    """What the device computes: in every batch, the longest × how many."""
    return sum(max(abs(lengths[index]) for index in batch) * len(batch) for batch in batches)


# Batches under a budget


def budget_batches(
    lengths: Sequence[int], max_tokens: int, max_sequences: int | None, size_multiple: int = 1, length_multiple: int = 1
) -> list[list[int]]:
    """Longest first, one sequence more while the batch fits; then back to a multiple, if there is one."""
    left = sorted(range(len(lengths)), key=lambda index: -(math.ceil(lengths[index] / length_multiple)))
    batches = []
    while left:
        row = math.ceil(lengths[left[0]] / length_multiple) * length_multiple
        size = 1
        while size < len(left) and row * (size + 1) <= max_tokens and (max_sequences is None or size < max_sequences):
            size += 1
        while size > size_multiple and size % size_multiple:
            size -= 1
        batches.append(left[:size])
        left = left[size:]
    return batches


def contiguous_partitions(n: int, n_batches: int) -> Iterator[list[int]]:
    """Every way to cut n things into so many batches, as sizes."""
    for cuts in itertools.combinations(range(1, n), n_batches - 1):
        yield [end - start for start, end in itertools.pairwise([0, *cuts, n])]


def least_padded(rows: Sequence[int], fits: Sequence[int], n_batches: int) -> int | None:
    """The fewest padded tokens of rows, longest first, in so many batches; None if there is no way."""
    best: int | None = None
    for sizes in contiguous_partitions(len(rows), n_batches):
        starts = [0, *itertools.accumulate(sizes)][:-1]
        if all(size <= fits[start] for size, start in zip(sizes, starts, strict=True)):
            cost = sum(rows[start] * size for size, start in zip(sizes, starts, strict=True))
            best = cost if best is None else min(best, cost)
    return best


# Groups of equal cost


def least_heaviest(
    costs: Sequence[int], k: int, capacity: float = math.inf, sizes: Sequence[int] | None = None, equal: bool = False
) -> int | None:
    """The least cost that the costliest of k groups can have, by trying all of them; None if there is no way."""
    best: int | None = None
    for choice in itertools.product(range(k), repeat=len(costs)):
        groups = [[item for item, group in enumerate(choice) if group == number] for number in range(k)]
        if equal and max(map(len, groups)) - min(map(len, groups)) > 1:
            continue
        if max(sum((sizes or costs)[item] for item in group) for group in groups) > capacity:
            continue
        heaviest = max(sum(costs[item] for item in group) for group in groups)
        best = heaviest if best is None else min(best, heaviest)
    return best


def longest_processing_time(costs: Sequence[float], k: int, equal: bool = False) -> float:
    """The cost of the costliest group when each item, costliest first, goes where it makes the least."""
    groups: list[list[float]] = [[] for _ in range(k)]
    for number, cost in enumerate(sorted(costs, reverse=True)):
        left = len(costs) - number
        allowed = [
            group
            for group in groups
            if not equal or _can_be_equal([len(other) + (other is group) for other in groups], left - 1)
        ]
        min(allowed, key=sum).append(cost)
    return max(map(sum, groups))


def _can_be_equal(sizes: list[int], left: int) -> bool:
    """Whether groups of these sizes can still become equal, but for one, with so many items more."""
    least, rest = divmod(sum(sizes) + left, len(sizes))
    return max(sizes) <= least + (rest > 0) and sum(size > least for size in sizes) <= rest
