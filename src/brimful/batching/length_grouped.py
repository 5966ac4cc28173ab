"""Index order of a length-grouped epoch: near-equal lengths share a batch, so that little is padded.

Sequences are shuffled, cut into megabatches, and sorted by length within each; batches are cut from that:

    lengths   2 7 3 9 8 1 | 4 6 5 ..      megabatches of 6
    sorted    9 8|7 3|2 1 | 6 5|4 ..      batches of 2

What chance decides is asked of the caller, as permutations, so that this arithmetic is the same for any generator.

Source: the published description of XTuner's LengthGroupedSampler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from brimful.batching.batches import longest_first_keys
from brimful.errors import LengthError, SettingError
from brimful.validation import IntArray, Lengths, one_of, validate_capacity, whole_numbers

Draw: TypeAlias = Callable[[int], IntArray]
"""Gives a random permutation of 0 … n − 1 for n; called in a fixed order, so that a seed fixes what comes out."""

ORDERS = ("shuffled", "xtuner")

_MOST_MEGABATCHES_OF_BATCHES = 50
_LEAST_MEGABATCHES = 4
_LONGEST = 2**31


def length_grouped_order(
    lengths: IntArray,
    draw: Draw,
    total_batch: int,
    mega_batch_mult: int | None = None,
    *,
    has_image: npt.NDArray[np.bool_] | None = None,
    order: str = "shuffled",
    round_up: bool = True,
) -> IntArray:
    """The indices of an epoch, of all ranks; rank r of w takes every w-th from the r-th on.

    Args:
        lengths: (sequences,) tokens, each ≥ 1; with has_image, of both kinds (see `split_signs`).
        draw: chance, as permutations.
        total_batch: sequences in a step of all ranks together, ≥ 1.
        mega_batch_mult: batches in a megabatch, ≥ 1; None for `default_mega_batch_mult`.
        has_image: (sequences,) True for those with images, which then share no megabatch with the others, except the
            last; None, or one kind only, groups all alike.
        order: how the groups follow each other:

            - xtuner: as the sorted megabatches stand, so that lengths fall in every one; the first index of all and
              the first of the megabatch with the longest sequence are swapped. The draws are those of XTuner: all
              sequences (or those with images, then those without, then the megabatches).
            - shuffled: the same groups, and no swap; the batch with the longest sequence comes first, so that memory
              fails at once if it will, and the other batches follow in random order (one more draw). A last batch that
              is not full stays the last.
        round_up: repeat some indices so that the last batch is full: with xtuner the first ones of the order; with
            shuffled the shortest of the first megabatch, which pad it no more.

    Returns:
        (n,) each index once, and with round_up up to total_batch − 1 of them once more (if there are fewer sequences
        than total_batch, as often as it takes). Padded tokens with shuffled are never more than with xtuner.

    Raises:
        LengthError: total_batch or mega_batch_mult is no whole number ≥ 1.
        SettingError: an order that there is not.

    Example:
        >>> lengths = np.array([2, 7, 3, 9, 8, 1])
        >>> order = length_grouped_order(lengths, np.arange, total_batch=2, mega_batch_mult=3, order="xtuner")
        >>> lengths[order].tolist()
        [9, 8, 7, 3, 2, 1]
        >>> order = length_grouped_order(lengths, lambda n: np.arange(n)[::-1], total_batch=2, mega_batch_mult=3)
        >>> lengths[order].tolist()
        [9, 8, 2, 1, 7, 3]

    Cost: one permutation, and a radix sort where lengths are below 2^16; a million indices take about 0.1 s.
    """
    one_of(order, "order", ORDERS)
    total_batch = validate_capacity(total_batch, "total_batch")
    if mega_batch_mult is None:
        mega_batch_mult = default_mega_batch_mult(len(lengths), total_batch)
    size = validate_capacity(mega_batch_mult, "mega_batch_mult") * total_batch
    if has_image is None or has_image.all() or not has_image.any():
        indices, starts = _sorted_megabatches(lengths, draw, size)
    else:
        indices, starts = _two_kinds(lengths, draw, size, has_image)
    if not len(indices):
        return indices
    missing = -len(indices) % total_batch if round_up else 0
    if order == "xtuner":
        _swap_first(indices, starts[np.argmax(lengths[indices[starts]])])
        return np.resize(indices, len(indices) + missing)
    first = indices[: starts[1] if len(starts) > 1 else None]
    if missing:
        indices = np.concatenate([indices, np.resize(first[-missing:], missing)])
    return _shuffled(indices, lengths, total_batch, draw)


def default_mega_batch_mult(n: int, total_batch: int) -> int:
    """Batches in a megabatch: as many as make four megabatches, at most 50, at least 1.

    Example:
        >>> [default_mega_batch_mult(n, total_batch=8) for n in (10, 100, 10_000)]
        [1, 3, 50]
    """
    return max(1, min(n // (total_batch * _LEAST_MEGABATCHES), _MOST_MEGABATCHES_OF_BATCHES))


def split_signs(lengths: Lengths, modality: Any = None) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Lengths ≥ 1, and which sequences have images: those of positive length, or those that modality says.

    Args:
        lengths: (sequences,) tokens; below 0 for text only, unless there is a modality.
        modality: (sequences,) 1 or True for a sequence with images, 0 or False for text only; None to go by the signs.

    Raises:
        LengthError: a length is 0, no whole number, 2^31 or more, or below 0 beside a modality.
        SettingError: modality is not one 0 or 1 for each sequence.

    Example:
        >>> split_signs([5, -3, 4])
        (array([5, 3, 4]), array([ True, False,  True]))
        >>> split_signs([5, 0])
        Traceback (most recent call last):
        brimful.errors.LengthError: a length is at least 1 token (below 0 for text only), but item 1 is 0; \
leave empty sequences out
    """
    signed = whole_numbers(lengths, "lengths").astype(np.int64)
    wrong = (signed == 0) | (signed <= -_LONGEST) | (signed >= _LONGEST)
    if modality is not None:
        wrong |= signed < 0
    if wrong.any():
        at = int(np.argmax(wrong))
        rule = "at least 1 token" + (" (below 0 for text only)" if modality is None else ", with a modality beside it")
        if abs(int(signed[at])) >= _LONGEST:
            rule, remedy = "below 2^31 tokens", "is it counted in tokens?"
        else:
            remedy = "leave empty sequences out" if signed[at] == 0 else "give signs or a modality, not both"
        raise LengthError(f"a length is {rule}, but item {at} is {signed[at]}; {remedy}")
    return np.abs(signed), signed > 0 if modality is None else _booleans(modality, len(signed))


