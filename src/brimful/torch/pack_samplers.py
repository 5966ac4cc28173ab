"""Samplers of packs, for rows that are packed already or for sequences that are packed on the fly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from brimful.assignment import PackAssignment
from brimful.batching.batches import Batches
from brimful.batching.chance import random_of
from brimful.batching.sharding import POLICIES
from brimful.batching.steps import EvenSteps, even_steps, pack_costs
from brimful.errors import SettingError, shown
from brimful.torch.dataset_lengths import as_lengths
from brimful.torch.progress import Progress, digest
from brimful.torch.rank_batches import RankBatches, RankSampler
from brimful.torch.ranks import rank_and_world, shared_seed
from brimful.validation import one_of, validate_capacity, validate_lengths

Assignments: TypeAlias = PackAssignment | Callable[[int], PackAssignment]

YIELDS = ("packs", "sequences")


class PackBatchSampler(RankSampler[list[int]]):
    """Batches of packs, in random order, of which all ranks have about equally much attention to compute in each step.

    A `batch_sampler` for a DataLoader: of packed rows, where row i is pack i of the assignment; or of single sequences,
    of which `PackedCollator.from_sequences` makes packs. A state can be gone on from with other ranks, if they take as
    many packs in a step.

    Args:
        assignment: which sequences are in which pack; or a function that gives it for an epoch, such as
            `lambda epoch: brimful.assign(plan, lengths, seed, epoch)`, if packs are made on the fly.
        lengths: (sequences,) tokens, each ≥ 1: a list, tuple, array, tensor or Arrow column.
        batch_size: packs of a rank in a step, ≥ 1.
        yields: "packs", their indices; or "sequences", the indices of the sequences in them, one pack after another
            (with batch_size 1 the collator gets just what makes one full row).
        window: steps whose packs may be exchanged to make them even, ≥ 1; None for all. See `even_steps`.
        policy: "pad" repeats the first batches if there are not enough for the last step, "drop" leaves it out,
            "uneven" lets the later ranks make one step less.
        seed: ≥ 0; None for one that the ranks agree on.
        rank, world_size: given both; None to ask torch.distributed.

    Raises:
        LengthError: not one length ≥ 1 for each sequence; batch_size or window is no whole number ≥ 1.
        SettingError: what is no assignment; a choice or a rank that there is not; no seed where ranks cannot agree.

    Example:
        >>> import brimful
        >>> lengths = [7, 2, 3, 7, 9, 5, 5]
        >>> packs = brimful.assign(brimful.plan(lengths, max_length=10), lengths)
        >>> ranks = [PackBatchSampler(packs, lengths, seed=0, rank=rank, world_size=2) for rank in (0, 1)]
        >>> [len(sampler) for sampler in ranks], sorted(pack for sampler in ranks for [pack] in sampler)
        ([2, 2], [0, 1, 2, 3])

    Cost: see `even_steps`, once for each epoch.
    """

    def __init__(
        self,
        assignment: Assignments,
        lengths: Any,
        batch_size: int = 1,
        *,
        yields: str = "packs",
        window: int | None = 128,
        policy: str = "pad",
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        rank, world_size = rank_and_world(rank, world_size)
        source = _Source(assignment, lengths, batch_size, one_of(yields, "yields", YIELDS), window, world_size)
        self._source = source
        self._rank_batches = _rank_batches("PackBatchSampler", source, policy, seed, rank)

    def __iter__(self) -> Iterator[list[int]]:
        return self._rank_batches.run()

    @property
    def imbalance(self) -> tuple[float, float]:
        """How long ranks wait for the costliest one, as a share of computing, in random order and as they come."""
        return self._source.imbalance(self._rank_batches)


class PackSampler(RankSampler[int]):
    """The index of one pack after another: a `sampler` for a DataLoader of packed rows with batch_size=1.

    All as in `PackBatchSampler`, whose batches are for larger steps. A state can be gone on from with as many ranks as
    then.

    Example:
        >>> import brimful
        >>> lengths = [7, 2, 3, 7, 9, 5, 5]
        >>> packs = brimful.assign(brimful.plan(lengths, max_length=10), lengths)
        >>> sorted(PackSampler(packs, lengths, seed=0))
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        assignment: Assignments,
        lengths: Any,
        *,
        window: int | None = 128,
        policy: str = "pad",
        seed: int | None = None,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        rank, world_size = rank_and_world(rank, world_size)
        self._source = _Source(assignment, lengths, 1, "packs", window, world_size)
        self._rank_batches = _rank_batches("PackSampler", self._source, policy, seed, rank)

    def __iter__(self) -> Iterator[int]:
        batches = self._rank_batches
        return batches.progress.run(lambda first: [pack for [pack] in batches.rest(first)])

    @property
    def imbalance(self) -> tuple[float, float]:
        """How long ranks wait for the costliest one, as a share of computing, in random order and as they come."""
        return self._source.imbalance(self._rank_batches)


class _Source:
    """Batches of an assignment's packs in every epoch; what is known of the last one is kept."""

    _epoch: int | None = None
    _packs: PackAssignment
    _digest: str | None

    def __init__(
        self, assignment: Any, lengths: Any, batch_size: Any, yields: str, window: int | None, world_size: int
    ) -> None:
        if not isinstance(assignment, PackAssignment) and not callable(assignment):
            raise SettingError(
                f"packs are those of a PackAssignment, or of a function of the epoch, not {shown(assignment)}"
            )
        self._assignment = assignment
        self._lengths = validate_lengths(as_lengths(lengths))
        self._batch_size = validate_capacity(batch_size, "batch_size")
        self._yields = yields
        self._window = window
        self.world_size = world_size

    def steps(self, seed: int, epoch: int) -> EvenSteps:
        costs = pack_costs(self._of(epoch), self._lengths)
        return even_steps(costs, random_of(seed, epoch).permutation, self.world_size, self._batch_size, self._window)

    def imbalance(self, batches: RankBatches) -> tuple[float, float]:
        steps = self.steps(batches.seed, batches.progress.epoch)
        return steps.imbalance_before, steps.imbalance

    def batches(self, seed: int, epoch: int) -> Batches:
        batches = self.steps(seed, epoch).batches
        if self._yields == "packs":
            return batches
        packs = self._of(epoch)
        sequences = Batches(packs.sequence_ids, packs.pack_offsets).take(batches.ids)
        return Batches(sequences.ids, sequences.offsets[batches.offsets])

    def settings(self, epoch: int) -> dict[str, object]:
        packs = self._of(epoch)
        if self._digest is None:
            self._digest = digest(packs.sequence_ids, packs.pack_offsets, self._lengths)
        return {
            "the assignment": self._digest,
            "batch_size × world_size": self._batch_size * self.world_size,
            "window": self._window,
            "yields": self._yields,
        }

    def _of(self, epoch: int) -> PackAssignment:
        if epoch != self._epoch:
            packs = self._assignment(epoch) if callable(self._assignment) else self._assignment
            if not isinstance(packs, PackAssignment):
                raise SettingError(f"the function of the epoch gives a PackAssignment, not {shown(packs)}")
            self._epoch, self._packs, self._digest = epoch, packs, None
        return self._packs


def _rank_batches(sampler: str, source: _Source, policy: str, seed: int | None, rank: int) -> RankBatches:
    batches = RankBatches(
        source.batches,
        source.settings,
        Progress(sampler, source.world_size, per_step=1, of_step=1),
        rank,
        shared_seed(seed, source.world_size),
        one_of(policy, "policy", POLICIES),
        "repeat",
    )
    batches.batches()  # what is wrong with lengths and settings is said now
    return batches
