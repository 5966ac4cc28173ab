"""Every kind of sampler, for the property tests that all of them pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import brimful
from brimful.torch.samplers import LengthGroupedSampler, PackBatchSampler, PackSampler, TokenBudgetBatchSampler

MAX_LENGTH = 40


@dataclass(frozen=True)
class Kind:
    """How to make a sampler, and what it promises.

    Args:
        make: (lengths, seed, rank, world_size) to a sampler.
        indices: how many different indices there are to give, for lengths.
        even: do all ranks take equally many items?
        dropping: may indices be left out?
        of_any_world: can it be resumed with another number of ranks that divides what was taken?
    """

    make: Callable[[list[int], int, int, int], Any]
    indices: Callable[[list[int]], int] = len
    even: bool = True
    dropping: bool = False
    of_any_world: bool = False


def grouped(**settings):
    batch_size = settings.pop("batch_size", 3)

    def make(lengths, seed, rank, world_size):
        return LengthGroupedSampler(
            None, batch_size, seed=seed, rank=rank, world_size=world_size, lengths=lengths, **settings
        )

    return make


def signed(**settings):
    """Every third sequence with images."""

    def make(lengths, seed, rank, world_size):
        kinds = [-length if index % 3 else length for index, length in enumerate(lengths)]
        return grouped(**settings)(kinds, seed, rank, world_size)

    return make


def budget(**settings):
    def make(lengths, seed, rank, world_size):
        return TokenBudgetBatchSampler(lengths, 100, seed=seed, rank=rank, world_size=world_size, **settings)

    return make


def packs_of(lengths, epoch=0):
    return brimful.assign(brimful.plan(lengths, MAX_LENGTH), lengths, epoch=epoch)


def packs(kind=PackBatchSampler, afresh=False, **settings):
    def make(lengths, seed, rank, world_size):
        source = (lambda epoch: packs_of(lengths, epoch)) if afresh else packs_of(lengths)
        return kind(source, lengths, seed=seed, rank=rank, world_size=world_size, **settings)

    return make


def n_packs(lengths):
    return packs_of(lengths).packs


KINDS = {
    "grouped": Kind(grouped(mega_batch_mult=2)),
    "grouped, as described": Kind(grouped(order="xtuner")),
    "grouped, not rounded up": Kind(grouped(round_up=False), even=False),
    "grouped, two kinds": Kind(signed(mega_batch_mult=1)),
    "grouped, two kinds, as described": Kind(signed(batch_size=1, order="xtuner", round_up=False), even=False),
    "budget": Kind(budget(), of_any_world=True),
    "budget, small buckets": Kind(budget(bucket=20, fill="empty"), of_any_world=True),
    "budget, optimal": Kind(budget(partition="optimal", size_multiple=2, length_multiple=4), of_any_world=True),
    "budget, last dropped": Kind(budget(bucket=30, drop_last=True), dropping=True, of_any_world=True),
    "packs": Kind(packs(PackSampler), n_packs),
    "packs, last dropped": Kind(packs(PackSampler, policy="drop", window=2), n_packs, dropping=True),
    "batches of packs": Kind(packs(batch_size=2), n_packs),
    "batches of packs, uneven": Kind(packs(batch_size=3, policy="uneven", window=None), n_packs, even=False),
    "packs as sequences": Kind(packs(yields="sequences")),
    "packs as sequences, afresh": Kind(packs(batch_size=2, yields="sequences", afresh=True)),
}


def flat(items) -> list[int]:
    """The indices in what samplers give: numbers, or lists of them."""
    return [index for item in items for index in (item if isinstance(item, list) else [item])]


def some_lengths(n: int = 101) -> list[int]:
    lengths: list[int] = np.random.default_rng(n).integers(1, MAX_LENGTH + 1, n).tolist()
    return lengths


def drawing(seed: int) -> Callable[[int], list[int]]:
    """Permutations of torch's generator, as lists."""
    generator = torch.Generator().manual_seed(seed)
    return lambda n: torch.randperm(n, generator=generator).tolist()
