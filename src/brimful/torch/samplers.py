"""Samplers for torch.utils.data: length-grouped order, token-budget batches, and packs in even steps over ranks.

Each is arithmetic on (seed, epoch, index) from `brimful.batching`. All of them

- take rank and world_size from torch.distributed where it is initialised, or as keyword arguments;
- give another order after `set_epoch`, and the same one again without it;
- remember where they are: `load_state_dict(state_dict())` goes on as if nothing had happened, also in torchdata's
  StatefulDataLoader. They count what the loader has taken; one that reads ahead (num_workers > 0, and not stateful) has
  taken more than was trained on: tell `state_dict` how much that was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.utils.data import Sampler

from brimful.batching.batches import Batches
from brimful.batching.chance import random_of
from brimful.batching.length_grouped import ORDERS, default_mega_batch_mult, length_grouped_order, split_signs
from brimful.batching.sharding import FILLS
from brimful.batching.token_budget import token_budget_batches
from brimful.errors import LengthError, SettingError, shown
from brimful.torch.dataset_lengths import as_lengths, dataset_lengths
from brimful.torch.pack_samplers import PackBatchSampler, PackSampler
from brimful.torch.progress import Progress, digest
from brimful.torch.rank_batches import RankBatches, RankSampler
from brimful.torch.ranks import rank_and_world, shared_seed
from brimful.validation import IntArray, one_of, validate_capacity, validate_lengths

__all__ = ["LengthGroupedSampler", "PackBatchSampler", "PackSampler", "TokenBudgetBatchSampler"]


class LengthGroupedSampler(Sampler[int]):
    """Indices in an order in which each batch holds sequences of about the same length, so that little is padded.

    Takes the place of XTuner's sampler of that name; `from_batch_size` of transformers'. See `length_grouped_order` for
    how it sorts.

    Args:
        dataset: its rows are sampled; None if lengths are given.
        per_device_batch_size: sequences that a rank takes in a step (XTuner: batch size × accumulation), ≥ 1.
        length_property: the property or column of the dataset that holds the lengths. Without it, `input_ids` are
            counted, row by row. Lengths are in tokens; below 0 for text only, beside others with images.
        mega_batch_mult: batches of all ranks in a megabatch, ≥ 1; None for n // (4 × batch), from 1 to 50.
        seed: ≥ 0; None for one that the ranks agree on.
        round_up: repeat some indices, so that each rank has a whole number of batches, and all equally many. Otherwise
            rank r has ⌈(n − r) / world_size⌉ indices.
        order: "shuffled", or "xtuner" for the very order of the original.
        rank, world_size: given both; None to ask torch.distributed.
        lengths: in place of the dataset's.
        modality: (sequences,) 1 for images, 0 for text only, in place of signs.
        generator: draws come from it as it stands, pass by pass, in place of seed and epoch.

    Raises:
        LengthError: lengths that are 0 or no whole numbers, or not one for each row; a number below 1.
        DataError: there are no lengths, and no input_ids to count.
        SettingError: an order or a rank that there is not; no seed where ranks cannot agree on one.

    Example: the textbook's four sequences in batches of 2; as they come they would be 65.6 % efficient.
        >>> lengths = [2, 9, 3, 7]
        >>> Batches.cut([0, 1, 2, 3], 2).efficiency(lengths)
        0.65625
        >>> sampler = LengthGroupedSampler(None, 2, mega_batch_mult=2, seed=0, lengths=lengths)
        >>> list(sampler)
        [1, 3, 2, 0]
        >>> Batches.cut(list(sampler), 2).efficiency(lengths)
        0.875

    Cost: see `length_grouped_order`, for each pass.
    Source: the published description of XTuner's LengthGroupedSampler.
    """

    def __init__(
        self,
        dataset: Any,
        per_device_batch_size: int,
        length_property: str = "length",
        mega_batch_mult: int | None = None,
        seed: int | None = None,
        round_up: bool = True,
        *,
        order: str = "shuffled",
        rank: int | None = None,
        world_size: int | None = None,
        lengths: Any = None,
        modality: Any = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.per_device_batch_size = validate_capacity(per_device_batch_size, "per_device_batch_size")
        self.order = one_of(order, "order", ORDERS)
        self.round_up = bool(round_up)
        self.rank, self.world_size = rank_and_world(rank, world_size)
        self.total_batch = self.per_device_batch_size * self.world_size
        given = dataset_lengths(dataset, length_property) if lengths is None else as_lengths(lengths)
        if dataset is not None and len(given) != len(dataset):
            raise LengthError(f"lengths are one for each of {len(dataset)} rows of the dataset, not {len(given)}")
        self._lengths, self._has_image = split_signs(given, modality)
        n = len(self._lengths)
        if mega_batch_mult is None:
            mega_batch_mult = default_mega_batch_mult(n, self.total_batch)
        self.mega_batch_mult = validate_capacity(mega_batch_mult, "mega_batch_mult")
        self.total_size = -(-n // self.total_batch) * self.total_batch if self.round_up else n
        if generator is not None and not isinstance(generator, torch.Generator):
            raise SettingError(
                f"a generator is a torch.Generator, or None to draw by seed and epoch, not {shown(generator)}"
            )
        self._generator, self._drawn_from = generator, generator and generator.get_state()
        self.seed = 0 if generator is not None else shared_seed(seed, self.world_size)
        per_step = self.per_device_batch_size
        self._progress = Progress("LengthGroupedSampler", self.world_size, per_step, self.total_batch)

    @classmethod
    def from_batch_size(
        cls,
        batch_size: int,
        dataset: Any = None,
        lengths: Any = None,
        model_input_name: str | None = None,
        generator: torch.Generator | None = None,
    ) -> LengthGroupedSampler:
        """What transformers' LengthGroupedSampler gives for the same arguments: with a generator, index for index.

        Without one, a generator is seeded from torch's default one, so that the sampler can be resumed.

        Raises:
            SettingError: neither a dataset nor lengths.
            DataError, LengthError: as the class.

        Example:
            >>> draws = torch.Generator().manual_seed(0)
            >>> list(LengthGroupedSampler.from_batch_size(2, lengths=[2, 9, 3, 7], generator=draws))
            [1, 0, 3, 2]
        """
        if dataset is None and lengths is None:
            raise SettingError("lengths are of a dataset, or given; give one of both")
        if lengths is None:
            lengths = dataset_lengths(dataset, "length", model_input_name or "input_ids")
        if generator is None:
            generator = torch.Generator().manual_seed(shared_seed(None, 1))
        return cls(
            None,
            batch_size,
            round_up=False,
            order="xtuner",
            rank=0,
            world_size=1,
            lengths=lengths,
            generator=generator,
        )

    def __len__(self) -> int:
        """Indices of this rank in an epoch."""
        return self._size(self.rank)

    def __iter__(self) -> Iterator[int]:
        return self._progress.run(lambda first: self._indices()[self.rank :: self.world_size][first:].tolist())

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass."""
        self._progress.set_epoch(epoch)

    @property
    def epoch(self) -> int:
        """The epoch that a pass is of."""
        return self._progress.epoch

    def state_dict(self, taken: int | None = None) -> dict[str, Any]:
        """Where the pass under way is; with the indices of this rank that were used, if the loader took more."""
        state = self._progress.state(self.seed, len(self), self._size(0), self._settings, taken)
        return state if self._drawn_from is None else {**state, "generator": self._drawn_from}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there; also with other ranks, if they take as many sequences in a step.

        Raises:
            SettingError: no state of such a sampler; with the reason, if it cannot be gone on from exactly.
        """
        state = self._progress.read(state)
        self._progress.load(state, len(self), self._settings)
        self.seed = state["seed"]
        if self._generator is not None and "generator" in state:
            self._generator.set_state(state["generator"])

    def _size(self, rank: int) -> int:
        return -(-(self.total_size - rank) // self.world_size)

    def _indices(self) -> IntArray:
        generator = self._generator
        if generator is None:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
        else:
            self._drawn_from = generator.get_state()
        return length_grouped_order(
            self._lengths,
            lambda n: torch.randperm(n, generator=generator).numpy(),
            self.total_batch,
            self.mega_batch_mult,
            has_image=self._has_image,
            order=self.order,
            round_up=self.round_up,
        )

    @cached_property
    def _settings(self) -> dict[str, object]:
        return {
            "lengths": digest(np.where(self._has_image, self._lengths, -self._lengths)),
            "per_device_batch_size × world_size": self.total_batch,
            "mega_batch_mult": self.mega_batch_mult,
            "order": self.order,
            "round_up": self.round_up,
            "generator": self._generator is not None,
        }


class TokenBudgetBatchSampler(RankSampler[list[int]]):
    """Batches of as many sequences as the device can compute within a budget of tokens, padding counted.

    A `batch_sampler` for a DataLoader. The ranks take the batches in turn; they are of about equal cost, since each
    fills the budget. With buckets one epoch may have some more batches than another. A state can be gone on from with
    another number of ranks that divides the batches taken so far.

    Args:
        lengths: (sequences,) tokens, each ≥ 1: a list, tuple, array, tensor or Arrow column.
        max_tokens: most tokens of a batch: its longest sequence × how many there are.
        max_sequences: most sequences of a batch; None for no limit.
        bucket: so many sequences, taken at random, are sorted and cut together; None for all. At least some hundred
            batches' worth pads little.
        drop_last: leave out the last batches if they do not make a step of all ranks. Otherwise it is filled up.
        fill: with what: "repeat" the first batches, or "empty" lists, of which `pad_collate` makes a batch that counts
            nothing in the loss. `is_padding` tells which these are.
        shuffle: False for the batches in order, the longest first in each bucket, the same in every epoch.
        seed: ≥ 0; None for one that the ranks agree on.
        size_multiple, length_multiple, oversize, partition: as in `token_budget_batches`.
        rank, world_size: given both; None to ask torch.distributed.

    Raises:
        CapacityError: a sequence alone is over the budget.
        LengthError: a length or a limit is no whole number ≥ 1.
        SettingError: a choice or a rank that there is not; no seed where ranks cannot agree on one.

    Example:
        >>> list(TokenBudgetBatchSampler([10, 1, 1, 1], max_tokens=13, shuffle=False))
        [[0], [1, 2, 3]]

    Cost: see `token_budget_batches`, once for each epoch.
    """

    def __init__(
        self,
        lengths: Any,
        max_tokens: int,
        max_sequences: int | None = None,
        bucket: int | None = 8192,
        drop_last: bool = False,
        *,
        fill: str = "repeat",
        shuffle: bool = True,
        seed: int | None = None,
        size_multiple: int = 1,
        length_multiple: int = 1,
        oversize: str = "error",
        partition: str = "greedy",
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        array = validate_lengths(as_lengths(lengths))
        limits: dict[str, Any] = {
            "max_tokens": max_tokens,
            "max_sequences": max_sequences,
            "bucket": bucket,
            "size_multiple": size_multiple,
            "length_multiple": length_multiple,
            "oversize": oversize,
            "partition": partition,
        }

        def make(seed: int, epoch: int) -> Batches:
            return token_budget_batches(array, random=random_of(seed, epoch) if shuffle else None, **limits)

        settings = {"lengths": digest(array), **limits, "shuffle": bool(shuffle)}
        rank, world_size = rank_and_world(rank, world_size)
        self._rank_batches = RankBatches(
            make,
            lambda _: settings,
            Progress("TokenBudgetBatchSampler", world_size, per_step=1, of_step=world_size),
            rank,
            shared_seed(seed, world_size) if shuffle else 0,
            "drop" if drop_last else "pad",
            one_of(fill, "fill", FILLS),
        )
        self._rank_batches.batches()  # what is wrong with lengths and limits is said now

    def __iter__(self) -> Iterator[list[int]]:
        return self._rank_batches.run()
