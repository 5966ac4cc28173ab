"""Non-negative least squares: brimful's, which lists no patterns, beside SciPy's on the matrix of all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from benchmarks.lengths import HISTOGRAMS
from benchmarks.measure import table, take_turns
from brimful import LengthHistogram
from brimful.planning.nonnegative_least_squares import ennlshp, nnlshp, residual_weights
from brimful.planning.problem import PackingProblem


def sections() -> Iterator[list[str]]:
    """One table, where the histogram is at hand."""
    path = HISTOGRAMS / "wikipedia_bert_512.csv"
    if path.exists():
        yield compare(
            "16.28 × 10⁶ Wikipedia lengths, max_length 512, 3 sequences a pack", LengthHistogram.from_csv(path)
        )


def compare(title: str, histogram: LengthHistogram, max_length: int = 512) -> list[str]:
    """Seconds and packs of both, leftovers alone as published, and of what goes beyond; one turn after a warm-up."""
    demand = np.zeros(max_length)
    demand[histogram.lengths - 1] = histogram.counts

    def problem(max_sequences: int) -> PackingProblem:
        return PackingProblem(histogram, max_length, max_sequences, None)

    timings = take_turns(
        {
            "brimful nnlshp": lambda: nnlshp(problem(3)).patterns.packs,
            "brimful nnlshp, leftovers alone": lambda: nnlshp(problem(3), leftovers="alone").patterns.packs,
            "scipy.optimize.nnls, leftovers alone": lambda: with_scipy(demand, max_length),
            "brimful nnlshp, 8 sequences a pack": lambda: nnlshp(problem(8)).patterns.packs,
            "brimful ennlshp": lambda: ennlshp(problem(3)).patterns.packs,
        },
        turns=1,
    )
    return table(title, timings, "brimful nnlshp", histogram.n_sequences)


def with_scipy(demand: npt.NDArray[np.float64], max_length: int) -> int:
    """Packs of the published way: every pattern of up to 3 lengths a column, repeats rounded, leftovers alone."""
    from scipy.optimize import nnls

    patterns = [(0, 0, max_length)]
    patterns += [(0, a, max_length - a) for a in range(1, max_length // 2 + 1)]
    for a in range(1, max_length // 3 + 1):
        patterns += [(a, b, max_length - a - b) for b in range(a, (max_length - a) // 2 + 1)]
    matrix = np.zeros((max_length + 1, len(patterns)))
    np.add.at(matrix, (np.array(patterns), np.arange(len(patterns))[:, None]), 1.0)
    matrix = matrix[1:]
    weights = residual_weights(max_length, 8, 0.09)
    repeats, _ = nnls(weights[:, None] * matrix, weights * demand, maxiter=10 * matrix.shape[1])
    whole = np.rint(repeats)
    return int(whole.sum() + np.maximum(demand - matrix @ whole, 0).sum())
