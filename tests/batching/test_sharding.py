"""Every batch goes to one rank, and all ranks make equally many steps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from brimful import LengthError, SettingError
from brimful.batching import shard

WORLDS = range(1, 17)


@pytest.mark.parametrize("world", WORLDS)
def test_pad_loses_nothing_and_tells_repeats_apart(world):
    for n in range(201):
        for fill in ("repeat", "empty"):
            ranks = [shard(n, rank, world, "pad", fill) for rank in range(world)]
            assert {len(rank) for rank in ranks} == {(n + world - 1) // world}
            real = [int(index) for rank in ranks for index in rank.indices[~rank.is_padding]]
            assert sorted(real) == list(range(n))
            padding = [int(index) for rank in ranks for index in rank.indices[rank.is_padding]]
            assert len(padding) == -n % world
            if fill == "empty":
                assert set(padding) <= {-1}
            else:
                assert all(0 <= index < n for index in padding)
            assert all(not rank.is_padding[:-1].any() for rank in ranks)
            assert {rank.dropped for rank in ranks} == {0}


@pytest.mark.parametrize("world", WORLDS)
def test_drop_drops_less_than_a_step_and_counts_it(world):
    for n in range(201):
        ranks = [shard(n, rank, world, "drop") for rank in range(world)]
        assert {len(rank) for rank in ranks} == {n // world}
        taken = sorted(int(index) for rank in ranks for index in rank.indices)
        assert taken == list(range(len(taken)))
        assert {rank.dropped for rank in ranks} == {n - len(taken)}
        assert n - len(taken) < world
        assert not any(rank.is_padding.any() for rank in ranks)


@pytest.mark.parametrize("world", WORLDS)
def test_uneven_loses_nothing_and_repeats_nothing(world):
    for n in range(201):
        ranks = [shard(n, rank, world, "uneven") for rank in range(world)]
        assert sorted(int(index) for rank in ranks for index in rank.indices) == list(range(n))
        steps = [len(rank) for rank in ranks]
        assert steps == sorted(steps, reverse=True)
        assert steps[0] - steps[-1] <= 1


def test_steps_are_filled_in_turn():
    """So that the order of training is that of the batches, whatever the number of ranks."""
    for world in WORLDS:
        ranks = [shard(48, rank, world, "drop").indices for rank in range(world)]
        assert np.stack(ranks).T.ravel().tolist() == list(range(48 - 48 % world))


def test_few_batches_on_many_ranks():
    assert [shard(9, rank, 8).indices.tolist() for rank in (0, 1, 7)] == [[0, 8], [1, 0], [7, 6]]
    assert [shard(1, rank, 8).indices.tolist() for rank in (0, 1, 7)] == [[0], [0], [0]]
    assert [shard(1, rank, 8, "drop").dropped for rank in (0, 7)] == [1, 1]
    for policy in ("pad", "drop", "uneven"):
        assert [len(shard(0, rank, 8, policy)) for rank in (0, 7)] == [0, 0]


def test_a_shard_survives_pickling():
    again = pickle.loads(pickle.dumps(shard(5, 1, 2)))  # noqa: S301
    assert again.indices.tolist() == [1, 3, 0]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((5, 2, 2), SettingError, "^rank is from 0 to 1 among 2 ranks, not 2$"),
        ((5, -1, 2), SettingError, "^rank is a whole number from 0 to .*, not -1$"),
        ((5, True, 2), SettingError, "^rank is a whole number from 0 to .*, not True$"),
        ((5, 0, 0), LengthError, "^the number of ranks is a whole number from 1 to 2147483647, not 0$"),
        ((-5, 0, 2), SettingError, "^the number of batches is a whole number from 0 to .*, not -5$"),
        ((2.5, 0, 2), SettingError, r"^the number of batches is a whole number from 0 to .*, not 2\.5$"),
        ((5, 0, 2, "wrap"), SettingError, "^policy is one of pad, drop, uneven, not 'wrap'$"),
        ((5, 0, 2, "pad", "zero"), SettingError, "^fill is one of repeat, empty, not 'zero'$"),
    ],
)
def test_what_cannot_be_dealt_out_is_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        shard(*arguments)
