"""SequenceGroups: sequences that must share a pack, such as a preference pair or the parts of a document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from brimful.assignment import PackAssignment
from brimful.errors import LengthError, shown
from brimful.validation import (
    IntArray,
    Lengths,
    aligned,
    read_only,
    require_countable,
    validate_capacity,
    validate_lengths,
    whole_numbers,
)


@dataclass(frozen=True, slots=True, eq=False)
class SequenceGroups:
    """Consecutive sequences, cut into groups that are packed whole.

        sequences  0 1 | 2 3 4 | 5        offsets  0 2 5 6

    A group is planned and assigned as if it were one sequence, as long as its sequences together; then each is replaced
    by its sequences, in their order. A max_sequences given to `plan` therefore counts groups.

    Args:
        offsets: (groups + 1,) int64, group i is sequences offsets[i] to offsets[i + 1]; strictly increasing from 0;
            read-only once inside.

    Raises:
        LengthError: the offsets do not rise from 0.

    Example:
        >>> import brimful
        >>> lengths = [5, 3, 6, 1, 2]                        # two pairs, and one alone
        >>> groups = SequenceGroups.from_sizes([2, 2, 1])
        >>> groups.lengths(lengths)
        array([8, 7, 2])
        >>> plan = brimful.plan(groups.lengths(lengths), max_length=10)
        >>> packs = groups.expand(brimful.assign(plan, groups.lengths(lengths)))
        >>> sorted(packs[pack].tolist() for pack in range(packs.packs))
        [[0, 1, 4], [2, 3]]
    """

    offsets: IntArray

    def __post_init__(self) -> None:
        offsets = whole_numbers(self.offsets, "the offsets of groups")
        if not len(offsets) or offsets[0] != 0 or (np.diff(offsets.astype(np.int64)) < 1).any():
            raise LengthError("the offsets of groups rise from 0, by at least one sequence a group")
        object.__setattr__(self, "offsets", read_only(offsets))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.offsets,)

    @classmethod
    def from_sizes(cls, sizes: Lengths) -> Self:
        """Groups of these many consecutive sequences, each ≥ 1.

        Raises:
            LengthError: a size is no whole number ≥ 1.
        """
        array = validate_lengths(sizes, "group sizes")
        return cls(np.concatenate([[0], np.cumsum(array, dtype=np.int64)]))

    @classmethod
    def from_ids(cls, ids: Any) -> Self:
        """Groups of consecutive sequences with equal ids.

        Args:
            ids: (sequences,) whole numbers or texts: a list, a NumPy array, an Arrow array or column.

        Raises:
            LengthError: an id is something else, or comes again after others: its sequences stand apart.

        Example:
            >>> SequenceGroups.from_ids(["a", "a", "b"]).offsets
            array([0, 2, 3])
        """
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            raise LengthError(f"group ids are a list or an array, one for each sequence, not {shown(ids)}")
        as_list = getattr(ids, "to_pylist", None) or getattr(ids, "tolist", None)
        items: list[Any] = as_list() if as_list else list(ids)
        starts: list[int] = []
        seen: set[int | str | bytes] = set()
        for at, item in enumerate(items):  # as Python values: NumPy would make 1 of "1", and round large numbers
            if isinstance(item, bool) or not isinstance(item, int | str | bytes):
                raise LengthError(f"group ids are whole numbers or texts, but that of sequence {at} is {shown(item)}")
            if starts and item == items[at - 1]:
                continue
            if item in seen:
                raise LengthError(
                    f"the sequences of group {shown(item)} stand apart: it comes again at sequence {at}; "
                    "bring the sequences of a group together"
                )
            seen.add(item)
            starts.append(at)
        return cls(np.array([*starts, len(items)], np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_sequences(self) -> int:
        """How many sequences all groups have together."""
        return int(self.offsets[-1])

    def lengths(self, lengths: Lengths, align: int = 1) -> IntArray:
        """(groups,) int64: the token slots that the sequences of each group take together.

        Args:
            lengths: (sequences,) tokens, each ≥ 1.
            align: every sequence takes slots up to a multiple of this, ≥ 1.

        Raises:
            LengthError: not one length ≥ 1 for each sequence, or align out of range.
        """
        array, align = validate_lengths(lengths), validate_capacity(align, "align")
        if len(array) != self.n_sequences:
            raise LengthError(f"the groups have {self.n_sequences:,} sequences, but there are {len(array):,} lengths")
        require_countable(array, align)
        before = np.concatenate([[0], np.cumsum(aligned(array, align), dtype=np.int64)])
        lengths_of_groups: IntArray = np.diff(before[self.offsets])
        return lengths_of_groups

    def expand(self, packs: PackAssignment) -> PackAssignment:
        """The sequences by pack, from the groups by pack.

        Args:
            packs: an assignment of these groups.

        Raises:
            LengthError: it assigns another number of groups.
        """
        if len(packs.sequence_ids) != len(self):
            raise LengthError(f"there are {len(self):,} groups, but the assignment has {len(packs.sequence_ids):,}")
        ids, ends = self.members(packs.sequence_ids)
        return PackAssignment(ids, ends[packs.pack_offsets])

    def members(self, groups: IntArray) -> tuple[IntArray, IntArray]:
        """The sequences of these groups, one group after the other; and (groups + 1,) where each group starts."""
        sizes = np.diff(self.offsets)[groups]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        sequences = np.repeat(self.offsets[groups] - starts[:-1], sizes)
        sequences += np.arange(len(sequences))
        return sequences, starts
