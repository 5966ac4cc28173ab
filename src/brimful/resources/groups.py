"""Open packs with several capacities: kept in an order, found by the space that they have left in every resource."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from brimful.validation import IntArray

Key: TypeAlias = tuple[int, ...]
Space: TypeAlias = tuple[int, ...]
Place: TypeAlias = tuple[int, int]

_BLOCK_GROUPS = 2048


@dataclass(frozen=True, slots=True)
class Group:
    """Equal packs: as many, the number of the first in order of opening, what they hold, and what they have left.

    Args:
        packs: how many, ≥ 1.
        first: they are the packs from this number on in order of opening; only first fit needs to know.
        run: the last run of their pattern.
        space: (resources,) what each has left.
    """

    packs: int
    first: int
    run: int
    space: Space


@dataclass(slots=True)
class _Block:
    """Neighbours in the order: their keys, the groups of each key, and the same space again as an array."""

    keys: list[Key]
    stacks: list[list[Group]]
    space: IntArray  # (resources, _BLOCK_GROUPS), the first len(keys) columns count


class OrderedGroups:
    """Groups of equal packs in the order of a key; among groups of one key the last one in is the first one out.

    They are held in blocks of neighbours: a block of which no group has enough of some resource is passed over whole,
    and the others are searched by one vectorised comparison each.

    Args:
        resources: how many numbers a space has.
        key: what the groups are ordered by, least first; groups of one key have equal space.

    Example:
        >>> groups = OrderedGroups(resources=2, key=lambda group: group.space)
        >>> for space in ((3, 2), (9, 9), (5, 0)):
        ...     groups.add(Group(packs=1, first=0, run=0, space=space))
        >>> groups.first_fitting((4, 1))
        (0, 2)
        >>> groups.pop((0, 2)).space
        (9, 9)
        >>> groups.first_fitting((4, 1)) is None
        True

    Cost: some ten microseconds to find, and as much to add or pop, with tens of thousands of groups.
    """

    def __init__(self, resources: int, key: Callable[[Group], Key]) -> None:
        self._key = key
        self._blocks = [_Block([], [], np.zeros((resources, _BLOCK_GROUPS), np.int64))]
        self._starts: list[Key] = [()]  # keys from here on belong to this block, or to a later one
        self._most = np.full((resources, 1), -1, np.int64)  # of each block and resource a space that none in it exceeds

    def first_fitting(self, size: Space) -> Place | None:
        """Where the first group stands that has at least this space in every resource; None if none has."""
        needed = np.array(size, np.int64)[:, None]
        for at in np.flatnonzero(np.logical_and.reduce(self._most >= needed)).tolist():
            block = self._blocks[at]
            space = block.space[:, : len(block.keys)]
            fitting = np.logical_and.reduce(space >= needed).nonzero()[0]
            if len(fitting):
                return at, int(fitting[0])
            self._most[:, at] = space.max(axis=1, initial=-1)  # groups have gone since it was noted
        return None

    def pop(self, place: Place) -> Group:
        """Take out the group that came last to this place."""
        at, index = place
        block = self._blocks[at]
        group = block.stacks[index].pop()
        if block.stacks[index]:
            return group
        del block.keys[index], block.stacks[index]
        end = len(block.keys)
        block.space[:, index:end] = block.space[:, index + 1 : end + 1]
        if not end and len(self._blocks) > 1:
            del self._blocks[at], self._starts[at]
            self._most = np.delete(self._most, at, axis=1)
        return group

    def add(self, group: Group) -> None:
        """Put a group in its place in the order."""
        key = self._key(group)
        at = max(0, bisect_right(self._starts, key) - 1)
        block = self._blocks[at]
        index = bisect_left(block.keys, key)
        if index < len(block.keys) and block.keys[index] == key:
            block.stacks[index].append(group)
            return
        if len(block.keys) == _BLOCK_GROUPS:
            self._halve(at)
            self.add(group)
            return
        end = len(block.keys)
        block.space[:, index + 1 : end + 1] = block.space[:, index:end]
        block.space[:, index] = group.space
        block.keys.insert(index, key)
        block.stacks.insert(index, [group])
        self._most[:, at] = np.maximum(self._most[:, at], group.space)

    def all(self) -> list[Group]:
        """Every group, in order."""
        return [group for block in self._blocks for stack in block.stacks for group in stack]

    def _halve(self, at: int) -> None:
        """Make two blocks of a full one."""
        block, half = self._blocks[at], _BLOCK_GROUPS // 2
        later = _Block(block.keys[half:], block.stacks[half:], np.roll(block.space, -half, axis=1))
        del block.keys[half:], block.stacks[half:]
        self._blocks.insert(at + 1, later)
        self._starts.insert(at + 1, later.keys[0])
        self._most = np.insert(self._most, at + 1, self._most[:, at], axis=1)
