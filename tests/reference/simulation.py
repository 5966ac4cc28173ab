"""Training on many devices, step by step: what each step costs, by listing all draws or by drawing many.

A cost is a function of a length, in rows of padding. A step costs what its costliest device does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

Cost = Callable[[int], float]


def expected_unpadded_step(lengths: Sequence[int], cost: Cost, batch_size: int, devices: int) -> float:
    """Over every draw of sequences, all equally likely, the mean cost of a step without padding."""
    steps = []
    for draw in product(lengths, repeat=batch_size * devices):
        batches = [draw[start : start + batch_size] for start in range(0, len(draw), batch_size)]
        steps.append(max(sum(cost(length) for length in batch) for batch in batches))
    return sum(steps) / len(steps)


def expected_grouped_row(lengths: Sequence[int], cost: Cost, step_size: int, steps: int) -> float:
    """Over every draw of a megabatch, the mean cost of a row when it is sorted and cut into steps."""
    rows = []
    for draw in product(lengths, repeat=step_size * steps):
        ordered = sorted(draw, reverse=True)
        longest = [ordered[start] for start in range(0, len(ordered), step_size)]
        rows.append(sum(map(cost, longest)) / steps)
    return sum(rows) / len(rows)


def sampled_steps(
    costs: Sequence[float], shares: Sequence[float], batch_size: int, devices: int, n: int, seed: int
) -> tuple[float, float]:
    """The mean cost of n steps on rows drawn at random with these shares, and its standard error."""
    random = np.random.default_rng(seed)
    steps = [
        random.choice(np.asarray(costs), size=(devices, batch_size), p=np.asarray(shares)).sum(axis=1).max()
        for _ in range(n)
    ]
    return float(np.mean(steps)), float(np.std(steps) / np.sqrt(n))


def sorted_rows(lengths: Sequence[int], cost: Cost, step_size: int) -> tuple[float, int]:
    """The mean cost of a row when the whole epoch is sorted, a last step by its rows; and the number of shapes."""
    ordered = sorted(lengths, reverse=True)
    steps = [ordered[start : start + step_size] for start in range(0, len(ordered), step_size)]
    return sum(cost(step[0]) * len(step) for step in steps) / len(ordered), len({step[0] for step in steps})


def sampled_shapes(lengths: Sequence[int], step_size: int, steps: int, megabatches: int, n: int, seed: int) -> float:
    """In how many shapes an epoch of sorted megabatches comes, the mean of n random epochs."""
    random = np.random.default_rng(seed)
    counts = []
    for _ in range(n):
        drawn = random.choice(np.asarray(lengths), size=(megabatches, steps * step_size))
        counts.append(len(np.unique(-np.sort(-drawn, axis=1)[:, ::step_size])))
    return float(np.mean(counts))


def budget_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Longest first, a sequence at a time: another batch when one more row would break the budget."""
    batches: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        if batches and (len(batches[-1]) + 1) * batches[-1][0] <= max_tokens:
            batches[-1].append(length)
        else:
            batches.append([length])
    return batches


def expected_maximum(values: Sequence[float], draws: int) -> float:
    """Over every draw of so many of the values, the mean of the greatest."""
    greatest = [max(draw) for draw in product(values, repeat=draws)]
    return sum(greatest) / len(greatest)
