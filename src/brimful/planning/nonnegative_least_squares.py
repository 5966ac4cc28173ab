"""Non-negative least squares histogram packing: full patterns fitted to the histogram, as published and extended."""

from __future__ import annotations

import math
import time
from typing import Literal

import numpy as np

from brimful.errors import SettingError, shown
from brimful.lengths import LengthHistogram
from brimful.patterns import Patterns
from brimful.planning.active_set import FullPatternFit, fit_full_patterns
from brimful.planning.full_patterns import Floats
from brimful.planning.longest_pack_first import lpfhp
from brimful.planning.problem import PackingProblem, Solution
from brimful.validation import is_number

PUBLISHED_DEPTH = 3
"""Most sequences in a pack where the problem sets no limit: what was published, and what keeps packs easy to mask."""

_MOST_SLOTS = 4096
_LEAST_WEIGHT = 0.001  # squares of smaller ones would be lost beside 1 in floating point

_SEQUENCES_OFF = 0.5  # how far a fit may be from the exact one, in sequences of weight 1
_TOKENS_OFF = 1e-4  # the same as a share of all tokens, where tokens are fitted

Leftovers = Literal["best_fit", "alone"]
Runs = tuple[tuple[int, int], ...]  # (length, copies), longest first


def nnlshp(
    problem: PackingProblem,
    offset: int = 8,
    weight: float | None = 0.09,
    leftovers: Leftovers = "best_fit",
) -> Solution:
    """Repeat the patterns that fill a pack exactly so that they hold, as nearly as can be, what there is to pack.

        4 × 7, 3 × 3, 1 × 2, max_length 10     patterns, of any lengths    [7 3] [7 2 1] [10] [8 2] …
                                               repeats (least squares)        3     1
        what they hold beyond the histogram    1 × 1  ->  stays empty      [7 3] [7 3] [7 3] [7 2 .]

    The repeats x ≥ 0 minimise ‖w (A x − b)‖²: column by column A has every pattern of at most max_sequences lengths
    from 1 to max_length that adds up to max_length, b is the histogram with 0 for lengths that do not occur, and w is
    `weight` for the short lengths, of which a pack may well be a few short: they are its padding. Then x is rounded to
    the nearest whole numbers. Sequences that patterns hold but the data do not are taken out and leave padding; packs
    that are then empty vanish. Sequences in excess of the patterns are packed among themselves.

    As published, leftovers go into packs of their own one by one (leftovers="alone"). By default they are packed by
    best fit, which never needs more packs, and does not hang on how the repeats happen to be rounded.

    Since patterns are full, this suits data that can fill packs. Where max_sequences sequences of usual length are far
    from max_length together, padding would have to be long, which the weights forbid: then `lpfhp` needs fewer packs.

    Args:
        problem: without a limit of its own, max_sequences is 3, as published.
        offset: the lengths from 1 to offset count as short, ≥ 0.
        weight: of the residual of short lengths, from 0.001 to 1; None for √(8 / (2 · max_length)), as for 512 slots.
        leftovers: "best_fit" or "alone".

    Returns:
        Patterns that cover the histogram exactly, whatever the rounding does.

    Raises:
        SettingError: an offset, a weight or a way with leftovers that there is not, or a max_length above 4096.

    Example:
        >>> histogram = LengthHistogram(np.array([2, 3, 7]), np.array([1, 3, 4]))
        >>> list(nnlshp(PackingProblem(histogram, max_length=10, max_sequences=3, lengths=None)).patterns)
        [((7, 2), 1), ((7, 3), 3)]

    Cost: independent of the number of sequences; one to a few seconds at max_length 512, most of it thousands of
    updates of a matrix of max_length² (see `fit_full_patterns`). Patterns are found by a knapsack as they are needed,
    never listed. The fit is exact to half a sequence (weighted, in the 2-norm over all lengths), or to the 14 digits or
    so of floating point; problem.time_limit ends it early, with a plan from the repeats so far.
    Source: arXiv 2107.02027, sections 3.1.2, F.4 and F.5; the solver: see `fit_full_patterns`.
    """
    weights = residual_weights(problem.max_length, offset, weight)
    return _pack(problem, weights, weights, _SEQUENCES_OFF, leftovers)


