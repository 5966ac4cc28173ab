"""The grouped order is that of the description, index for index; shuffled, it pads no more and keeps the groups."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import LengthError, SettingError
from brimful.batching import Batches, length_grouped_order
from brimful.batching.length_grouped import default_mega_batch_mult, split_signs
from tests.reference.batching import described_default, described_order, described_rank, in_batches, padded_tokens


@st.composite
def signed_lengths(draw: st.DrawFn, most: int = 90) -> list[int]:
    """Lengths with many ties or few, of one kind or of both."""
    length = draw(st.sampled_from((st.integers(1, 5), st.integers(1, 100), st.integers(1, 2**31 - 1))))
    kind = draw(st.sampled_from(("images", "text", "both")))
    lengths = draw(st.lists(length, max_size=most))
    signs = {"images": st.just(1), "text": st.just(-1), "both": st.sampled_from((1, -1))}[kind]
    return [length * draw(signs) for length in lengths]


worlds = st.sampled_from((1, 2, 3, 4, 8))
mults = st.sampled_from((None, 1, 2, 5))


def drawing(seed):
    """Permutations as lists."""
    random = np.random.default_rng(seed)
    return lambda n: random.permutation(n).tolist()


def ours(lengths, total_batch, mult, order, round_up, seed):
    sizes, has_image = split_signs(lengths)
    draw = np.random.default_rng(seed).permutation
    return length_grouped_order(
        sizes, draw, total_batch, mult, has_image=has_image, order=order, round_up=round_up
    ).tolist()


@settings(max_examples=300)
@given(signed_lengths(), st.integers(1, 5), worlds, mults, st.booleans(), st.integers(0, 99))
def test_the_order_is_the_one_described(lengths, batch_size, world, mult, round_up, seed):
    """One kind or two, with and without ties, repeats and remainders; on every rank."""
    indices = ours(lengths, batch_size * world, mult, "xtuner", round_up, seed)
    for rank in range(world):
        expected = described_rank(lengths, batch_size, rank, world, mult, round_up, drawing(seed))
        assert indices[rank::world] == expected


@settings(max_examples=300)
@given(signed_lengths(), st.integers(1, 5), worlds, mults, st.booleans(), st.integers(0, 99))
def test_shuffled_pads_no_more_than_described(lengths, batch_size, world, mult, round_up, seed):
    """Summed over the batches of all ranks, as a DataLoader cuts them."""
    padded = []
    for order in ("shuffled", "xtuner"):
        indices = ours(lengths, batch_size * world, mult, order, round_up, seed)
        batches = [batch for rank in range(world) for batch in in_batches(indices[rank::world], batch_size)]
        padded.append(padded_tokens(batches, lengths))
    assert padded[0] <= padded[1]


@settings(max_examples=200)
@given(signed_lengths(), st.integers(1, 12), mults, st.booleans(), st.integers(0, 99))
def test_shuffled_holds_each_index_and_repeats_only_what_is_missing(lengths, total_batch, mult, round_up, seed):
    indices = ours(lengths, total_batch, mult, "shuffled", round_up, seed)
    times = Counter(indices)
    missing = -len(lengths) % total_batch if round_up else 0
    assert len(indices) == len(lengths) + missing
    assert sorted(times) == list(range(len(lengths)))
    if lengths:
        assert max(times.values()) - min(times.values()) <= 1
    if indices:
        assert abs(lengths[indices[0]]) == max(map(abs, lengths))


@settings(max_examples=200)
@given(
    st.lists(st.integers(1, 10**6), min_size=1, max_size=90, unique=True), st.integers(1, 6), mults, st.integers(0, 9)
)
def test_shuffled_batches_are_those_of_sorted_megabatches(lengths, total_batch, mult, seed):
    """Without ties and remainders the batches are known: the megabatches sorted and cut, before anything is swapped."""
    lengths = lengths[: len(lengths) // total_batch * total_batch]
    size = total_batch * (described_default(len(lengths), total_batch) if mult is None else mult)
    shuffled = np.random.default_rng(seed).permutation(len(lengths)).tolist()
    groups = [sorted(part, key=lambda index: -lengths[index]) for part in in_batches(shuffled, size)]
    expected = [batch for group in groups for batch in in_batches(group, total_batch)]
    found = in_batches(ours(lengths, total_batch, mult, "shuffled", True, seed), total_batch)
    assert sorted(map(tuple, found)) == sorted(map(tuple, expected))


def test_shuffled_lengths_do_not_fall_within_a_megabatch():
    """In the described order the first batch of each megabatch is its longest, the last its shortest."""
    lengths = np.random.default_rng(0).integers(1, 1000, 64_000)
    heads = {}
    for order in ("xtuner", "shuffled"):
        indices = length_grouped_order(lengths, np.random.default_rng(1).permutation, 16, 50, order=order)
        heads[order] = lengths[indices[::16]]
    falls = {order: float(np.mean(np.diff(values) <= 0)) for order, values in heads.items()}
    assert falls["xtuner"] > 0.95
    assert 0.4 < falls["shuffled"] < 0.6


def test_what_is_repeated_is_documented():
    lengths = np.array([9, 8, 7, 6, 5])
    assert length_grouped_order(lengths, np.arange, 4, 1, order="xtuner").tolist() == [0, 1, 2, 3, 4, 0, 1, 2]
    assert length_grouped_order(lengths, np.arange, 4, 1, order="shuffled").tolist() == [0, 1, 2, 3, 4, 1, 2, 3]
    assert length_grouped_order(lengths[:2], np.arange, 5, 1).tolist() == [0, 1, 0, 1, 0]


def test_the_longest_in_a_last_batch_that_is_not_full_comes_first_nevertheless():
    lengths = np.array([3, 2, 1, 4, 9])
    order = length_grouped_order(lengths, np.arange, 4, 1, round_up=False)
    assert lengths[order].tolist() == [9, 3, 2, 1, 4]


@given(st.integers(0, 10**5), st.integers(1, 300))
def test_the_default_is_the_one_described(n, total_batch):
    assert default_mega_batch_mult(n, total_batch) == described_default(n, total_batch)


def test_the_textbook_case():
    lengths = [2, 3, 7, 9]
    assert Batches.cut([0, 3, 1, 2], 2).efficiency(lengths) == 21 / 32
    for order in ("xtuner", "shuffled"):
        for seed in range(20):
            indices = ours(lengths, 2, 2, order, True, seed)
            assert Batches.cut(indices, 2).efficiency(lengths) == 0.875


def test_a_modality_takes_the_place_of_signs():
    signed = [5, -3, 4, -8]
    for modality in ([True, False, True, False], np.array([1, 0, 1, 0]), (1, 0, 1, 0)):
        lengths, has_image = split_signs([5, 3, 4, 8], modality)
        assert lengths.tolist() == split_signs(signed)[0].tolist()
        assert has_image.tolist() == split_signs(signed)[1].tolist()


@pytest.mark.parametrize(
    ("lengths", "modality", "text"),
    [
        (
            [5, -3, 0],
            None,
            r"^a length is at least 1 token \(below 0 for text only\), but item 2 is 0; leave empty seq",
        ),
        ([5, 0], [1, 0], r"^a length is at least 1 token, with a modality beside it, but item 1 is 0; leave empty"),
        (
            [5, -3],
            [1, 0],
            r"^a length is .* a modality beside it, but item 1 is -3; give signs or a modality, not both$",
        ),
        ([5, 2**31], None, r"^a length is below 2\^31 tokens, but item 1 is 2147483648; is it counted in tokens\?$"),
        ([5, -(2**63)], None, r"^a length is below 2\^31 tokens, but item 1 is -9223372036854775808"),
        ([5, 2.5], None, r"^lengths are whole numbers, but item 1 is 2\.5"),
    ],
)
def test_lengths_that_are_none_are_named(lengths, modality, text):
    with pytest.raises(LengthError, match=text):
        split_signs(lengths, modality)


@pytest.mark.parametrize(
    ("modality", "text"),
    [
        ([1], r"^modality has one item for each of 2 sequences, not the shape \(1,\)$"),
        ([1, 2], "^modality is 1 or True for a sequence with images and 0 or False for text only$"),
        (["image", "text"], "^modality is 1 or True"),
        ([0.0, 1.0], "^modality is 1 or True"),
    ],
)
def test_a_modality_that_is_none_is_refused(modality, text):
    with pytest.raises(SettingError, match=text):
        split_signs([5, 3], modality)


def test_settings_that_there_are_not_are_refused():
    lengths = np.array([2, 3])
    with pytest.raises(SettingError, match=r"^order is one of shuffled, xtuner, not 'random'$"):
        length_grouped_order(lengths, np.arange, 2, order="random")
    with pytest.raises(LengthError, match=r"^total_batch is a whole number from 1 to 2147483647, not 0$"):
        length_grouped_order(lengths, np.arange, 0)
    with pytest.raises(LengthError, match=r"^mega_batch_mult is a whole number from 1 to 2147483647, not 0$"):
        length_grouped_order(lengths, np.arange, 1, 0)


def test_the_twin_is_that_of_the_description():
    """Small enough to follow by hand: megabatches [1 7 4] [9 2 6], and of two kinds."""
    assert described_order([1, 7, 4, 9, 2, 6], 3, lambda n: list(range(n))) == [3, 2, 0, 1, 5, 4]
    assert described_order([5, -1, 6, -9, 3, -2], 2, lambda n: list(range(n))) == [3, 0, 2, 1, 4, 5]
