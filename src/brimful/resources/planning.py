"""plan_resources: from sizes in several resources to a plan."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from brimful.errors import SettingError, shown
from brimful.resources.fit import ALGORITHMS, PRIORITIES, fit
from brimful.resources.histogram import ResourceHistogram, require_fit
from brimful.resources.plan import ResourcePlan
from brimful.resources.sizes import validate_capacities
from brimful.validation import Lengths, validate_capacity


def plan_resources(
    data: ResourceHistogram | Mapping[str, Lengths],
    capacities: Mapping[str, int],
    max_sequences: int | None = None,
    algorithm: str = "best_fit",
    priority: str = "sum",
) -> ResourcePlan:
    """Decide which sizes share a pack when a pack has several capacities at once.

        tokens  9 2 3 7     capacities: 10 tokens       [9] [7 2] [3]
        images  0 2 1 0                  2 images   ->  [0] [0 2] [1]

    Args:
        data: a histogram; or for each resource (sequences,) whole numbers ≥ 0, one of each sequence above 0.
        capacities: for each resource what a pack holds of it, ≥ 1.
        max_sequences: most sequences in a pack, ≥ 1; None for no limit. It is treated as one more resource, of which
            every sequence needs 1.
        algorithm: which open pack takes a sequence, of those with space for it:

            - best_fit: the fullest, by the sum of the shares of the capacities that it has left;
            - first_fit: the one that was opened first.
        priority: which sequences are placed first: those with the greatest sum, max or product of the shares of the
            capacities that they need.

    Returns:
        A plan that covers the data exactly, with proven lower bounds. The same input gives the same plan.

    Raises:
        CapacityError: a size is above its capacity.
        LengthError: sizes, capacities or max_sequences that are no whole numbers in range.
        SettingError: a resource without a capacity, a capacity without a resource, an algorithm or priority that there
            is not.

    Example:
        >>> plan_resources({"tokens": [9, 2, 3, 7], "images": [0, 2, 1, 0]}, {"tokens": 10, "images": 2})
        ResourcePlan(best_fit, 4 sequences in 3 packs, efficiency 70.00% of tokens, 50.00% of images, at most 0.00% \
above the optimum)

    Cost: grows with the distinct sizes, not with the sequences: a few seconds for 50,000.
    Source: see `fit`.
    """
    require_known(algorithm, priority)
    if max_sequences is not None:
        max_sequences = validate_capacity(max_sequences, "max_sequences")
    started = time.perf_counter()
    histogram = data if isinstance(data, ResourceHistogram) else ResourceHistogram.from_sizes(data)
    limits = validate_capacities(histogram.names, capacities)
    require_fit(histogram, limits)
    sizes, most = histogram.sizes, np.array(limits, np.int64)
    if max_sequences is not None:
        sizes, most = np.column_stack([sizes, np.ones(len(sizes), np.int64)]), np.append(most, max_sequences)
    patterns = fit(sizes, histogram.counts, most, algorithm, priority)
    seconds = time.perf_counter() - started
    return ResourcePlan(histogram, limits, max_sequences, algorithm, priority, patterns, seconds)


def require_known(algorithm: str, priority: str) -> None:
    """Nothing, if there are such an algorithm and priority; otherwise a SettingError that lists those there are."""
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise SettingError(
            f"there is no algorithm {shown(algorithm)} for several resources; there are {', '.join(ALGORITHMS)}"
        )
    if not isinstance(priority, str) or priority not in PRIORITIES:
        raise SettingError(f"there is no priority {shown(priority)}; there are {', '.join(PRIORITIES)}")