def ennlshp(problem: PackingProblem, padding_cost: float = 0.3, leftovers: Leftovers = "best_fit") -> Solution:
    """As `nnlshp`, but padding is part of the model: it has variables of its own, and tokens are what counts.

        min over x ≥ 0, y ≥ 0 of   Σ_l l² (A x − y − b)_l²  +  ε² Σ_l l² y_l²

    For every length l, y_l of the sequences that the patterns hold are padding and not expected in the data: a block −I
    beside A. The residual is weighted by the length, so that it is measured in tokens; it is then all but what is left
    over. The padding tokens l · y_l cost ε times as much, as a second block of rows: with ε = 0 all could be padding.

    For given x the best y has a closed form, y = max(A x − b, 0) / (1 + ε²), and leaves

        Σ_l l² (leftover_l² + κ² surplus_l²),     leftover − surplus = b − A x, both ≥ 0,     κ = ε / √(1 + ε²)

    so that it is least squares with one weight above and another one below, which the solver takes as it is.

    Args:
        problem: without a limit of its own, max_sequences is 3.
        padding_cost: ε from 0.05 to 10, what a padding token costs beside a token that is left over.
        leftovers: "best_fit", or "alone" for packs of their own.

    Returns:
        Patterns that cover the histogram exactly.

    Raises:
        SettingError: a padding_cost or a way with leftovers that there is not.

    Example:
        >>> histogram = LengthHistogram(np.array([2, 3, 7]), np.array([1, 3, 4]))
        >>> list(ennlshp(PackingProblem(histogram, max_length=10, max_sequences=3, lengths=None)).patterns)
        [((7, 2), 1), ((7, 3), 3)]

    Cost: 3 to 20 times that of `nnlshp`; better plans than it without a search for weights, unless nearly all can be
    packed full anyway. The fit is exact to a ten-thousandth of the tokens, or to half a pack.
    Source: arXiv 2107.02027, section F, names the extension; the formula is derived here.
    """
    if not is_number(padding_cost) or not 0.05 <= padding_cost <= 10:
        raise SettingError(f"padding_cost is a number from 0.05 to 10, not {shown(padding_cost)}")
    lengths = np.arange(1.0, problem.max_length + 1)
    padding = lengths * (padding_cost / math.hypot(1, padding_cost))
    within = max(_SEQUENCES_OFF * problem.max_length, _TOKENS_OFF * problem.histogram.n_tokens)
    return _pack(problem, lengths, padding, within, leftovers)


