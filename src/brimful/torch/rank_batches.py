"""The batches that one rank takes in every epoch: made afresh, dealt out, and gone on with after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brimful.batching.batches import Batches
from brimful.batching.sharding import EMPTY, Shard, shard
from brimful.torch.progress import Progress


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
        return [
            [] if batch == EMPTY else batches[batch].tolist() for batch in self._shard(batches).indices[first:].tolist()
        ]

    def run(self) -> Iterator[list[int]]:
        """A pass."""
        return self.progress.run(self.rest)

    def state(self, taken: int | None) -> dict[str, Any]:
        """Where the pass under way is."""
        return self.progress.state(self.seed, len(self.shard()), self._settings(self.progress.epoch), taken)

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

    def _shard(self, batches: Batches) -> Shard:
        return shard(len(batches), self.rank, self.progress.world_size, self.policy, self.fill)
