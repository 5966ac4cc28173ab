"""Sorted sequences cut into batches: as few as can be, or with the least padding for a number of batches."""

from __future__ import annotations

import numpy as np

from brimful.errors import SettingError
from brimful.validation import IntArray, require_positive, validate_capacity

_MOST_CELLS = 2**20  # of a table of choices that is worked out at once
_NEVER = 2**62  # more than any padding


def fewest_batches(fits: IntArray, size_multiple: int = 1) -> IntArray:
    """Sizes of batches that take as many sequences as fit, one batch after the other.

    Args:
        fits: (sequences,) how many sequences fit into a batch that starts with this one, ≥ 1; longest first, so it
            never falls.
        size_multiple: a batch holds a multiple of so many, ≥ 1, unless fewer fit or fewer are left.

    Returns:
        (batches,) sequences in each batch; without a multiple, no way to cut the sequences gives fewer batches.

    Raises:
        LengthError: a sequence of which not one fits.

    Example:
        >>> fewest_batches(np.array([1, 3, 3, 3, 5, 5]))
        array([1, 3, 2])
        >>> fewest_batches(np.array([1, 3, 3, 3, 5, 5]), size_multiple=2)
        array([1, 2, 2, 1])

    Cost: a step for each batch.
    """
    require_positive(fits, "number of sequences that fit")
    most, sizes = fits.tolist(), []
    start, n = 0, len(fits)
    while start < n:
        size = min(most[start], n - start)
        if size > size_multiple:
            size -= size % size_multiple
        sizes.append(size)
        start += size
    return np.array(sizes, np.int64)


def least_padding(rows: IntArray, fits: IntArray, n_batches: int, size_multiple: int = 1) -> IntArray:
    """Sizes of exactly so many batches with as few padded tokens as there can be.

        rows 8 2 2 2 2, fits 2 8 8 8 8    as many as fit: [8 2] [2 2 2], 22 tokens    least: [8] [2 2 2 2], 16 tokens

    What the first b batches cost, if they hold the first j sequences, follows from the same for b − 1. Only those j are
    looked at from which b batches can have come and the others can get to the end.

    Args:
        rows: (sequences,) tokens of each as it would be alone, longest first.
        fits: (sequences,) how many sequences fit into a batch that starts with this one, ≥ 1; never falls.
        n_batches: batches, ≥ 1.
        size_multiple: as in `fewest_batches`.

    Returns:
        (n_batches,) sequences in each batch.

    Raises:
        SettingError: there is no way to cut them into so many batches.
        LengthError: n_batches is no whole number ≥ 1.

    Example:
        >>> least_padding(np.array([8, 2, 2, 2, 2]), np.array([2, 8, 8, 8, 8]), n_batches=2)
        array([1, 4])

    Cost: for each batch, (how many j there are) × (sequences in a batch). With the fewest batches there are few j; with
    twice as many, nearly all of them.
    Source: dynamic programming; folklore.
    """
    n = len(rows)
    n_batches = validate_capacity(n_batches, "n_batches")
    first, last = _bands(fits, n_batches)
    if n_batches > n or first[0] > 0 or last[-1] < n:
        raise SettingError(
            f"{n} sequences make from {len(fewest_batches(fits))} to {n} batches within the budget, not {n_batches}"
        )
    paid = np.zeros(1, np.int64)  # [j − first]: the least that the batches so far cost if they hold j sequences
    choices = []
    for batch in range(n_batches):
        ends = np.arange(first[batch + 1], last[batch + 1] + 1)
        most = int(min(fits[last[batch]], ends[-1] - first[batch]))
        parts = np.array_split(ends, -(-len(ends) * most // _MOST_CELLS))
        found = [_last_batch(part, most, paid, int(first[batch]), rows, fits, size_multiple) for part in parts]
        paid, sizes = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        choices.append(sizes)
    if paid[-1] >= _NEVER:
        raise SettingError(
            f"{n} sequences do not make {n_batches} batches of multiples of {size_multiple}; try another number"
        )
    cut = np.empty(n_batches, np.int64)
    end = n
    for batch in reversed(range(n_batches)):
        cut[batch] = choices[batch][end - first[batch + 1]]
        end -= int(cut[batch])
    return cut


def _bands(fits: IntArray, n_batches: int) -> tuple[IntArray, IntArray]:
    """(n_batches + 1,) the fewest and the most sequences that the first b batches can hold, if all are to be held."""
    n = len(fits)
    reach = np.arange(n) + fits
    first, last = np.empty(n_batches + 1, np.int64), np.empty(n_batches + 1, np.int64)
    first[-1], last[0] = n, 0
    for batch in range(n_batches):
        last[batch + 1] = min(reach[last[batch]], n) if last[batch] < n else n
        first[-2 - batch] = np.searchsorted(reach, first[-1 - batch])
    batches = np.arange(n_batches + 1)
    return np.maximum(first, batches), np.minimum(last, n - n_batches + batches)


def _last_batch(
    ends: IntArray, most: int, paid: IntArray, first: int, rows: IntArray, fits: IntArray, size_multiple: int
) -> tuple[IntArray, IntArray]:
    """For each place where a batch may end: the least that it can have cost up to there, and the size that does it."""
    sizes = np.arange(1, most + 1)
    starts = ends[:, None] - sizes
    known = (starts >= first) & (starts < first + len(paid))
    starts = np.clip(starts, first, first + len(paid) - 1)
    n_fit = fits[starts]
    allowed = known & (sizes <= n_fit)
    if size_multiple > 1:
        few = (n_fit < size_multiple) | ((ends[:, None] == len(rows)) & (sizes < size_multiple))
        allowed &= (sizes % size_multiple == 0) | few
    costs = np.where(allowed, paid[starts - first] + rows[starts] * sizes, _NEVER)
    best = costs.argmin(axis=1)
    return np.minimum(costs[np.arange(len(ends)), best], _NEVER), sizes[best]
