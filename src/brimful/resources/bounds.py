"""How few packs can do with several capacities: each resource by itself, and all of them in one weighted sum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import LowerBound, lower_bound
from brimful.resources.histogram import ResourceHistogram
from brimful.validation import MAX_TOKENS, IntArray

_FINEST = 2**30


def resource_bounds(histogram: ResourceHistogram, capacities: tuple[int, ...]) -> dict[str, LowerBound]:
    """For each resource the packs that it alone makes necessary, as if the others did not matter.

    Args:
        histogram: the sequences to pack.
        capacities: (resources,) what a pack holds of each, in the order of the histogram's names.

    Raises:
        CapacityError: a size is above its capacity.

    Example:
        >>> histogram = ResourceHistogram.from_sizes({"tokens": [6, 6, 3, 3], "images": [0, 0, 2, 2]})
        >>> resource_bounds(histogram, (10, 3))
        {'tokens': LowerBound(packs=2, kind='total'), 'images': LowerBound(packs=2, kind='total')}

    Cost: that of `lower_bound` for each resource.
    """
    return {
        name: _bound(histogram.of(name), capacity) for name, capacity in zip(histogram.names, capacities, strict=True)
    }


def combined_bound(
    histogram: ResourceHistogram,
    capacities: tuple[int, ...],
    max_sequences: int | None,
    by_resource: Mapping[str, LowerBound],
) -> LowerBound:
    """The best bound there is: of one resource, of max_sequences, or of all resources together.

    Raises:
        CapacityError: a size is above its capacity.

    Example:
        >>> histogram = ResourceHistogram.from_sizes({"tokens": [9, 9, 2, 2], "images": [2, 2, 9, 9]})
        >>> alone = resource_bounds(histogram, (10, 10))
        >>> alone["tokens"].packs, alone["images"].packs
        (3, 3)
        >>> combined_bound(histogram, (10, 10), None, alone)  # 9 + 2 > 20 / 2: every one needs its own pack
        LowerBound(packs=4, kind='martello-toth for all resources')
    """
    bounds = [LowerBound(bound.packs, f"{bound.kind} for {name}") for name, bound in by_resource.items()]
    sizes, capacity = histogram.sizes, np.array(capacities, np.int64)
    if max_sequences is not None:
        bounds.append(LowerBound(-(-histogram.n_sequences // max_sequences), "max_sequences"))
        sizes = np.column_stack([sizes, np.ones(len(sizes), np.int64)])
        capacity = np.append(capacity, max_sequences)
    bounds.append(_weighted_bound(sizes, histogram.counts, capacity))
    return max(bounds, key=lambda bound: bound.packs)


def _weighted_bound(sizes: IntArray, counts: IntArray, capacities: IntArray) -> LowerBound:
    """All resources as one: a size counts the weighted sum of its numbers, a pack that of its capacities.

    A pack that keeps every capacity keeps their weighted sum, whatever the weights, so every bound for one resource
    holds for the sum. The weights are whole, and about as large as makes the capacities equal: nothing is rounded.
    """
    needed = sum(-(-total // capacity) for total, capacity in zip((counts @ sizes).tolist(), capacities, strict=True))
    unit = min(_FINEST, (MAX_TOKENS - 1) // max(1, int(needed))) // len(capacities)
    weights = unit // capacities
    lengths, capacity = sizes @ weights, int(capacities @ weights)
    some = lengths > 0
    if not some.any():
        return LowerBound(0, "total for all resources")
    bound = _bound(LengthHistogram.from_counts(lengths[some], counts[some]), capacity)
    return LowerBound(bound.packs, f"{bound.kind} for all resources")


def _bound(histogram: LengthHistogram, capacity: int) -> LowerBound:
    """The best bound for one resource, which need not be tokens."""
    bound = lower_bound(histogram, capacity)
    return LowerBound(bound.packs, "total" if bound.kind == "tokens" else bound.kind)
