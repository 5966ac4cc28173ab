"""All samplers: every index once, equal steps, the same again, another order each epoch, and going on after a stop."""

from __future__ import annotations

import copy
import itertools
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader, Dataset
from torchdata import stateful_dataloader as stateful
from transformers import trainer_pt_utils as peers

import brimful
from brimful import CapacityError, DataError, LengthError, SettingError
from brimful.torch.dataset_lengths import dataset_lengths
from brimful.torch.padding import pad_collate
from brimful.torch.ranks import rank_and_world, shared_seed
from brimful.torch.samplers import LengthGroupedSampler, PackBatchSampler, PackSampler, TokenBudgetBatchSampler
from tests.reference.batching import described_rank
from tests.torch.sampler_kinds import KINDS, MAX_LENGTH, drawing, flat, packs_of, some_lengths

every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
all_lengths = st.lists(st.integers(1, MAX_LENGTH), max_size=60)
worlds = st.integers(1, 5)
seeds = st.integers(0, 2**62)


# What every sampler promises


@every_kind
@settings(max_examples=30)
@given(lengths=all_lengths, seed=seeds, world=worlds, epoch=st.integers(0, 9))
def test_every_index_stands_once_beside_documented_repeats(kind, lengths, seed, world, epoch):
    once: Counter[int] = Counter()
    more: Counter[int] = Counter()
    sizes, dropped = [], set()
    for rank in range(world):
        sampler = kind.make(lengths, seed, rank, world)
        sampler.set_epoch(epoch)
        items = list(sampler)
        sizes.append(len(items))
        assert len(sampler) == len(items)
        padding = getattr(sampler, "is_padding", np.zeros(len(items), bool))
        once.update(flat(item for item, repeated in zip(items, padding, strict=True) if not repeated))
        more.update(flat(item for item, repeated in zip(items, padding, strict=True) if repeated))
        dropped.add(getattr(sampler, "dropped", 0))
    n = kind.indices(lengths)
    assert set(once) <= set(range(n))
    if isinstance(sampler, LengthGroupedSampler):  # repeats to full batches are among the others
        assert sum(once.values()) == (len(lengths) if not kind.even else -(-n // (3 * world)) * 3 * world)
        assert n == 0 or max(once.values()) - min(once.values()) <= 1
    else:
        assert not once or max(once.values()) == 1
    if not kind.dropping:
        assert len(once) == n
        assert dropped == {0}
    else:
        [n_dropped] = dropped
        assert n_dropped < world
        assert (len(once) == n) == (n_dropped == 0)
    assert set(more) <= set(once)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= (0 if kind.even else 1)


@every_kind
@settings(max_examples=10)
@given(lengths=all_lengths, seed=seeds, world=worlds)
def test_the_same_seed_gives_the_same_order(kind, lengths, seed, world):
    sampler = kind.make(lengths, seed, world - 1, world)
    assert list(sampler) == list(sampler) == list(kind.make(lengths, seed, world - 1, world))


@every_kind
def test_epochs_and_seeds_differ_and_an_epoch_comes_back(kind):
    lengths = some_lengths()
    sampler = kind.make(lengths, 3, 0, 2)
    orders = []
    for epoch in (0, 1, 2, 0):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
    orders.append(
        list(kind.make(lengths, 40, 0, 2))
    )  # seed 4 in epoch 0 is seed 3 in epoch 1: what counts is their sum
    assert orders[0] == orders[3]
    assert all(one != other for one, other in itertools.combinations([*orders[:3], orders[4]], 2))


# Going on after a stop


def whole_run(sampler, epochs):
    """What is taken in each epoch without any stop."""
    taken = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        taken.append(list(sampler))
    return taken


@every_kind
@settings(max_examples=25)
@given(lengths=all_lengths, world=worlds, data=st.data())
def test_going_on_equals_never_having_stopped(kind, lengths, world, data):
    """Stopped as often as one likes, anywhere, also at the start and the end of an epoch, and across epochs."""
    rank = data.draw(st.integers(0, world - 1))
    expected = whole_run(kind.make(lengths, 7, rank, world), epochs=3)
    sampler = kind.make(lengths, 7, rank, world)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        taken: list[object] = []
        for _ in range(data.draw(st.integers(0, 2))):
            left = len(expected[epoch]) - len(taken)
            taken += itertools.islice(sampler, data.draw(st.integers(0, left)))
            state = json.loads(json.dumps(sampler.state_dict()))
            sampler = kind.make(lengths, 8, rank, world)  # its seed is that of the state from then on
            sampler.load_state_dict(state)
            assert sampler.state_dict() == state
            if data.draw(st.booleans()):
                sampler.set_epoch(epoch)
        taken += sampler
        assert taken == expected[epoch]
        assert sampler.state_dict()["taken"] == len(expected[epoch])


@every_kind
def test_a_pass_after_the_resumed_one_starts_at_the_beginning(kind):
    lengths = some_lengths()
    sampler = kind.make(lengths, 0, 0, 1)
    whole = list(sampler)
    next(itertools.islice(sampler, 2, 3))
    state = sampler.state_dict()
    again = kind.make(lengths, 0, 0, 1)
    again.load_state_dict(state)
    assert (list(again), list(again)) == (whole[3:], whole)
    again.load_state_dict(state)
    again.set_epoch(1)
    assert len(list(again)) == len(again)


@every_kind
def test_what_a_loader_took_ahead_can_be_taken_back(kind):
    sampler = kind.make(some_lengths(), 0, 0, 1)
    whole = list(sampler)
    list(itertools.islice(sampler, 9))
    state = sampler.state_dict(taken=4)
    sampler.load_state_dict(state)
    assert list(sampler) == whole[4:]
    with pytest.raises(SettingError, match=rf"^of {len(whole)} items, {len(whole) + 1} cannot have been taken$"):
        sampler.state_dict(taken=len(whole) + 1)
    with pytest.raises(SettingError, match=r"^the number of items taken is a whole number from 0 to .*, not -1$"):
        sampler.state_dict(taken=-1)


@pytest.mark.parametrize("per_device", [1, 2, 3, 6])
def test_grouped_goes_on_with_other_ranks_that_take_as_much_in_a_step(per_device):
    """Each step holds the same sequences, whoever takes them; in the middle of a step there is no such place."""
    lengths, steps = some_lengths(200), 7

    def ranks(per_device):
        world = 12 // per_device
        make = [
            LengthGroupedSampler(None, per_device, lengths=lengths, seed=1, rank=r, world_size=world)
            for r in range(world)
        ]
        return make, per_device

    def step_sets(samplers, per_device):
        taken = [list(sampler) for sampler in samplers]
        return [
            sorted(flat(indices[start : start + per_device] for indices in taken))
            for start in range(0, len(taken[0]), per_device)
        ]

    samplers, before = ranks(4)
    expected = step_sets(samplers, before)
    list(itertools.islice(samplers[1], steps * before))
    state = samplers[1].state_dict()
    later, after = ranks(per_device)
    for sampler in later:
        sampler.load_state_dict(state)
    assert step_sets(later, after) == expected[steps:]
    list(itertools.islice(samplers[1], steps * before + 1))
    with pytest.raises(SettingError, match=r"in the middle of a step, after 1 of 4 items; only with 3 ranks, as then"):
        later[0].load_state_dict(samplers[1].state_dict())


def test_grouped_with_other_steps_is_refused():
    lengths = some_lengths(200)
    state = LengthGroupedSampler(None, 4, lengths=lengths, seed=1, rank=0, world_size=2).state_dict()
    sampler = LengthGroupedSampler(None, 4, lengths=lengths, seed=1, rank=0, world_size=4, mega_batch_mult=6)
    with pytest.raises(
        SettingError,
        match=r"^per_device_batch_size × world_size was 8 when the state was saved and is 16 here, so that other "
        "batches would follow; resume with what it was, or start anew$",
    ):
        sampler.load_state_dict(state)


@every_kind
@pytest.mark.parametrize("world", [1, 2, 4, 5, 6, 8])
def test_other_ranks_go_on_exactly_or_are_refused(kind, world):
    """After 2 steps of 4 ranks, 8 items were taken: these, and no others, are missing from what ranks still take."""
    lengths = some_lengths(300)
    first = [kind.make(lengths, 1, rank, 4) for rank in range(4)]
    taken = flat(
        item
        for sampler in first
        for item in itertools.islice(sampler, 2 * getattr(sampler, "per_device_batch_size", 1))
    )
    state = first[0].state_dict()
    later = [kind.make(lengths, 1, rank, world) for rank in range(world)]
    if world != 4 and not (kind.of_any_world and 8 % world == 0):
        for sampler in later:
            with pytest.raises(
                SettingError, match=r"^(the state was saved after 8 batches .* divides|.*world_size was )"
            ):
                sampler.load_state_dict(state)
        return
    rest = []
    for sampler in later:
        sampler.load_state_dict(state)
        start = sampler.state_dict()["taken"]
        padding = getattr(sampler, "is_padding", np.zeros(len(sampler), bool))[start:]
        rest += [item for item, repeated in zip(sampler, padding, strict=True) if not repeated]
    assert not set(taken) & set(flat(rest)) or isinstance(first[0], LengthGroupedSampler)
    if not kind.dropping:
        assert set(taken) | set(flat(rest)) == set(range(kind.indices(lengths)))


def test_the_end_of_an_epoch_is_its_end_for_any_ranks():
    lengths = some_lengths()
    sampler = TokenBudgetBatchSampler(lengths, 100, seed=0, rank=0, world_size=4)
    list(sampler)
    later = TokenBudgetBatchSampler(lengths, 100, seed=0, rank=2, world_size=3)
    later.load_state_dict(sampler.state_dict())
    assert list(later) == []
    assert len(list(later)) == len(later)


@every_kind
def test_a_state_of_an_epoch_that_is_over_leaves_a_later_one_alone(kind):
    """torchdata's loader loads its state when the next pass begins, after set_epoch, and begins twice."""
    lengths = some_lengths()
    sampler = kind.make(lengths, 0, 0, 1)
    expected = whole_run(sampler, 2)
    sampler.set_epoch(0)
    list(sampler)
    state = sampler.state_dict()
    later = kind.make(lengths, 0, 0, 1)
    later.set_epoch(1)
    iter(later)
    later.load_state_dict(state)
    assert [list(later), list(later)] == [expected[1], expected[1]]
    later.load_state_dict(state)  # but not one that is under way, or over
    assert (later.state_dict()["epoch"], list(later)) == (0, [])


@every_kind
def test_states_of_others_are_refused(kind):
    lengths = some_lengths()
    sampler = kind.make(lengths, 0, 0, 1)
    list(itertools.islice(sampler, 3))
    state = sampler.state_dict()
    name = type(sampler).__name__
    for wrong in ({}, None, {**state, "sampler": "RandomSampler"}):
        with pytest.raises(SettingError, match=rf"^a state of {name} is what its state_dict\(\) gave, not "):
            sampler.load_state_dict(wrong)
    with pytest.raises(SettingError, match=r"^the taken of the state is a whole number from 0 .*, not -1$"):
        sampler.load_state_dict({**state, "taken": -1})
    with pytest.raises(SettingError, match=r"^of \d+ items, \d+ cannot have been taken$"):
        sampler.load_state_dict({**state, "taken": state["size"] + 1})
    with pytest.raises(LengthError, match=r"^the per_step of the state is a whole number from 1"):
        sampler.load_state_dict({**state, "per_step": 0})
    with pytest.raises(SettingError, match=r"^the state has no settings; it is not what "):
        sampler.load_state_dict({**state, "settings": None})
    other = kind.make(lengths[::-1], 0, 0, 1)
    with pytest.raises(SettingError, match=r"^(lengths|the assignment) was '.*' when the state was saved and is '"):
        other.load_state_dict(state)
    with pytest.raises(SettingError, match=r"^epoch is a whole number from 0 "):
        sampler.set_epoch(-1)
    assert sampler.state_dict() == state


# Loaders


@pytest.mark.filterwarnings("ignore")  # torchdata's own
@pytest.mark.parametrize(
    ("name", "num_workers"), [*((name, 0) for name in KINDS), ("grouped", 2), ("budget", 2), ("packs", 2)]
)
def test_with_torchdata(name, num_workers):
    """A loader that is saved anywhere and goes on in another process of training, twice, across epochs."""
    kind, lengths = KINDS[name], some_lengths(41)
    dataset = list(range(kind.indices(lengths)))

    def loader():
        sampler = kind.make(lengths, 0, 0, 2)
        if isinstance(next(iter(sampler)), list):
            how = {"batch_sampler": sampler}
        else:
            how = {"sampler": sampler, "batch_size": getattr(sampler, "per_device_batch_size", 1)}
        return stateful.StatefulDataLoader(dataset, collate_fn=list, num_workers=num_workers, **how), sampler

    def epoch_of(loading, sampler, epoch):
        sampler.set_epoch(epoch)
        return list(loading)

    expected = []
    for epoch in range(3):
        loading, sampler = loader()
        expected.append(epoch_of(loading, sampler, epoch))
    for stop in (1, 3, len(expected[0])):
        loading, sampler = loader()
        taken = list(itertools.islice(loading, stop)) if stop < len(expected[0]) else list(loading)
        assert taken == expected[0][:stop]
        state = copy.deepcopy(loading.state_dict())
        loading, sampler = loader()
        loading.load_state_dict(state)
        if stop < len(expected[0]):
            rest = iter(loading)
            taken.append(next(rest))
            state = copy.deepcopy(loading.state_dict())
            del rest
            loading, sampler = loader()
            loading.load_state_dict(state)
            taken += loading
        assert taken == expected[0]
        assert [epoch_of(loading, sampler, epoch) for epoch in (1, 2)] == expected[1:]


def test_with_a_plain_loader():
    lengths = some_lengths(50)
    dataset: Any = [{"input_ids": list(range(length)), "index": index} for index, length in enumerate(lengths)]
    sampler = LengthGroupedSampler(dataset, 4, seed=0)
    batches = list(DataLoader(dataset, batch_size=4, sampler=sampler, collate_fn=pad_collate))
    assert [batch["index"].tolist() for batch in batches] == [
        list(sampler)[start : start + 4] for start in range(0, len(sampler), 4)
    ]
    budget = TokenBudgetBatchSampler(lengths, 90, bucket=20, seed=0, rank=1, world_size=2, fill="empty")
    loaded = list(DataLoader(dataset, batch_sampler=budget, collate_fn=pad_collate))
    assert all(batch["input_ids"].numel() <= 90 for batch in loaded)
    assert len(loaded) == len(budget)


# Length-grouped


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 30).flatmap(lambda length: st.sampled_from((length, -length))), max_size=80),
    batch_size=st.integers(1, 4),
    mult=st.sampled_from((None, 1, 3)),
    round_up=st.booleans(),
    seed=seeds,
    epoch=st.integers(0, 3),
)
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_the_described_order_index_for_index(world, lengths, batch_size, mult, round_up, seed, epoch):
    for rank in range(world):
        sampler = LengthGroupedSampler(
            None,
            batch_size,
            "length",
            mult,
            seed,
            round_up,
            order="xtuner",
            rank=rank,
            world_size=world,
            lengths=lengths,
        )
        sampler.set_epoch(epoch)
        draw = drawing(seed + epoch)
        assert list(sampler) == described_rank(lengths, batch_size, rank, world, mult, round_up, draw)


