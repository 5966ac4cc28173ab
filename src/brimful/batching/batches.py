"""Batches: which sequences stand in which batch, and how much of what the device computes is padding."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from brimful.errors import LengthError
from brimful.validation import IntArray, Lengths, aligned, read_only, validate_capacity, validate_lengths, whole_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """Indices by batch, as compressed sparse rows.

        ids  3 2 | 1 0        offsets  0 2 4        batch 0 holds sequences 3 and 2

    Args:
        ids: (items,) int64, indices of sequences or of packs, batch after batch; read-only once inside.
        offsets: (batches + 1,) int64, batch i holds ids[offsets[i]:offsets[i + 1]]; read-only once inside.

    Raises:
        LengthError: ids or offsets that are not whole numbers, or offsets that do not rise from 0 to the number of ids.

    Example:
        >>> batches = Batches.cut([3, 2, 1, 0], 2)
        >>> len(batches), batches[0]
        (2, array([3, 2]))
    """

    ids: IntArray
    offsets: IntArray

    def __post_init__(self) -> None:
        ids, offsets = (read_only(whole_numbers(part, "ids and offsets")) for part in (self.ids, self.offsets))
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(ids) or (np.diff(offsets) < 1).any():
            raise LengthError(f"offsets of batches rise from 0 to the number of ids, {len(ids)}; no batch is empty")
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "offsets", offsets)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.ids, self.offsets)

    @classmethod
    def cut(cls, ids: Lengths, batch_size: int) -> Self:
        """One batch after each batch_size ids, as a DataLoader cuts what a sampler gives; the last may be smaller.

        Raises:
            LengthError: batch_size is no whole number ≥ 1.
        """
        batch_size = validate_capacity(batch_size, "batch_size")
        array = whole_numbers(ids, "ids").astype(np.int64)
        return cls(array, np.append(np.arange(0, len(array), batch_size), len(array)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, batch: int) -> IntArray:
        """The ids in a batch."""
        if not -len(self) <= batch < len(self):
            raise IndexError(f"batch {batch} of {len(self)}")
        batch %= len(self)
        return self.ids[self.offsets[batch] : self.offsets[batch + 1]]

    def to_lists(self) -> list[list[int]]:
        """The batches as Python lists, as a DataLoader takes them."""
        ids, offsets = self.ids.tolist(), self.offsets.tolist()
        return [ids[start:end] for start, end in itertools.pairwise(offsets)]

    def take(self, order: IntArray) -> Batches:
        """These batches in another order.

        Example:
            >>> Batches.cut([3, 2, 1, 0], 2).take(np.array([1, 0])).ids
            array([1, 0, 3, 2])

        Cost: a few passes over the ids.
        """
        sizes = np.diff(self.offsets)[order]
        offsets = np.append(0, np.cumsum(sizes))
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[order] - offsets[:-1], sizes)
        return Batches(self.ids[places], offsets)

    def padded_tokens(self, lengths: Lengths, length_multiple: int = 1) -> IntArray:
        """(batches,) what the device computes for each batch: its longest sequence × how many there are.

        Args:
            lengths: (sequences,) tokens, each ≥ 1; ids are indices into them.
            length_multiple: rows are padded to a multiple of so many tokens, ≥ 1.

        Raises:
            LengthError: a length is no whole number ≥ 1, or an id has no length.

        Example:
            >>> Batches.cut([0, 3, 1, 2], 2).padded_tokens([2, 3, 7, 9])
            array([18, 14])

        Cost: one pass over the ids.
        """
        array = validate_lengths(lengths)
        if len(self.ids) and not 0 <= self.ids.min() <= self.ids.max() < len(array):
            raise LengthError(f"ids from {self.ids.min()} to {self.ids.max()} do not belong to {len(array)} lengths")
        if not len(self):
            return np.zeros(0, np.int64)
        longest = np.maximum.reduceat(array[self.ids].astype(np.int64), self.offsets[:-1])
        return aligned(longest, validate_capacity(length_multiple, "length_multiple")) * np.diff(self.offsets)

    def efficiency(self, lengths: Lengths, length_multiple: int = 1) -> float:
        """Real tokens per token that the device computes, a fraction from 0 to 1 (1 when there is nothing).

        Raises:
            LengthError: as `padded_tokens`.

        Example: the textbook's four sequences, batched as they come and grouped by length.
            >>> Batches.cut([0, 3, 1, 2], 2).efficiency([2, 3, 7, 9])
            0.65625
            >>> Batches.cut([3, 2, 1, 0], 2).efficiency([2, 3, 7, 9])
            0.875
        """
        array = validate_lengths(lengths)
        padded = int(self.padded_tokens(array, length_multiple).sum())
        return int(array[self.ids].sum(dtype=np.int64)) / padded if padded else 1.0


def longest_first_keys(lengths: IntArray) -> npt.NDArray[np.unsignedinteger[Any]]:
    """(sequences,) what to sort stably, so that the longest come first and equal ones stay as they stood.

    As narrow as can be: NumPy's stable sort of 16-bit numbers is a radix sort.

    Example:
        >>> longest_first_keys(np.array([1, 9, 8]))
        array([8, 0, 1], dtype=uint8)
    """
    longest = int(lengths.max(initial=0))
    keys: npt.NDArray[np.unsignedinteger[Any]] = (longest - lengths).astype(np.min_scalar_type(longest))
    return keys
