"""The batches that one rank takes in every epoch: made afresh, dealt out, and gone on with after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from brimful.batching.batches import Batches
from brimful.batching.sharding import EMPTY, Shard, shard
from brimful.torch.progress import Progress

Item = TypeVar("Item", covariant=True)


@dataclass(slots=True)
class RankBatches:
    """What the batch samplers have in common; they differ in how an epoch's batches are made.

    Args:
        make: the batches of all ranks for (seed, epoch), in order: step s of rank r of w is batch s × w + r.
        settings: for an epoch, what must be the same for a state to be gone on from.
        progress: where this rank is.
        rank: of progress.world_size ranks.
        seed: ≥ 0.
        policy: of `shard`.
        fill: of `shard`.
    """

    make: Callable[[int, int], Batches]
    settings: Callable[[int], Mapping[str, object]]
    progress: Progress
    rank: int
    seed: int
    policy: str
    fill: str
    _made: tuple[tuple[int, int], Batches] | None = field(default=None, repr=False)

    def batches(self) -> Batches:
        """The batches of all ranks in the epoch that is set; made once for it."""
        return self._batches(self.seed, self.progress.epoch)

    def shard(self) -> Shard:
        """Which of them are this rank's."""
        return self._shard(self.batches())

    def rest(self, first: int) -> list[list[int]]:
        """The batches of this rank from a place on; an empty one where padding is empty."""
        batches = self.batches()
        indices = self._shard(batches).indices[first:]
        there = indices[indices != EMPTY]  # an empty one comes last
        return batches.take(there).to_lists() + [[] for _ in range(len(indices) - len(there))]

    def run(self) -> Iterator[list[int]]:
        """A pass."""
        return self.progress.run(self.rest)

    def state(self, taken: int | None) -> dict[str, Any]:
        """Where the pass under way is."""
        batches = self.batches()
        sizes = len(self._shard(batches)), len(self._shard(batches, rank=0))
        return self.progress.state(self.seed, *sizes, self._settings(self.progress.epoch), taken)

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        state = self.progress.read(state)
        size = len(self._shard(self._batches(state["seed"], state["epoch"])))
        self.progress.load(state, size, self._settings(state["epoch"]))
        self.seed = state["seed"]

    def _settings(self, epoch: int) -> dict[str, object]:
        return {**self.settings(epoch), "policy": self.policy, "fill": self.fill}

    def _batches(self, seed: int, epoch: int) -> Batches:
        if self._made is None or self._made[0] != (seed, epoch):
            self._made = (seed, epoch), self.make(seed, epoch)
        return self._made[1]

    def _shard(self, batches: Batches, rank: int | None = None) -> Shard:
        return shard(
            len(batches), self.rank if rank is None else rank, self.progress.world_size, self.policy, self.fill
        )


class RankSampler(Sampler[Item]):
    """What all samplers of batches are beside how they are made and given; nothing here is overridden."""

    _rank_batches: RankBatches

    def __len__(self) -> int:
        """Items of this rank in the epoch that is set; where batches are made afresh, another may have some more."""
        return len(self._rank_batches.shard())

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass."""
        self._rank_batches.progress.set_epoch(epoch)

    @property
    def is_padding(self) -> npt.NDArray[np.bool_]:
        """(items,) True where an item of this rank is repeated, or empty, to keep the ranks in step."""
        return self._rank_batches.shard().is_padding

    @property
    def dropped(self) -> int:
        """Items that no rank takes in this epoch."""
        return self._rank_batches.shard().dropped

    def state_dict(self, taken: int | None = None) -> dict[str, Any]:
        """Where the pass under way is; with the items of this rank that were used, if the loader took more."""
        return self._rank_batches.state(taken)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there; also with another number of ranks, where the class says so.

        Raises:
            SettingError: no state of such a sampler; with the reason, if it cannot be gone on from exactly.
        """
        self._rank_batches.load(state)