@pytest.mark.parametrize("n", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("batch_size", [1, 4, 16])
def test_as_transformers_samples(n, batch_size):
    """Pass after pass, from one generator each."""
    lengths = some_lengths(n)
    one, other = (torch.Generator().manual_seed(5) for _ in range(2))
    theirs = peers.LengthGroupedSampler(batch_size, lengths=lengths, generator=one)
    ours = LengthGroupedSampler.from_batch_size(batch_size, lengths=lengths, generator=other)
    assert len(ours) == len(theirs)
    for _ in range(3):
        assert list(ours) == list(theirs)
    dataset = [{"tokens": [0] * length} for length in lengths]
    theirs = peers.LengthGroupedSampler(batch_size, dataset, None, "tokens", one)
    ours = LengthGroupedSampler.from_batch_size(batch_size, dataset, None, "tokens", other)
    assert list(ours) == list(theirs)


def test_a_generator_is_gone_on_with_where_it_was():
    lengths = some_lengths()
    whole = LengthGroupedSampler.from_batch_size(4, lengths=lengths, generator=torch.Generator().manual_seed(3))
    expected = [list(whole) for _ in range(3)]
    sampler = LengthGroupedSampler.from_batch_size(4, lengths=lengths, generator=torch.Generator().manual_seed(3))
    assert list(sampler) == expected[0]
    assert list(itertools.islice(sampler, 10)) == expected[1][:10]
    later = LengthGroupedSampler.from_batch_size(4, lengths=lengths)
    later.load_state_dict(sampler.state_dict())
    assert [list(later), list(later)] == [expected[1][10:], expected[2]]


def test_without_a_generator_torch_seeds_it():
    lengths = some_lengths()
    orders = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        sampler = LengthGroupedSampler.from_batch_size(4, lengths=lengths)
        orders.append([list(sampler), list(sampler)])
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0][0] != orders[0][1]


