"""Patterns under construction as chains of runs, so that packs share the beginnings of what they hold."""

from __future__ import annotations

from array import array

import numpy as np

from brimful.patterns import Patterns

NO_RUN = -1


class Runs:
    """A run is some copies of one size; it knows the run before it in the same packs.

    Adding to a pack is one new run, however many sequences the pack holds already, and packs that part later keep
    their common beginning.

    Example:
        >>> runs = Runs()
        >>> first = runs.add(NO_RUN, size=1, copies=2)
        >>> runs.close(runs.add(first, size=7, copies=1), packs=3)
        >>> runs.close(first, packs=1)
        >>> list(runs.patterns())
        [((1, 1), 1), ((7, 1, 1), 3)]
    """

    def __init__(self) -> None:
        self._sizes, self._copies, self._before = array("q"), array("q"), array("q")
        self._last, self._packs = array("q"), array("q")

    def add(self, before: int, size: int, copies: int) -> int:
        """A new run of copies of this size, a whole number ≥ 1, behind another run or behind NO_RUN; its number."""
        self._sizes.append(size)
        self._copies.append(copies)
        self._before.append(before)
        return len(self._before) - 1

    def close(self, last: int, packs: int) -> None:
        """So many packs hold the runs up to this one, and nothing more."""
        self._last.append(last)
        self._packs.append(packs)

    def patterns(self) -> Patterns:
        """The closed packs, equal ones counted together; a pack holds each size in one run only.

        Cost: one vectorised step per run of the longest chain, and a sort.
        """
        before = np.array(self._before, np.int64)
        last = np.array(self._last, np.int64)
        pattern = np.arange(len(last))
        runs, owners = [last], [pattern]
        while len(last):
            last = before[last]
            pattern, last = pattern[last != NO_RUN], last[last != NO_RUN]
            runs.append(last)
            owners.append(pattern)
        run, owner = np.concatenate(runs), np.concatenate(owners)
        sizes = np.array(self._sizes, np.int64)[run]
        order = np.lexsort([-sizes, owner])
        return Patterns.merged(
            sizes[order],
            np.array(self._copies, np.int64)[run[order]],
            np.bincount(owner, minlength=len(self._last)),
            np.array(self._packs, np.int64),
        )
