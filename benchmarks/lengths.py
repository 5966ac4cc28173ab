"""The lengths that benchmarks pack: drawn from log-normal distributions, or from a real histogram."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful import LengthHistogram

HISTOGRAMS = Path(__file__).resolve().parents[2] / "shared" / "data" / "histograms"


def log_normal(n_sequences: int, median: float, spread: float, max_length: int) -> npt.NDArray[np.int64]:
    """(n_sequences,) lengths from 1 to max_length whose logarithms are normal."""
    drawn = np.random.default_rng(0).lognormal(np.log(median), spread, n_sequences)
    return np.clip(drawn, 1, max_length).astype(np.int64)


def from_histogram(name: str) -> npt.NDArray[np.int64] | None:
    """(sequences,) the lengths of a real dataset in random order; None where its histogram is not at hand."""
    path = HISTOGRAMS / f"{name}.csv"
    if not path.exists():
        return None
    histogram = LengthHistogram.from_csv(path)
    lengths: npt.NDArray[np.int64] = np.repeat(histogram.lengths, histogram.counts)
    np.random.default_rng(0).shuffle(lengths)
    return lengths


def token_table(lengths: npt.NDArray[np.int64]) -> Any:
    """A pyarrow.Table with input_ids (int32, skewed like words are) and labels of these lengths."""
    import pyarrow as pa

    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    ids = pa.array((np.random.default_rng(0).zipf(1.3, int(lengths.sum())) % 30_522).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, ids)
    return pa.table({"input_ids": lists, "labels": lists})