class Rows(Dataset[dict[str, list[int]]]):
    """Rows of ones, with whatever properties are given."""

    def __init__(self, lengths, **properties):
        self._lengths = lengths
        self.__dict__ |= properties

    def __len__(self):
        return len(self._lengths)

    def __getitem__(self, index):
        return {"input_ids": [1] * self._lengths[index]}


@pytest.mark.parametrize(
    "form",
    [
        list,
        tuple,
        np.array,
        lambda lengths: np.array(lengths, np.uint8),
        torch.tensor,
        pa.array,
        lambda lengths: pa.chunked_array([lengths[:4], lengths[4:]]),
    ],
    ids=["list", "tuple", "array", "uint8", "tensor", "Arrow array", "Arrow column"],
)
def test_lengths_in_every_form(form):
    lengths = [5, 3, 9, 2, 7, 7, 1]
    expected = list(LengthGroupedSampler(None, 2, seed=0, lengths=lengths))
    assert list(LengthGroupedSampler(Rows(lengths, length=form(lengths)), 2, seed=0)) == expected
    assert list(LengthGroupedSampler(Rows(lengths, n_tokens=form(lengths)), 2, "n_tokens", seed=0)) == expected
    assert list(LengthGroupedSampler(None, 2, seed=0, lengths=form(lengths))) == expected
    assert list(TokenBudgetBatchSampler(form(lengths), 20, seed=0)) == list(
        TokenBudgetBatchSampler(lengths, 20, seed=0)
    )


