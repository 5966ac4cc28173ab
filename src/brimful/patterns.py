"""Patterns: which lengths share a pack, and how many packs look like that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError, PlanError
from brimful.lengths import LengthHistogram
from brimful.validation import MAX_TOKENS, IntArray, read_only, whole_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """Patterns in run-length form, so that a pack of 512 sequences of one length is one run, not 512 numbers.

        3 × [7 2]      lengths  7 2 5     copies  1 1 2
        1 × [5 5]      offsets  0 2 3     counts  3 1

    Args:
        lengths: (runs,) int64, tokens; strictly decreasing within a pattern.
        copies: (runs,) int64, how many sequences of that length the pattern holds, ≥ 1.
        offsets: (patterns + 1,) int64, the runs of pattern i are offsets[i] to offsets[i + 1].
        counts: (patterns,) int64, how many packs have this pattern, ≥ 1.

    Raises:
        PlanError: the arrays do not fit together.

    Example:
        >>> patterns = Patterns.from_packs(np.array([2, 7, 5, 5, 7, 2, 7, 2]), np.array([0, 2, 4, 6, 8]))
        >>> list(patterns)
        [((5, 5), 1), ((7, 2), 3)]
    """

    lengths: IntArray
    copies: IntArray
    offsets: IntArray
    counts: IntArray

    def __post_init__(self) -> None:
        for part in fields(self):
            try:
                array = whole_numbers(getattr(self, part.name), f"the {part.name} of patterns")
            except LengthError as fault:
                raise PlanError(str(fault)) from None
            object.__setattr__(self, part.name, read_only(array))
        self._check()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.lengths, self.copies, self.offsets, self.counts)

    def _check(self) -> None:
        lengths, copies, offsets, counts = self.lengths, self.copies, self.offsets, self.counts
        if len(offsets) != len(counts) + 1 or offsets[0] != 0 or offsets[-1] != len(lengths):
            raise PlanError("the offsets of patterns run from 0 to the number of runs, one more than there are counts")
        if len(lengths) != len(copies):
            raise PlanError(f"patterns have one copies number per length, not {len(copies)} for {len(lengths)}")
        if len(counts) and np.diff(offsets).min() < 1:
            raise PlanError("a pattern holds at least one sequence; leave empty patterns out")
        for name, array in (("lengths", lengths), ("copies", copies), ("counts", counts)):
            if len(array) and array.min() < 1:
                raise PlanError(f"the {name} of patterns are at least 1, not {array.min()}")
        rises = np.diff(lengths) >= 0
        rises[offsets[1:-1] - 1] = False  # from one pattern to the next
        if rises.any():
            at = int(np.searchsorted(offsets, int(np.argmax(rises)), side="right")) - 1
            raise PlanError(f"pattern {at} does not list each length once, longest first")
        # In floating point first: exact sums of untrusted numbers could leave int64.
        tokens = lengths.astype(np.float64) * copies * np.repeat(counts, np.diff(offsets))
        if tokens.sum() >= MAX_TOKENS:
            raise PlanError("patterns hold fewer than 2^62 tokens")

    @classmethod
    def empty(cls) -> Patterns:
        """No patterns at all."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, np.zeros(1, np.int64), nothing)

    @classmethod
    def from_packs(cls, lengths: npt.NDArray[np.integer[Any]], pack_offsets: npt.NDArray[np.integer[Any]]) -> Patterns:
        """The patterns of packs that were filled sequence by sequence; equal packs become one pattern.

        Args:
            lengths: (sequences,) tokens, pack after pack, in any order within a pack.
            pack_offsets: (packs + 1,) the sequences of pack i are pack_offsets[i] to pack_offsets[i + 1].

        Cost: sorting the sequences, vectorised; about a second for ten million.
        """
        sizes = np.diff(pack_offsets)
        pack_of = np.repeat(np.arange(len(sizes)), sizes)
        # Longest first within a pack, packs in place: one sort of a combined key.
        longest = int(lengths.max(initial=0))
        key = pack_of * (longest + 1) + (longest - lengths.astype(np.int64))
        key.sort()
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        copies = np.diff(np.append(starts, len(key)))
        pack_of, below_longest = np.divmod(key[starts], longest + 1)
        return cls.merged(longest - below_longest, copies, np.bincount(pack_of, minlength=len(sizes)))

    @classmethod
    def merged(cls, lengths: IntArray, copies: IntArray, n_runs: IntArray, counts: IntArray | None = None) -> Patterns:
        """Patterns given by their runs and the number of runs of each, with equal patterns counted together."""
        counts = np.ones(len(n_runs), np.int64) if counts is None else counts
        starts = np.cumsum(n_runs) - n_runs
        narrow = np.min_scalar_type(max(int(lengths.max(initial=0)), int(copies.max(initial=0))))
        parts = []
        for size in np.unique(n_runs).tolist():
            of_size = np.flatnonzero(n_runs == size)
            runs = starts[of_size, None] + np.arange(size)
            rows = np.hstack([lengths[runs], copies[runs]]).astype(narrow)
            order = np.lexsort(rows.T)
            rows = rows[order]
            first = np.concatenate([[True], (rows[1:] != rows[:-1]).any(axis=1)])
            groups = np.flatnonzero(first)
            parts.append((rows[groups], np.add.reduceat(counts[of_size][order], groups), size))
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(rows[:, :size].ravel() for rows, _, size in parts)]),
            np.concatenate([np.zeros(0, np.int64), *(rows[:, size:].ravel() for rows, _, size in parts)]),
            np.cumsum(np.concatenate([[0], *(np.full(len(rows), size) for rows, _, size in parts)])),
            np.concatenate([np.zeros(0, np.int64), *(total for _, total, _ in parts)]),
        )

    def merged_equal(self) -> Patterns:
        """The same packs in standard order, with equal patterns counted together."""
        return Patterns.merged(self.lengths, self.copies, np.diff(self.offsets), self.counts)

    def scaled(self, factor: int) -> Patterns:
        """The same packs with every length `factor` times as great."""
        return self if factor == 1 else Patterns(self.lengths * factor, self.copies, self.offsets, self.counts)

    def __add__(self, other: Patterns) -> Patterns:
        """The patterns of both, equal ones counted together."""
        if not isinstance(other, Patterns):
            return NotImplemented
        return Patterns.merged(
            np.concatenate([self.lengths, other.lengths]),
            np.concatenate([self.copies, other.copies]),
            np.concatenate([np.diff(self.offsets), np.diff(other.offsets)]),
            np.concatenate([self.counts, other.counts]),
        )

    @property
    def packs(self) -> int:
        """How many packs there are."""
        return int(self.counts.sum())

    def tokens(self) -> IntArray:
        """(patterns,) int64: the tokens in one pack of each pattern."""
        return _sums(self.lengths * self.copies, self.offsets)

    def sequences(self) -> IntArray:
        """(patterns,) int64: the sequences in one pack of each pattern."""
        return _sums(self.copies, self.offsets)

    def histogram(self) -> LengthHistogram:
        """The sequences that all packs hold together."""
        sequences = self.copies * np.repeat(self.counts, np.diff(self.offsets))
        return LengthHistogram.from_counts(self.lengths, sequences)

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Each pattern as its lengths, longest first, with its count of packs."""
        offsets = self.offsets.tolist()
        for start, end, count in zip(offsets[:-1], offsets[1:], self.counts.tolist(), strict=True):
            yield tuple(np.repeat(self.lengths[start:end], self.copies[start:end]).tolist()), count

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Patterns):
            return NotImplemented
        return all(np.array_equal(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))

    def __hash__(self) -> int:
        return hash((self.lengths.tobytes(), self.copies.tobytes(), self.offsets.tobytes(), self.counts.tobytes()))

    def __repr__(self) -> str:
        return f"Patterns({len(self):,} patterns, {self.packs:,} packs)"


def _sums(values: IntArray, offsets: IntArray) -> IntArray:
    """The sum of each slice offsets[i] to offsets[i + 1]."""
    before = np.concatenate([[0], np.cumsum(values)])
    sums: IntArray = before[offsets[1:]] - before[offsets[:-1]]
    return sums
