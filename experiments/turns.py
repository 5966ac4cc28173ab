"""Seconds of rival ways of training, taken in turns, so that a machine whose speed drifts treats all of them alike."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

Step = Callable[[], object]
"""Makes one batch, and trains on it."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast as another: the median over the turns, and the least and most of them."""

    median: float
    least: float
    most: float


def in_turns(ways: Mapping[str, Sequence[Step]], turns: int) -> dict[str, list[float]]:
    """For each way the seconds of all of its steps, once for every turn.

        steps of a   1       2       3       4      in this order: a1 b1 a2 a3 b2 a4
        steps of b       1               2

    Within a turn the ways are always about as far in their work, so that each of them meets the machine's slow times.
    Before the first turn every way does its first step once, which is not counted.

    Args:
        ways: the steps of each way, in order; all of them do the same work together.
        turns: how often all the work is done, ≥ 1.
    """
    for steps in ways.values():
        steps[0]()
    ordered = sorted(
        (
            ((number + 0.5) / len(steps), name, step)
            for name, steps in ways.items()
            for number, step in enumerate(steps)
        ),
        key=lambda each: each[0],
    )
    seconds: dict[str, list[float]] = {name: [0.0] * turns for name in ways}
    for turn in range(turns):
        gc.collect()
        for _, name, step in ordered:
            started = perf_counter()
            step()
            seconds[name][turn] += perf_counter() - started
    return seconds


def times_as_fast(than: Sequence[float], seconds: Sequence[float]) -> Ratio:
    """How many times as fast something is, turn by turn.

    Args:
        than: (turns,) seconds of what it is compared with.
        seconds: (turns,) its own seconds, of the same turns.

    Example:
        >>> times_as_fast([4.0, 6.0, 4.4], [2.0, 2.0, 2.0])
        Ratio(median=2.2, least=2.0, most=3.0)
    """
    ratios = [other / own for other, own in zip(than, seconds, strict=True)]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))