def test_lengths_of_hugging_face_datasets():
    lengths = [5, 3, 9, 2]
    rows = {"input_ids": [[1] * length for length in lengths]}
    dataset = datasets.Dataset.from_dict({**rows, "length": lengths})
    assert dataset_lengths(dataset).tolist() == lengths
    assert dataset_lengths(dataset.remove_columns("length")).tolist() == lengths
    dataset = dataset.rename_column("length", "n")
    dataset.length = dataset["n"]
    assert dataset_lengths(dataset).tolist() == lengths


def test_lengths_that_are_missing_are_counted():
    assert dataset_lengths(Rows([5, 3])).tolist() == [5, 3]
    parts = [Rows([5, 3], length=[5, 3]), ConcatDataset([Rows([2]), Rows([4, 4], length=torch.tensor([-4, 4]))])]
    assert dataset_lengths(ConcatDataset(parts)).tolist() == [5, 3, 2, -4, 4]


def test_counting_shows_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert dataset_lengths(Rows([5, 3])).tolist() == [5, 3]
    assert "counting tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("dataset", "error", "text"),
    [
        (Rows([5, 0]), LengthError, r"^a length is at least 1 token .* item 1 is 0; leave empty sequences out$"),
        (Rows([5, 3], length=[5, 0]), LengthError, r"^a length is at least 1 token .* item 1 is 0"),
        (Rows([5, 3], length=[5]), LengthError, "^length of the dataset has 1 items for 2 rows$"),
        (Rows([5, 3], length=[5, 2.5]), LengthError, r"^lengths are whole numbers, but item 1 is 2\.5"),
        (Rows([5, 3], length=[5, None]), LengthError, "^lengths are whole numbers, but item 1 is None"),
        (Rows([5, 3], length=pa.array([5, None])), LengthError, "^lengths are whole numbers, but some are null"),
        (
            Rows([5, 3], length=lambda: [5, 3]),
            LengthError,
            "^lengths are a list or an array of whole numbers, not <fun",
        ),
        (Rows([5, 3], length=torch.tensor([5.0, 3.0])), LengthError, r"^lengths are whole numbers, but item 0 is 5\.0"),
        (
            [{"text": "a"}],
            DataError,
            "^the dataset has no property or column 'length', and row 0 no input_ids to count; give it one: a list of",
        ),
        ([7], DataError, "^the dataset has no property or column 'length', and row 0 no input_ids"),
        (None, SettingError, "^a dataset that is sampled has a length and rows by index, not None$"),
        (iter([1]), SettingError, "^a dataset that is sampled has a length and rows by index, not <list_iterator"),
    ],
)
def test_datasets_without_lengths_are_refused(dataset, error, text):
    with pytest.raises(error, match=text):
        LengthGroupedSampler(dataset, 2, seed=0)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"per_device_batch_size": 0}, LengthError, "^per_device_batch_size is a whole number from 1 .*, not 0$"),
        ({"mega_batch_mult": 0}, LengthError, "^mega_batch_mult is a whole number from 1 .*, not 0$"),
        ({"seed": -1}, SettingError, "^seed is a whole number from 0 .*, not -1$"),
        ({"order": "longest"}, SettingError, "^order is one of shuffled, xtuner, not 'longest'$"),
        (
            {"rank": 0},
            SettingError,
            "^rank and world_size are given both, or neither to take those of torch.distributed$",
        ),
        ({"rank": 2, "world_size": 2}, SettingError, "^rank is from 0 to 1 among 2 ranks, not 2$"),
        ({"lengths": [1, 2, 3]}, LengthError, "^lengths are one for each of 2 rows of the dataset, not 3$"),
        (
            {"generator": 5},
            SettingError,
            "^a generator is a torch.Generator, or None to draw by seed and epoch, not 5$",
        ),
        ({"modality": [1]}, SettingError, "^modality has one item for each of 2 sequences"),
        (
            {"seed": None, "rank": 0, "world_size": 2},
            SettingError,
            "^2 ranks agree on a seed over torch.distributed, which does not connect them here; initialise it",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, error, text):
    with pytest.raises(error, match=text):
        LengthGroupedSampler(**{"dataset": Rows([5, 3]), "per_device_batch_size": 2, "seed": 0, **settings})


