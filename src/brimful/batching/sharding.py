"""Which rank takes which batch, so that every rank makes equally many steps and none waits for another for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from brimful.errors import SettingError
from brimful.validation import IntArray, one_of, validate_capacity, whole_number

POLICIES = ("pad", "drop", "uneven")
FILLS = ("repeat", "empty")

EMPTY = -1
"""Stands in `Shard.indices` for an empty batch, which counts nothing in the loss."""


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The batches of one rank, one a step.

    Args:
        indices: (steps,) int64, the batch of each step, or −1 for an empty one.
        is_padding: (steps,) bool, True where the batch only keeps the ranks in step: repeated, or empty.
        dropped: how many batches no rank takes, the same number on all ranks.
    """

    indices: IntArray
    is_padding: npt.NDArray[np.bool_]
    dropped: int

    def __len__(self) -> int:
        return len(self.indices)


def shard(n: int, rank: int, world: int, policy: str = "pad", fill: str = "repeat") -> Shard:
    """Deal n batches to the ranks in turn: step s of rank r takes batch s × world + r.

        5 batches, 2 ranks    pad: rank 0 takes 0 2 4, rank 1 takes 1 3 and 0 once more
                              drop: 0 2 and 1 3; batch 4 is dropped        uneven: 0 2 4 and 1 3

    Args:
        n: batches, ≥ 0, in the order in which they are to be trained on.
        rank: from 0 to world − 1.
        world: ranks, ≥ 1.
        policy: what happens to the last step if there are not enough batches for it:

            - pad: nothing is lost, and the ranks that have none get padding; equally many steps everywhere;
            - drop: it is left out: at most world − 1 batches, counted in `dropped`; equally many steps everywhere;
            - uneven: the later ranks make one step less (needs torch's `Join`, or nothing that waits).
        fill: with pad, "repeat" gives the first batches once more, "empty" gives −1 for a batch without sequences.

    Returns:
        The batches of this rank; over all ranks each stands exactly once beside padding and dropped ones.

    Raises:
        SettingError: a policy or fill that there is not, n below 0, or a rank that does not exist.
        LengthError: world is no whole number ≥ 1.

    Example:
        >>> [shard(5, rank, 2).indices.tolist() for rank in (0, 1)]
        [[0, 2, 4], [1, 3, 0]]
        >>> shard(5, rank=1, world=2, fill="empty").indices, shard(5, rank=1, world=2).is_padding
        (array([ 1,  3, -1]), array([False, False,  True]))
        >>> shard(5, rank=0, world=2, policy="drop").dropped
        1

    Cost: proportional to the batches of one rank.
    """
    one_of(policy, "policy", POLICIES)
    one_of(fill, "fill", FILLS)
    n = whole_number(n, "the number of batches")
    rank, world = validate_rank(rank, world)
    if policy == "drop":
        end = n - n % world
    elif policy == "pad":
        end = -(-n // world) * world
    else:
        end = n
    indices = np.arange(rank, end, world)
    is_padding = indices >= n
    indices[is_padding] = EMPTY if fill == "empty" else indices[is_padding] % max(n, 1)
    return Shard(indices, is_padding, max(n - end, 0))


def validate_rank(rank: Any, world: Any) -> tuple[int, int]:
    """Both as Python ints, if there is such a rank among so many.

    Raises:
        SettingError: the rank is no whole number from 0 to world − 1.
        LengthError: world is no whole number ≥ 1.
    """
    world = validate_capacity(world, "the number of ranks")
    rank = whole_number(rank, "rank")
    if rank >= world:
        raise SettingError(f"rank is from 0 to {world - 1} among {world} ranks, not {rank}")
    return rank, world