def residual_weights(max_length: int, offset: int, weight: float | None) -> Floats:
    """(max_length,) what a residual of each length from 1 up weighs: `weight` up to the offset, then 1.

    Raises:
        SettingError: an offset below 0, or a weight that is not from 0.001 to 1.

    Example:
        >>> residual_weights(max_length=5, offset=2, weight=0.09)
        array([0.09, 0.09, 1.  , 1.  , 1.  ])
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise SettingError(f"offset is a length up to which sequences are short, 0 or more, not {shown(offset)}")
    if weight is None:
        weight = min(1.0, math.sqrt(8 / (2 * max_length)))
    if not is_number(weight) or not _LEAST_WEIGHT <= weight <= 1:
        raise SettingError(f"weight is a number from {_LEAST_WEIGHT} to 1, or None, not {shown(weight)}")
    weights = np.ones(max_length)
    weights[:offset] = weight
    return weights


def _pack(
    problem: PackingProblem, leftover_weights: Floats, padding_weights: Floats, within: float, leftovers: Leftovers
) -> Solution:
    if leftovers not in ("best_fit", "alone"):
        raise SettingError(f'leftovers go into packs by "best_fit" or "alone", not {shown(leftovers)}')
    if problem.max_length > _MOST_SLOTS:
        raise SettingError(
            f"least squares take memory of max_length², and are for at most {_MOST_SLOTS} slots, not "
            f"{problem.max_length}; optimal packs better and goes further"
        )
    histogram, depth = problem.histogram, problem.max_sequences or PUBLISHED_DEPTH
    demand = np.zeros(problem.max_length)
    demand[histogram.lengths - 1] = histogram.counts
    deadline = math.inf if problem.time_limit is None else time.perf_counter() + problem.time_limit
    fit = fit_full_patterns(demand, leftover_weights, padding_weights, depth, within, deadline)
    fitted, left = _whole(fit, dict(zip(histogram.lengths.tolist(), histogram.counts.tolist(), strict=True)))
    lengths = np.array([length for length in sorted(left) if left[length]], np.int64)
    rest = LengthHistogram(lengths, np.array([left[length] for length in lengths.tolist()], np.int64))
    if leftovers == "best_fit":
        return Solution(fitted + lpfhp(PackingProblem(rest, problem.max_length, depth, None)).patterns)
    single = Patterns(rest.lengths, np.ones_like(rest.lengths), np.arange(len(lengths) + 1), rest.counts)
    return Solution(fitted + single)


def _whole(fit: FullPatternFit, left: dict[int, int]) -> tuple[Patterns, dict[int, int]]:
    """Whole numbers of packs that hold nothing but what there is; and what they leave over, by length.

    Whole numbers are Python's here: counts beyond 2^53 are exact, whatever floating point has made of the repeats.
    """
    packs: dict[Runs, int] = {}
    for copies, repeats in zip(fit.copies, np.rint(fit.repeats).tolist(), strict=True):
        places = np.flatnonzero(copies)[::-1]
        packs[tuple(zip((places + 1).tolist(), copies[places].tolist(), strict=True))] = int(repeats)
    surplus: dict[int, int] = {}
    for runs, count in packs.items():
        for length, copies in runs:
            surplus[length] = surplus.get(length, -left.get(length, 0)) + copies * count
    missing = {length: max(over, 0) for length, over in surplus.items()}
    for runs in packs:  # first whole packs of which everything is missing
        gone = min([packs[runs], *(missing[length] // copies for length, copies in runs)])
        packs[runs] -= gone
        for length, copies in runs:
            missing[length] -= gone * copies
    kept: dict[Runs, int] = {}
    for runs, count in packs.items():
        for present, n_packs in _without(runs, count, missing):
            kept[present] = kept.get(present, 0) + n_packs
    kept = {runs: count for runs, count in sorted(kept.items(), reverse=True) if runs and count}
    for runs, count in kept.items():
        for length, copies in runs:
            left[length] -= copies * count
    each = [run for runs in kept for run in runs]
    return (
        Patterns(
            np.array([length for length, _ in each], np.int64),
            np.array([copies for _, copies in each], np.int64),
            np.cumsum([0, *(len(runs) for runs in kept)]),
            np.array(list(kept.values()), np.int64),
        ),
        left,
    )


def _without(runs: Runs, count: int, missing: dict[int, int]) -> list[tuple[Runs, int]]:
    """`count` packs of these runs after as many of the missing sequences as they hold were taken out of them."""
    groups: list[tuple[Runs, int]] = [(runs, count)]
    for length, copies in runs:
        after: list[tuple[Runs, int]] = []
        for held, n_packs in groups:
            others = tuple(run for run in held if run[0] != length)
            bare = min(n_packs, missing[length] // copies)
            missing[length] -= bare * copies
            after.append((others, bare))
            if bare < n_packs and missing[length]:  # fewer than copies, out of one pack
                fewer = tuple((each, n - missing[length]) if each == length else (each, n) for each, n in held)
                missing[length] = 0
                after.append((fewer, 1))
                bare += 1
            after.append((held, n_packs - bare))
        groups = [(held, n_packs) for held, n_packs in after if n_packs]
    return groups