def test_transformers_call_needs_lengths():
    with pytest.raises(SettingError, match=r"^lengths are of a dataset, or given; give one of both$"):
        LengthGroupedSampler.from_batch_size(8)


def test_a_modality_groups_as_signs_do():
    lengths = some_lengths()
    kinds = [index % 2 for index in range(len(lengths))]
    signed = [length if kind else -length for length, kind in zip(lengths, kinds, strict=True)]
    by_sign = list(LengthGroupedSampler(None, 2, seed=0, lengths=signed))
    assert list(LengthGroupedSampler(None, 2, seed=0, lengths=lengths, modality=kinds)) == by_sign
    assert list(LengthGroupedSampler(None, 2, seed=0, lengths=lengths)) != by_sign


# Token budget and packs


def test_a_sequence_over_the_budget_is_named_when_the_sampler_is_made():
    with pytest.raises(CapacityError, match=r"^sequence 1 has 20 tokens, more than max_tokens 16 "):
        TokenBudgetBatchSampler([3, 20], 16)
    assert sorted(TokenBudgetBatchSampler([3, 20], 16, oversize="alone")) == [[0], [1]]


def test_the_order_of_a_budget_sampler_without_shuffling():
    sampler = TokenBudgetBatchSampler([1, 10, 1, 1], 13, shuffle=False, rank=0, world_size=1)
    assert list(sampler) == [[1], [0, 2, 3]]
    sampler.set_epoch(1)
    assert list(sampler) == [[1], [0, 2, 3]]