def _booleans(modality: Any, n: int) -> npt.NDArray[np.bool_]:
    kinds = np.asarray(modality)
    if kinds.shape != (n,):
        raise SettingError(f"modality has one item for each of {n} sequences, not the shape {kinds.shape}")
    if kinds.dtype != bool and not (kinds.dtype.kind in "iu" and np.isin(kinds, (0, 1)).all()):
        raise SettingError("modality is 1 or True for a sequence with images and 0 or False for text only")
    return kinds.astype(bool)


def _sorted_megabatches(lengths: IntArray, draw: Draw, size: int) -> tuple[IntArray, IntArray]:
    """Shuffled indices, longest first in each megabatch (equal ones as they came), and where each of them starts."""
    shuffled = draw(len(lengths))
    starts = np.arange(0, len(shuffled), size)
    keys = longest_first_keys(lengths)[shuffled]
    full = len(shuffled) // size * size
    places = np.argsort(keys[:full].reshape(-1, size), axis=1, kind="stable") + starts[: full // size, None]
    rest = np.argsort(keys[full:], kind="stable") + full
    return shuffled[np.concatenate([places.ravel(), rest])], starts


def _two_kinds(lengths: IntArray, draw: Draw, size: int, has_image: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Megabatches of one kind in random order; the last of each kind, which may not be full, are one at the end."""
    full, last = [], []
    for kind in (has_image, ~has_image):
        ids = np.flatnonzero(kind)
        order, starts = _sorted_megabatches(lengths[ids], draw, size)
        full.append(ids[order[: starts[-1]]].reshape(-1, size))
        last.append(ids[order[starts[-1] :]])
    megabatches = np.concatenate(full)
    megabatches = megabatches[draw(len(megabatches))]
    together = np.concatenate(last)
    together = together[np.argsort(longest_first_keys(lengths[together]), kind="stable")]
    starts = np.arange(len(megabatches) + 1) * size
    return np.concatenate([megabatches.ravel(), together]), starts


def _shuffled(indices: IntArray, lengths: IntArray, total_batch: int, draw: Draw) -> IntArray:
    """Full batches in random order, the one with the longest sequence first; one that is not full stays the last."""
    n_full = len(indices) // total_batch
    if not n_full:
        return indices
    heads = lengths[indices[::total_batch]]  # the longest of each batch, whose megabatch is sorted
    longest = int(np.argmax(heads))
    if longest == n_full:
        _swap_first(indices, longest * total_batch)
        longest = 0
    order = draw(n_full)
    order = np.concatenate([[longest], order[order != longest]])
    full = n_full * total_batch
    return np.concatenate([indices[:full].reshape(n_full, total_batch)[order].ravel(), indices[full:]])


def _swap_first(indices: IntArray, place: int) -> None:
    indices[[0, place]] = indices[[place, 0]]
