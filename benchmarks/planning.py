"""Plan and assign, beside LightBinPack (C++): how long, and how many packs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

import brimful
from benchmarks.lengths import from_histogram, log_normal
from benchmarks.measure import table, take_turns

TURNS = 5


def sections() -> Iterator[list[str]]:
    """A table for each set of lengths."""
    million = 10**6
    yield compare("10⁶ log-normal lengths, mean 199, max_length 512", log_normal(million, 165, 0.7, 512), 512)
    yield compare("10⁶ log-normal lengths, mean 886, max_length 8192", log_normal(million, 545, 1.0, 8192), 8192)
    uniform = np.random.default_rng(0).integers(1, 131_073, million)
    yield compare("10⁶ uniform lengths, max_length 131,072", uniform, 131_072)
    wikipedia = from_histogram("wikipedia_bert_512")
    if wikipedia is not None:
        yield compare("16.28 × 10⁶ Wikipedia lengths, max_length 512", wikipedia, 512, turns=2)


def compare(title: str, lengths: npt.NDArray[np.int64], max_length: int, turns: int = TURNS) -> list[str]:
    """brimful's plan + assign beside LightBinPack's fastest best-fit packers, given a list and given an array."""
    import lightbinpack

    as_list = lengths.tolist()

    def ours(algorithm: str) -> int:
        plan = brimful.plan(lengths, max_length, algorithm=algorithm)
        return brimful.assign(plan, lengths).packs

    timings = take_turns(
        {
            "brimful plan + assign, lpfhp": lambda: ours("lpfhp"),
            "brimful plan + assign, auto": lambda: ours("auto"),
            "brimful plan alone, lpfhp": lambda: brimful.plan(lengths, max_length, algorithm="lpfhp").packs,
            "lightbinpack obfd, list": lambda: len(lightbinpack.obfd(as_list, max_length)),
            "lightbinpack obfd, array": lambda: len(lightbinpack.obfd(lengths, max_length)),
            "lightbinpack obfdp (parallel), list": lambda: len(lightbinpack.obfdp(as_list, max_length)),
        },
        turns,
    )
    bound = brimful.plan(lengths, max_length).lower_bound
    return [
        *table(title, timings, "brimful plan + assign, lpfhp", len(lengths)),
        f"Proven lower bound: {bound:,} packs.",
        "",
    ]