def test_padding_is_told_apart():
    lengths = [10, 9, 8]
    for fill, last in (("repeat", [0]), ("empty", [])):
        sampler = TokenBudgetBatchSampler(lengths, 10, shuffle=False, rank=1, world_size=2, fill=fill)
        assert list(sampler) == [[1], last]
        assert sampler.is_padding.tolist() == [False, True]
    sampler = TokenBudgetBatchSampler(lengths, 10, drop_last=True, shuffle=False, rank=1, world_size=2)
    assert (list(sampler), sampler.dropped) == ([[1]], 1)
    with pytest.raises(SettingError, match=r"^fill is one of repeat, empty, not 'zeros'$"):
        TokenBudgetBatchSampler(lengths, 10, fill="zeros")


@pytest.mark.parametrize("kind", [PackSampler, PackBatchSampler])
def test_packs_come_in_steps_that_are_about_even(kind):
    lengths = np.clip(np.random.default_rng(0).lognormal(6.3, 1.2, 20_000), 1, 8192).astype(np.int64)
    packs = brimful.assign(brimful.plan(lengths, 8192), lengths)
    sampler = kind(packs, lengths, seed=0, rank=0, world_size=8)
    before, now = sampler.imbalance
    assert before > 0.15
    assert now < before / 10
    costs = [int((lengths[packs[pack]] ** 2).sum()) for pack in range(packs.packs)]
    ranks = [flat(kind(packs, lengths, seed=0, rank=rank, world_size=8)) for rank in range(8)]
    steps = [[costs[pack] for pack in step] for step in zip(*ranks, strict=True)]
    full = steps[: packs.packs // 8]
    assert sum(map(max, full)) / (sum(map(sum, full)) / 8) - 1 == pytest.approx(now)


def test_sequences_of_packs_fill_rows_in_every_epoch():
    """Packed on the fly: new company in each epoch, and every batch is one row of at most max_length."""
    from brimful.torch import PackedCollator

    lengths = some_lengths(60)
    rows: Any = [{"input_ids": [index] * length} for index, length in enumerate(lengths)]
    plan = brimful.plan(lengths, MAX_LENGTH)
    sampler = PackBatchSampler(
        lambda epoch: brimful.assign(plan, lengths, 0, epoch), lengths, yields="sequences", seed=0
    )
    collator = PackedCollator(MAX_LENGTH, pad_token_id=0)
    company = []
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        assert len(sampler) == plan.packs
        for batch in DataLoader(rows, batch_sampler=sampler, collate_fn=collator.from_sequences):
            assert batch["input_ids"].shape == (1, MAX_LENGTH)
        company.append({frozenset(batch) for batch in sampler})
    assert company[0] != company[1]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (
            {"assignment": [[0], [1]]},
            SettingError,
            "^packs are those of a PackAssignment, or of a function of the epoch, not",
        ),
        ({"assignment": lambda _: 3}, SettingError, "^the function of the epoch gives a PackAssignment, not 3$"),
        ({"lengths": [1]}, LengthError, "^an assignment of 2 sequences has as many lengths, not 1$"),
        ({"batch_size": 0}, LengthError, "^batch_size is a whole number from 1"),
        ({"window": 0}, LengthError, "^window is a whole number from 1"),
        ({"policy": "wrap"}, SettingError, "^policy is one of pad, drop, uneven, not 'wrap'$"),
        ({"yields": "rows"}, SettingError, "^yields is one of packs, sequences, not 'rows'$"),
    ],
)
def test_packs_that_cannot_be_sampled_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        PackBatchSampler(**{"assignment": packs_of([5, 9]), "lengths": [5, 9], "seed": 0, **arguments})


