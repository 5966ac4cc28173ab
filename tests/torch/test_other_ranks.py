"""A state goes on exactly with another number of ranks, at every step, or is refused with the reason."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from brimful import SettingError
from brimful.torch.samplers import LengthGroupedSampler, PackBatchSampler, PackSampler, TokenBudgetBatchSampler
from tests.torch.sampler_kinds import flat, packs_of, some_lengths

IN_A_STEP = 12
WORLDS = (1, 2, 3, 4, 6)
LENGTHS = some_lengths(103)
PACKS, LATER_PACKS = packs_of(LENGTHS), packs_of(LENGTHS, epoch=2)
CHANGES = list(itertools.permutations(WORLDS, 2))


def ranks_of(make, world) -> list[Any]:
    return [make(rank=rank, world_size=world) for rank in range(world)]


def items_of(sampler, first=0, last=None):
    """The indices that a rank takes, but for those that only keep the ranks in step."""
    padding = getattr(sampler, "is_padding", np.zeros(len(sampler), bool))
    items = [[] if only else item for item, only in zip(list(sampler), padding, strict=True)]
    return flat(items[first:last])


def rest_after(state, make, world):
    """What all ranks still take, going on from a state."""
    rest = []
    for sampler in ranks_of(make, world):
        sampler.load_state_dict(state)
        start = sampler.state_dict()["taken"]
        going_on = list(sampler)
        assert going_on == list(sampler)[start:]  # the pass after it is whole
        rest += items_of(sampler, start)
    return rest


def packs(epoch=0, **settings):
    source = (lambda number: LATER_PACKS if number else PACKS) if settings.pop("afresh", False) else PACKS

    def make(rank, world_size):
        sampler = PackBatchSampler(
            source, LENGTHS, IN_A_STEP // world_size, seed=3, rank=rank, world_size=world_size, **settings
        )
        sampler.set_epoch(epoch)
        return sampler

    return make


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize(
    "make",
    [packs(), packs(window=2), packs(window=None, policy="uneven"), packs(epoch=2, afresh=True, yields="sequences")],
    ids=["pad", "small window", "uneven", "sequences afresh"],
)
def test_batches_of_packs_are_each_trained_on_once(make, before, after):
    everything = sorted(itertools.chain.from_iterable(items_of(sampler) for sampler in ranks_of(make, before)))
    assert everything == list(range(len(everything)))
    for step in range(len(make(rank=0, world_size=before)) + 1):
        samplers = ranks_of(make, before)
        done = [index for sampler in samplers for index in items_of(sampler, 0, step)]
        rest = rest_after(samplers[0].state_dict(taken=step), make, after)
        assert sorted(done + rest) == everything


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_batches_of_packs_of_a_last_step_that_is_dropped_come_at_most_once(before, after):
    """How much is dropped depends on the ranks; all full steps are the same."""
    make = packs(policy="drop")
    for step in range(PACKS.packs // IN_A_STEP + 1):
        samplers = ranks_of(make, before)
        done = [index for sampler in samplers for index in items_of(sampler, 0, step)]
        rest = rest_after(samplers[0].state_dict(taken=step), make, after)
        assert len({*done, *rest}) == len(done + rest) >= PACKS.packs // IN_A_STEP * IN_A_STEP


@pytest.mark.parametrize(("before", "after"), CHANGES)
def test_packs_in_steps_of_another_size_are_refused(before, after):
    for make in (
        lambda **ranks: PackSampler(PACKS, LENGTHS, seed=0, **ranks),
        lambda **ranks: PackBatchSampler(PACKS, LENGTHS, 2, seed=0, **ranks),
    ):
        state = ranks_of(make, before)[0].state_dict(taken=1)
        size = 1 if state["sampler"] == "PackSampler" else 2
        text = (
            rf"^batch_size × world_size was {size * before} when .* and is {size * after} here, so that other batches"
        )
        for sampler in ranks_of(make, after):
            with pytest.raises(SettingError, match=text):
                sampler.load_state_dict(state)


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize("round_up", [True, False])
def test_grouped_sequences_are_each_trained_on_as_often_as_without_a_stop(before, after, round_up):
    def make(rank, world_size):
        return LengthGroupedSampler(
            None,
            IN_A_STEP // world_size,
            lengths=LENGTHS,
            seed=3,
            rank=rank,
            world_size=world_size,
            round_up=round_up,
        )

    everything = Counter(itertools.chain.from_iterable(items_of(sampler) for sampler in ranks_of(make, before)))
    for step in range(-(-len(LENGTHS) // IN_A_STEP) + 1):
        samplers = ranks_of(make, before)
        taken = [min(step * (IN_A_STEP // before), len(sampler)) for sampler in samplers]
        done = [index for sampler, end in zip(samplers, taken, strict=True) for index in items_of(sampler, 0, end)]
        rest = rest_after(samplers[0].state_dict(taken=taken[0]), make, after)
        assert Counter(done + rest) == everything


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize("fill", ["repeat", "empty"])
def test_budget_batches_are_each_trained_on_once_or_refused(before, after, fill):
    def make(rank, world_size):
        return TokenBudgetBatchSampler(LENGTHS, 100, seed=3, bucket=30, rank=rank, world_size=world_size, fill=fill)

    n_steps = len(make(rank=0, world_size=before))
    for step in range(n_steps + 1):
        samplers = ranks_of(make, before)
        state = samplers[0].state_dict(taken=step)
        if step < n_steps and step * before % after:
            text = (
                f"the state was saved after {step * before} batches of all ranks, in the middle of a step of {after};"
            )
            for sampler in ranks_of(make, after):
                with pytest.raises(SettingError, match=f"^{re.escape(text)}"):
                    sampler.load_state_dict(state)
            continue
        done = [index for sampler in samplers for index in items_of(sampler, 0, step)]
        assert sorted(done + rest_after(state, make, after)) == list(range(len(LENGTHS)))


def test_a_rank_without_part_in_the_last_step_cannot_tell_whether_it_was_made():
    """It has taken all of its own before that step, and after it."""
    grouped = [
        LengthGroupedSampler(
            None, 1, lengths=[4, 5, 6, 7, 8], seed=0, rank=rank, world_size=4, round_up=False
        ).state_dict(taken=1)
        for rank in (0, 3)
    ]
    uneven = [
        PackBatchSampler(packs_of([40] * 5), [40] * 5, seed=0, rank=rank, world_size=4, policy="uneven").state_dict(
            taken=1
        )
        for rank in (0, 3)
    ]
    later_grouped = LengthGroupedSampler(None, 4, lengths=[4, 5, 6, 7, 8], seed=0, rank=0, world_size=1, round_up=False)
    later_uneven = PackBatchSampler(packs_of([40] * 5), [40] * 5, 4, seed=0, rank=0, world_size=1, policy="uneven")
    for later, (state_0, state_3) in ((later_grouped, grouped), (later_uneven, uneven)):
        with pytest.raises(
            SettingError,
            match=r"^the state is of a rank that had taken all its 1 items, but rank 0 has 2, so that it does not tell "
            r"whether the last step was made; load the state of rank 0$",
        ):
            later.load_state_dict(state_3)
        later.load_state_dict(state_0)
        assert len(flat(later)) == 1
