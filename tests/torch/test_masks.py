"""Attention over packed rows equals attention over each sequence alone, in the form of every backend."""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from brimful import LengthError, SettingError
from brimful.torch import Bidirectional, Causal, PrefixLM, SegmentMask, SlidingWindow, segment_ids
from tests.reference import masks, segments
from tests.torch.test_segments import batches, filled

HEADS, WIDTH = 2, 4
KINDS = ("bidirectional", "causal", "window", "window of 1", "both ways", "prefix")


def narrowed(mask: SegmentMask, kind: str, prefixes: list[list[int]]) -> SegmentMask:
    """The mask with the rules of that kind."""
    match kind:
        case "bidirectional":
            return mask & Bidirectional()
        case "causal":
            return mask & Causal()
        case "window":
            return mask & SlidingWindow(3)
        case "window of 1":
            return mask & Causal() & SlidingWindow(1)
        case "both ways":
            return mask & SlidingWindow(2, causal=False)
    return mask & PrefixLM(filled(prefixes))


def seen(kind: str, prefix: int) -> masks.Sees:
    """The same by definition: who sees whom in a sequence with that prefix."""
    by_kind = {
        "bidirectional": masks.bidirectional,
        "causal": masks.causal,
        "window": masks.window(3),
        "window of 1": masks.window(1),
        "both ways": masks.window_both_ways(2),
        "prefix": masks.prefix(prefix),
    }
    return by_kind[kind]


@st.composite
def masked(draw: st.DrawFn):
    """(rows, row_length, align, mask, who sees whom in each sequence of each row)."""
    rows, row_length, align = draw(batches())
    prefixes = [[draw(st.integers(0, 10)) for _ in row] for row in rows]
    kind = draw(st.sampled_from(KINDS))
    mask = narrowed(SegmentMask(segment_ids(filled(rows), row_length, align)), kind, prefixes)
    return rows, row_length, align, mask, [[seen(kind, prefix) for prefix in row] for row in prefixes]


def alone(queries, keys, values, rows, align, sees):
    """(batch, heads, seq, width) outputs of every sequence alone, 0 on padding; and which slots hold tokens."""
    outputs = torch.zeros_like(queries)
    is_token = torch.zeros(queries.shape[0], queries.shape[2], dtype=torch.bool)
    for row, lengths in enumerate(rows):
        slots = list(segments.slots_of(lengths, align))
        for number in range(1, len(lengths) + 1):
            mine = [slot for slot, (owner, _, token) in enumerate(slots) if owner == number and token]
            is_token[row, mine] = True
            for head in range(HEADS):
                query, key, value = (tensor[row, head, mine] for tensor in (queries, keys, values))
                outputs[row, head, mine] = masks.attention_alone(query, key, value, sees[row][number - 1])
    return outputs, is_token


def eager(queries, keys, values, mask):
    """Attention by arithmetic, as models write it out."""
    scores = queries @ keys.transpose(2, 3) / math.sqrt(WIDTH) + mask
    return torch.softmax(scores, dim=-1) @ values


def random_inputs(batch, row_length):
    """Queries, keys and values."""
    generator = torch.Generator().manual_seed(0)
    shape = (3, batch, HEADS, row_length, WIDTH)
    queries, keys, values = torch.randn(shape, dtype=torch.float64, generator=generator)
    return queries.requires_grad_(), keys.requires_grad_(), values.requires_grad_()


@given(masked())
def test_the_dense_mask_is_its_definition(case):
    rows, row_length, align, mask, sees = case
    for row, lengths in enumerate(rows):
        slots = list(segments.slots_of(lengths, align))
        assert mask.materialize()[row].tolist() == masks.dense(slots, sees[row], row_length)


