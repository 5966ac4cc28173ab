"""Which of the processes this is, and a seed that all of them share."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from brimful.batching.sharding import validate_rank
from brimful.errors import SettingError
from brimful.validation import whole_number


def rank_and_world(rank: Any = None, world_size: Any = None) -> tuple[int, int]:
    """The rank of this process and the number of ranks: as given, or of torch.distributed, or 0 of 1.

    Raises:
        SettingError: only one of them is given, or there is no such rank.
        LengthError: world_size is no whole number ≥ 1.

    Example:
        >>> rank_and_world(), rank_and_world(3, 4)
        ((0, 1), (3, 4))
    """
    if (rank is None) != (world_size is None):
        raise SettingError("rank and world_size are given both, or neither to take those of torch.distributed")
    if rank is not None:
        return validate_rank(rank, world_size)
    if _initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def shared_seed(seed: Any, world_size: int) -> int:
    """The seed as given, or one drawn from torch's default generator, of which every rank gets that of rank 0.

    Raises:
        SettingError: the seed is no whole number from 0 to 2^63 − 1, or there is none and no way to agree on one.

    Cost: without a seed, a broadcast that all processes of torch.distributed take part in.
    """
    if seed is not None:
        return whole_number(seed, "seed")
    drawn = [int(torch.randint(2**31, ()))]  # on all ranks, so that their generators stay alike
    if _initialized() and dist.get_world_size() >= max(world_size, 2):
        dist.broadcast_object_list(drawn, src=0)
    elif world_size > 1:
        raise SettingError(
            f"{world_size} ranks agree on a seed over torch.distributed, which does not connect them here; "
            "initialise it before, or give a seed"
        )
    return drawn[0]


def _initialized() -> bool:
    return dist.is_available() and dist.is_initialized()
