"""Timing of rival calls, turn by turn, so that a machine whose speed drifts treats all of them alike."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds that a call took, and what it returned: the number of packs, or None."""

    seconds: float
    packs: int | None


def take_turns(calls: Mapping[str, Callable[[], int | None]], turns: int) -> dict[str, Timing]:
    """Median seconds of each call, called in turn; the first round warms up and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    packs = {}
    for turn in range(turns + 1):
        for name, call in calls.items():
            gc.collect()
            os.sync()  # nobody waits for what another one wrote
            started = time.perf_counter()
            packs[name] = call()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return {name: Timing(statistics.median(seconds[name]), packs[name]) for name in calls}


def table(title: str, timings: Mapping[str, Timing], ours: str, n_sequences: int) -> list[str]:
    """A Markdown table: seconds, sequences per second, packs, and how many times longer than ours."""
    lines = [f"### {title}", "", "| what | seconds | sequences/s | packs | times as long as brimful |"]
    lines.append("|---|---:|---:|---:|---:|")
    for name, timing in timings.items():
        packs = "" if timing.packs is None else f"{timing.packs:,}"
        ratio = timing.seconds / timings[ours].seconds
        lines.append(f"| {name} | {timing.seconds:.3f} | {n_sequences / timing.seconds:,.0f} | {packs} | {ratio:.2f} |")
    return [*lines, ""]