@given(batches())
def test_as_many_cells_as_there_are_pairs(batch):
    rows, row_length, align = batch
    mask = SegmentMask(segment_ids(filled(rows), row_length, align))
    lengths = [length for row in rows for length in row]
    assert mask.materialize().sum() == sum(n * n for n in lengths)
    assert (mask & Causal()).materialize().sum() == sum(n * (n + 1) // 2 for n in lengths)


@pytest.mark.parametrize("backend", ["sdpa", "eager"])
@settings(max_examples=25)
@given(case=masked())
def test_packed_attention_is_attention_alone_forward_and_backward(backend, case):
    """To 1e-12 in float64, with the gradients; and on padding nothing is NaN, though the loss of it is let in."""
    rows, row_length, align, mask, sees = case
    inputs = queries, keys, values = random_inputs(len(rows), row_length)
    expected, is_token = alone(queries, keys, values, rows, align, sees)
    if backend == "sdpa":
        found = scaled_dot_product_attention(queries, keys, values, attn_mask=mask.for_sdpa())
    else:
        found = eager(queries, keys, values, mask.for_eager(torch.float64))
    tokens = is_token[:, None, :, None]
    torch.testing.assert_close(found * tokens, expected, atol=1e-12, rtol=0)
    weights = torch.linspace(-1, 1, expected.numel(), dtype=torch.float64).view(expected.shape)
    for mine, theirs in zip(
        torch.autograd.grad((found * tokens * weights).sum(), inputs, retain_graph=True),
        torch.autograd.grad((expected * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
    assert found.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(found.sum(), inputs))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@settings(max_examples=12)
@given(case=masked())
def test_packed_flex_attention_is_attention_alone(case):
    """Forward only: PyTorch has no backward of FlexAttention on a CPU."""
    rows, row_length, align, mask, sees = case
    queries, keys, values = (each.detach() for each in random_inputs(len(rows), row_length))
    expected, is_token = alone(queries, keys, values, rows, align, sees)
    found = flex_attention(queries, keys, values, block_mask=mask.for_flex())
    torch.testing.assert_close(found * is_token[:, None, :, None], expected, atol=1e-12, rtol=0)
    assert found.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_no_row_of_an_eager_mask_is_empty_even_in_half_precision(dtype):
    """Scores as low as half precision has them, on a row that is nearly all padding."""
    mask = SegmentMask(torch.tensor([[1, 0, 0, 0]])).for_eager(dtype)
    scores = torch.full((1, 1, 4, 4), -60000.0, dtype=dtype, requires_grad=True)
    weights = torch.softmax(scores + mask, dim=-1)
    assert torch.equal(weights[0, 0], torch.eye(4, dtype=dtype))
    (gradient,) = torch.autograd.grad((weights * torch.rand(4, 4, dtype=dtype)).sum(), scores)
    assert gradient.isfinite().all()


def test_these_checks_can_fail():
    """A boolean mask in eager arithmetic, and a mask that a backend reads with empty rows: both are caught above."""
    rows = [[3, 2]]
    mask = SegmentMask(segment_ids(filled(rows), 6))
    queries, keys, values = random_inputs(1, 6)
    expected, is_token = alone(queries, keys, values, rows, 1, [[masks.bidirectional] * 2])
    leaked = eager(queries, keys, values, mask.for_sdpa()) * is_token[:, None, :, None]
    assert (leaked - expected).abs().max() > 0.01
    empty = torch.zeros(1, 1, 6, 6, dtype=torch.float64).masked_fill(~mask.materialize()[:, None], -math.inf)
    assert eager(queries, keys, values, empty).isnan().any()


@settings(max_examples=60)
@given(masked(), st.sampled_from((3, 4)))
def test_blocks_are_those_of_the_dense_mask(case, block_size):
    """Full blocks exactly, and of the rest none is lost; where there is no window and no prefix, none is spare."""
    _, row_length, _, mask, _ = case
    found = mask.for_flex(block_size)
    n_blocks = -(-row_length // block_size)
    room = n_blocks * block_size
    cells = torch.zeros(len(mask.segment_ids), room, room, dtype=torch.bool)
    cells[:, :row_length, :row_length] = mask.for_sdpa()[:, 0]
    cells = cells.view(-1, n_blocks, block_size, n_blocks, block_size).transpose(2, 3)
    some, every = cells.flatten(3).any(3), cells.flatten(3).all(3)

    def dense(counts, indices):
        blocks = torch.zeros(len(cells), n_blocks, n_blocks, dtype=torch.bool)
        for row, query in torch.cartesian_prod(torch.arange(len(cells)), torch.arange(n_blocks)).tolist():
            blocks[row, query, indices[row, 0, query, : counts[row, 0, query]].long()] = True
        return blocks

    full = dense(found.full_kv_num_blocks, found.full_kv_indices)
    mixed = dense(found.kv_num_blocks, found.kv_indices)
    simple = mask.prefix is None and mask.most >= room and mask.least in {0, -mask.most}
    assert torch.equal(full, every) if simple else not (full & ~every).any()
    assert not (full & mixed).any()
    assert torch.equal(full | mixed, some) if simple else not (some & ~(full | mixed)).any()
    theirs = create_block_mask(mask, len(cells), None, row_length, row_length, device="cpu", BLOCK_SIZE=block_size)
    assert found.seq_lengths == theirs.seq_lengths
    if simple:
        for name in ("kv_num_blocks", "full_kv_num_blocks", "q_num_blocks", "full_q_num_blocks"):
            assert torch.equal(getattr(found, name), getattr(theirs, name))


@pytest.mark.parametrize(
    "rule", [Bidirectional(), Causal(), SlidingWindow(40), PrefixLM(torch.tensor([[5, 9, 0]] * 2))]
)
def test_flex_attention_is_compiled_once_for_all_batches(rule):
    """Other lengths give other values in the same shapes; to compile again is an error here. Pickling is harmless."""
    compiled = torch.compile(flex_attention, backend="eager", fullgraph=True)
    torch._dynamo.reset()
    queries, keys, values = torch.randn(3, 2, HEADS, 300, WIDTH, dtype=torch.float64)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows in ([[100, 150, 40], [300]], [[1, 1, 1], [130, 128]], [[299], [299, 1]]):
            mask = SegmentMask(segment_ids(filled(rows), 300)) & rule
            blocks = pickle.loads(pickle.dumps(mask.for_flex()))  # noqa: S301
            found = compiled(queries, keys, values, block_mask=blocks)
            expected = scaled_dot_product_attention(queries, keys, values, attn_mask=mask.for_sdpa())
            torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_a_block_mask_takes_along_what_it_reads():
    mask = SegmentMask(torch.tensor([[1, 1, 2, 0]])) & PrefixLM(torch.tensor([[1, 1]]))
    moved = mask.for_flex().to("meta")
    assert isinstance(moved.mask_mod, SegmentMask)
    assert moved.mask_mod.prefix is not None
    read = (moved.kv_indices, moved.mask_mod.segment_ids, moved.mask_mod.prefix)
    assert {tensor.device.type for tensor in read} == {"meta"}


@settings(max_examples=25)
@given(batches())
def test_masks_are_those_of_transformers(batch):
    """Its own masks of packed sequences, on the slots that hold tokens; its window counts as ours does."""
    from transformers import masking_utils as theirs

    rows, row_length, align = batch
    ids = segment_ids(filled(rows), row_length, align)
    shape = {"batch_size": len(rows), "q_length": row_length, "kv_length": row_length}
    pairs: dict[Causal | Bidirectional | SlidingWindow, Any] = {
        Causal(): theirs.causal_mask_function,
        Bidirectional(): theirs.bidirectional_mask_function,
        SlidingWindow(2): theirs.sliding_window_causal_mask_function(2),
        SlidingWindow(2, causal=False): theirs.sliding_window_bidirectional_mask_function(2),
    }
    for rule, function in pairs.items():
        both = theirs.and_masks(function, theirs.packed_sequence_mask_function(ids))
        mask = SegmentMask(ids) & rule
        for mine, expected in (
            (mask.for_sdpa(), theirs.sdpa_mask(**shape, mask_function=both, allow_is_causal_skip=False)),
            (mask.for_eager(torch.bfloat16), theirs.eager_mask(**shape, mask_function=both, dtype=torch.bfloat16)),
        ):
            assert mine.shape == expected.shape
            assert mine.dtype == expected.dtype
            assert torch.equal(mine[:, 0][ids > 0], expected[:, 0][ids > 0])


def test_rules_combine_in_any_order():
    ids = torch.tensor([[1, 1, 1, 1, 2, 2, 0]])
    mine = SegmentMask(ids) & Causal() & SlidingWindow(3) & SlidingWindow(2, causal=False)
    theirs = SlidingWindow(2, causal=False) & (SlidingWindow(3) & SegmentMask(ids))
    assert torch.equal(mine.materialize(), theirs.materialize())
    assert mine.materialize()[0, 3].tolist() == [False, True, True, True, False, False, False]
    short, long = PrefixLM(torch.tensor([[1, 1]])), PrefixLM(torch.tensor([[3, 2]]))
    for one, other in ((short, long), (long, short)):
        both = SegmentMask(ids) & one & other
        assert torch.equal(both.materialize(), (SegmentMask(ids) & short).materialize())
    with pytest.raises(TypeError, match="unsupported operand"):
        SegmentMask(ids) & 3  # type: ignore[operator]


@pytest.mark.parametrize("ids", [[[1, 1]], torch.tensor([1, 1]), torch.tensor([[1.0]]), torch.tensor([[True]])])
def test_segment_ids_that_are_none(ids):
    with pytest.raises(LengthError, match=r"^segment_ids are whole numbers of shape \(batch, seq\), not "):
        SegmentMask(ids)


def test_settings_that_are_none():
    mask = SegmentMask(torch.tensor([[1, 2, 2]]))
    with pytest.raises(LengthError, match=r"^the window is a whole number from 1 to 2147483647, not 0$"):
        SlidingWindow(0)
    with pytest.raises(LengthError, match=r"^block_size is a whole number from 1 to 2147483647, not 0$"):
        mask.for_flex(0)
    with pytest.raises(SettingError, match=r"so its dtype is one of theirs, not torch.bool$"):
        mask.for_eager(torch.bool)
    with pytest.raises(
        LengthError, match=r"^prefix_lengths are of shape \(batch, segments\), here at least \(1, 2\), not \(1, 1\)$"
    ):
        mask & PrefixLM(torch.tensor([[3]]))
