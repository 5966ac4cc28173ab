"""Packs under construction: found by the space that they have left, filled many at a time, then read as patterns."""

from __future__ import annotations

from array import array

import numpy as np

from brimful.patterns import Patterns

_BLOCK_BITS = 9
_BLOCK_MASK = (1 << _BLOCK_BITS) - 1
_NO_RUN = -1


class OpenPacks:
    """Groups of equal packs by the token slots that each has left; last in, first out among equals.

    Two ideas make each step about a microsecond, whatever the number of sequences or slots:

    - A Python integer is a quick set of small numbers. Bit s of a block says whether a pack with s slots left is open;
      a second integer says which blocks have any.
    - Packs share the beginnings of their patterns. A run (copies of one length) knows the run before it, so adding to
      a pack is one new run, however many sequences the pack holds already.

    Example:
        >>> packs = OpenPacks(max_length=10, max_sequences=3)
        >>> packs.open(6, copies=1, count=2)  # [6....] twice
        >>> packs.tightest(3), packs.tightest(5)
        (4, 0)
        >>> packs.fill(4, length=3, count=5)  # 3 fits once into each
        2
        >>> list(packs.patterns())
        [((6, 3), 2)]
    """

    def __init__(self, max_length: int, max_sequences: int | None) -> None:
        self._max_length = max_length
        self._max_sequences = max_sequences or max_length
        self._groups: dict[int, list[tuple[int, int, int]]] = {}  # space -> (packs, sequences in each, last run)
        self._blocks = [0] * ((max_length >> _BLOCK_BITS) + 1)
        self._used_blocks = 0
        self._run_lengths, self._run_copies, self._run_before = array("q"), array("q"), array("q")
        self._closed_runs, self._closed_counts = array("q"), array("q")

    def tightest(self, length: int) -> int:
        """The least space ≥ length that an open pack has; 0 if there is none."""
        block = length >> _BLOCK_BITS
        bits = self._blocks[block] >> (length & _BLOCK_MASK)
        if bits:
            return length + (bits & -bits).bit_length() - 1
        later = self._used_blocks >> (block + 1)
        if not later:
            return 0
        block += (later & -later).bit_length()
        bits = self._blocks[block]
        return (block << _BLOCK_BITS) + (bits & -bits).bit_length() - 1

    def roomiest(self) -> int:
        """The most space that an open pack has; 0 if none is open."""
        if not self._used_blocks:
            return 0
        block = self._used_blocks.bit_length() - 1
        return (block << _BLOCK_BITS) + self._blocks[block].bit_length() - 1

    def open(self, length: int, copies: int, count: int) -> None:
        """Start `count` packs, each with `copies` sequences of `length`."""
        self._keep(self._max_length - copies * length, count, copies, _NO_RUN, length, copies)

    def fill(self, space: int, length: int, count: int, most_copies: int = 2**31) -> int:
        """Put up to `count` sequences of `length` into packs with `space` left, as many copies in each as fit.

        Only the group opened last is filled; the rest of it stays open.

        Returns:
            How many sequences were placed, ≥ 1.
        """
        group = self._groups[space]
        packs, sequences, run = group[-1]
        copies = space // length
        for limit in (self._max_sequences - sequences, count, most_copies):
            if copies > limit:  # quicker than min() in the innermost step
                copies = limit
        filled = count // copies
        if filled < packs:
            group[-1] = (packs - filled, sequences, run)
        else:
            filled = packs
            if len(group) > 1:
                group.pop()
            else:
                self._forget(space)
        self._keep(space - copies * length, filled, sequences + copies, run, length, copies)
        return filled * copies

    def patterns(self) -> Patterns:
        """Close all packs; the patterns of all that were made.

        Cost: one vectorised step per run of the longest pattern.
        """
        for groups in self._groups.values():
            for packs, _, run in groups:
                self._closed_runs.append(run)
                self._closed_counts.append(packs)
        self._groups.clear()
        self._blocks, self._used_blocks = [0] * len(self._blocks), 0
        before = np.array(self._run_before, np.int64)
        last = np.array(self._closed_runs, np.int64)
        pattern = np.arange(len(last))
        runs, owners = [last], [pattern]
        while len(last):
            last = before[last]
            pattern, last = pattern[last != _NO_RUN], last[last != _NO_RUN]
            runs.append(last)
            owners.append(pattern)
        # Found from the last run of each pattern to its first: turn round, then bring each pattern together.
        owner = np.concatenate(owners[::-1])
        order = np.argsort(owner, kind="stable")
        of_pattern = np.concatenate(runs[::-1])[order]
        return Patterns(
            np.array(self._run_lengths, np.int64)[of_pattern],
            np.array(self._run_copies, np.int64)[of_pattern],
            np.concatenate([[0], np.cumsum(np.bincount(owner))]),
            np.array(self._closed_counts, np.int64),
        )

    def _keep(self, space: int, packs: int, sequences: int, before: int, length: int, copies: int) -> None:
        """Add a run to these packs and keep them open, or close them if nothing more can go in."""
        if before != _NO_RUN and self._run_lengths[before] == length:
            copies += self._run_copies[before]
            before = self._run_before[before]
        run = len(self._run_before)
        self._run_lengths.append(length)
        self._run_copies.append(copies)
        self._run_before.append(before)
        if space == 0 or sequences == self._max_sequences:
            self._closed_runs.append(run)
            self._closed_counts.append(packs)
            return
        group = self._groups.get(space)
        if group is not None:
            group.append((packs, sequences, run))
            return
        self._groups[space] = [(packs, sequences, run)]
        block = space >> _BLOCK_BITS
        self._blocks[block] |= 1 << (space & _BLOCK_MASK)
        self._used_blocks |= 1 << block

    def _forget(self, space: int) -> None:
        """No pack with this space is open any more."""
        del self._groups[space]
        block = space >> _BLOCK_BITS
        self._blocks[block] ^= 1 << (space & _BLOCK_MASK)
        if not self._blocks[block]:
            self._used_blocks ^= 1 << block
