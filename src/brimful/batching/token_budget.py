"""Batches that fill a budget of tokens as the device counts them: the longest sequence × how many there are."""

from __future__ import annotations

import numpy as np

from brimful.batching.batches import Batches, longest_first_keys
from brimful.batching.contiguous import fewest_batches, least_padding
from brimful.errors import CapacityError
from brimful.validation import IntArray, Lengths, aligned, one_of, validate_capacity, validate_lengths

PARTITIONS = ("greedy", "optimal")
OVERSIZE = ("error", "alone")


def token_budget_batches(
    lengths: Lengths,
    max_tokens: int,
    max_sequences: int | None = None,
    *,
    bucket: int | None = None,
    random: np.random.Generator | None = None,
    size_multiple: int = 1,
    length_multiple: int = 1,
    oversize: str = "error",
    partition: str = "greedy",
) -> Batches:
    """Sort sequences by length, and cut batches that the device can compute within the budget.

        lengths 10 1 1 1, max_tokens 13    ->    [10] and [1 1 1]: together they would be 4 rows of 10 tokens

    Args:
        lengths: (sequences,) tokens, each ≥ 1.
        max_tokens: most tokens of a batch, padding included, ≥ 1.
        max_sequences: most sequences of a batch, ≥ 1; None for no limit.
        bucket: so many sequences, taken at random, are sorted and cut together, ≥ 1: more of them pad less, fewer give
            more varied company. None for all.
        random: chance for buckets, for which of equal sequences come together, and for the order of the batches;
            None leaves all in order: longest first.
        size_multiple: a batch holds a multiple of so many sequences, ≥ 1, unless fewer fit or fewer are left.
        length_multiple: the collator pads rows to a multiple of so many tokens, ≥ 1; the budget counts that.
        oversize: a sequence over the budget is an "error" that names it, or "alone" in a batch.
        partition: "greedy" takes as many as fit, which gives the fewest batches there can be; "optimal" has as many
            batches but the least padding (see `least_padding`).

    Returns:
        Every sequence once, in batches within budget (but for those alone); no batch is empty.

    Raises:
        CapacityError: a sequence alone is over the budget.
        LengthError: a length or a limit is no whole number ≥ 1.
        SettingError: an oversize or partition that there is not.

    Example:
        >>> token_budget_batches([10, 1, 1, 1], max_tokens=13).to_lists()
        [[0], [1, 2, 3]]
        >>> token_budget_batches([8, 2, 2, 2, 2], max_tokens=16).to_lists()  # 22 tokens
        [[0, 1], [2, 3, 4]]
        >>> token_budget_batches([8, 2, 2, 2, 2], max_tokens=16, partition="optimal").to_lists()  # 16 tokens
        [[0], [1, 2, 3, 4]]

    Cost: a radix sort where rows are below 2^16, and a step for each batch: a million sequences in 50,000 batches take
    about 0.1 s greedily.
    """
    array = validate_lengths(lengths).astype(np.int64)
    one_of(oversize, "oversize", OVERSIZE)
    one_of(partition, "partition", PARTITIONS)
    rows = aligned(array, validate_capacity(length_multiple, "length_multiple"))
    fits = _fits(array, rows, max_tokens, max_sequences, oversize)
    multiple = validate_capacity(size_multiple, "size_multiple")
    bucket = max(len(array), 1) if bucket is None else validate_capacity(bucket, "bucket")
    order = np.arange(len(array)) if random is None else random.permutation(len(array))
    keys = longest_first_keys(rows)
    ids, sizes = [], []
    for start in range(0, len(array), bucket):
        some = order[start : start + bucket]
        some = some[np.argsort(keys[some], kind="stable")]
        cut = fewest_batches(fits[some], multiple)
        if partition == "optimal":
            cut = least_padding(rows[some], fits[some], len(cut), multiple)
        ids.append(some)
        sizes.append(cut)
    if not ids:
        return Batches(np.zeros(0, np.int64), np.zeros(1, np.int64))
    batches = Batches(np.concatenate(ids), np.append(0, np.cumsum(np.concatenate(sizes))))
    return batches if random is None else batches.take(random.permutation(len(batches)))


def _fits(lengths: IntArray, rows: IntArray, max_tokens: int, max_sequences: int | None, oversize: str) -> IntArray:
    """(sequences,) how many sequences fit into a batch of which this one is the longest, ≥ 1."""
    max_tokens = validate_capacity(max_tokens, "max_tokens")
    fits = max_tokens // rows
    if oversize == "error" and len(fits) and not fits.min():
        at = int(np.argmin(fits))
        padded = f" ({rows[at]} when padded)" if rows[at] > lengths[at] else ""
        raise CapacityError(
            f"sequence {at} has {lengths[at]} tokens{padded}, more than max_tokens {max_tokens} "
            f"({int((fits == 0).sum())} of {len(fits)} sequences are over the budget); "
            "raise max_tokens, shorten them, or choose oversize='alone'"
        )
    if max_sequences is not None:
        fits = np.minimum(fits, validate_capacity(max_sequences, "max_sequences"))
    return np.maximum(fits, 1)
