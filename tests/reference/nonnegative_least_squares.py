"""Non-negative least squares with every pattern written out: what the solver that never lists them must agree with."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import lsq_linear, nnls


def full_patterns(max_length: int, max_sequences: int) -> list[tuple[int, ...]]:
    """Every way to write max_length as a sum of at most max_sequences lengths, smallest first."""
    return [
        lengths
        for many in range(1, max_sequences + 1)
        for lengths in itertools.combinations_with_replacement(range(1, max_length + 1), many)
        if sum(lengths) == max_length
    ]


def three_to_a_pack(max_length: int) -> list[tuple[int, ...]]:
    """`full_patterns` for 3, without trying what does not add up: for long packs."""
    ones: list[tuple[int, ...]] = [(max_length,)]
    twos: list[tuple[int, ...]] = [(a, max_length - a) for a in range(1, max_length // 2 + 1)]
    threes: list[tuple[int, ...]] = [
        (a, b, max_length - a - b) for a in range(1, max_length // 3 + 1) for b in range(a, (max_length - a) // 2 + 1)
    ]
    return ones + twos + threes


def packing_matrix(patterns: list[tuple[int, ...]], max_length: int) -> np.ndarray:
    """(max_length, patterns) how many sequences of each length a pattern holds."""
    matrix = np.zeros((max_length, len(patterns)))
    for column, lengths in enumerate(patterns):
        for length in lengths:
            matrix[length - 1, column] += 1
    return matrix


def published(matrix: np.ndarray, demand: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """(repeats, objective) of min ½ ‖w (A x − b)‖²."""
    repeats, _ = nnls(weights[:, None] * matrix, weights * demand, maxiter=100 * matrix.shape[1])
    residual = weights * (matrix @ repeats - demand)
    return repeats, float(residual @ residual) / 2


def extended(matrix: np.ndarray, demand: np.ndarray, padding_cost: float) -> tuple[np.ndarray, float]:
    """(repeats, objective) of min ½ ‖l (A x − y − b)‖² + ½ ‖ε l y‖², with the padding y as variables of their own."""
    lengths = np.diag(np.arange(1.0, len(demand) + 1))
    rows = np.block([[lengths @ matrix, -lengths], [np.zeros_like(matrix), padding_cost * lengths]])
    right = np.concatenate([lengths @ demand, np.zeros(len(demand))])
    # nnls of SciPy stops short of the optimum on some of these, by half a per cent of the objective.
    solution = lsq_linear(rows, right, (0, np.inf), method="bvls", tol=1e-14).x
    residual = rows @ solution - right
    return solution[: matrix.shape[1]], float(residual @ residual) / 2


def published_packs(matrix: np.ndarray, demand: np.ndarray, repeats: np.ndarray) -> int:
    """Packs when repeats are rounded, and what is left over goes into packs of its own."""
    whole = np.rint(repeats)
    return int(whole.sum() + np.maximum(demand - matrix @ whole, 0).sum())