# Ranks


def test_ranks_are_given_or_one():
    assert rank_and_world() == (0, 1)
    assert rank_and_world(np.int64(1), 2) == (1, 2)
    torch.manual_seed(0)
    seeds = [shared_seed(None, 1), shared_seed(None, 1)]
    torch.manual_seed(0)
    assert seeds == [shared_seed(None, 1), shared_seed(None, 1)]
    assert seeds[0] != seeds[1]


def test_two_processes_agree_on_seeds_and_cover_the_data(tmp_path):
    """Neither is given a seed, a rank or a number of ranks."""
    command = [sys.executable, "-m", "tests.torch.two_ranks"]
    root = Path(__file__).resolve().parents[2]
    processes = [
        subprocess.Popen(  # noqa: S603
            [*command, str(rank), str(tmp_path / "meet")],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    answers = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    one, other = (json.loads(out.splitlines()[-1]) for out, _ in answers)
    for name, kind in KINDS.items():
        assert one[name][0] == other[name][0], name
        if kind.even:
            assert one[name][1] == other[name][1], name
        if not kind.dropping:
            assert set(flat(one[name][2] + other[name][2])) == set(range(kind.indices(some_lengths()))), name
    for rank, found in enumerate((one, other)):
        sampler = LengthGroupedSampler(None, 2, lengths=some_lengths(), seed=5, rank=rank, world_size=2)
        assert found["with a seed"] == [rank, 2, list(sampler)]
