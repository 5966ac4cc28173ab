"""Ids, positions and boundaries are what walking along the rows gives, and what transformers reads them as."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brimful import CapacityError, LengthError
from brimful.torch import cu_seqlens, cu_seqlens_padded, first_slots, first_tokens, position_ids, segment_ids
from tests.reference import segments

AWKWARD = ([1], [1, 1, 1], [3, 1, 2], [1, 4], [5, 3], [8], [7])


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    """(lengths of the sequences of each row, row_length, align): awkward ones, rows with and without a tail."""
    lengths = st.lists(st.integers(1, 9), min_size=1, max_size=6) | st.sampled_from(AWKWARD)
    rows = draw(st.lists(lengths, min_size=1, max_size=4))
    align = draw(st.sampled_from((1, 1, 2, 4, 5)))
    longest = max(sum(-(-length // align) * align for length in row) for row in rows)
    return rows, longest + draw(st.sampled_from((0, 0, 1, 2, 11))), align


def filled(rows: list[list[int]], dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """seq_lengths of a batch: (batch, segments), filled up with 0."""
    most = max(map(len, rows))
    return torch.tensor([row + [0] * (most - len(row)) for row in rows], dtype=dtype)


@given(batches(), st.sampled_from((torch.int64, torch.int32)))
def test_ids_and_positions_are_those_of_walking_along(batch, dtype):
    rows, row_length, align = batch
    expected = [segments.ids_and_positions(row, row_length, align) for row in rows]
    for function, which in ((segment_ids, 0), (position_ids, 1)):
        found = function(filled(rows, dtype), row_length, align)
        assert found.tolist() == [pair[which] for pair in expected]
        assert found.dtype == dtype


@given(batches(), st.integers(0, 20))
def test_boundaries_are_running_sums_with_one_tail_and_no_empty_segment(batch, padding):
    rows, _, align = batch
    joined = [length for row in rows for length in row]
    total = sum(1 for _ in segments.slots_of(joined, align)) + padding
    tokens, slots = segments.boundaries(joined, total, align)
    lengths = filled(rows)
    assert cu_seqlens(lengths, total, align).tolist() == tokens
    assert cu_seqlens_padded(lengths, total, align).tolist() == slots
    assert cu_seqlens_padded(lengths, None, align).tolist() == slots[: len(joined) + 1]
    for found in (cu_seqlens(lengths, total, align), cu_seqlens_padded(lengths, total, align)):
        assert found.dtype == torch.int32
        assert found.diff().min() > 0


@given(batches(), st.integers(0, 5), st.integers(0, 9))
def test_boundaries_of_a_fixed_number_repeat_the_last(batch, spare, padding):
    rows, _, align = batch
    lengths = filled(rows)
    n_sequences = sum(map(len, rows))
    total = int(cu_seqlens_padded(lengths, None, align)[-1]) + padding
    for function in (cu_seqlens, cu_seqlens_padded):
        few = function(lengths, total, align)
        many = function(lengths, total, align, max_segments=n_sequences + spare)
        assert many.shape == (n_sequences + spare + 2,)
        assert many.tolist() == few.tolist() + [few[-1].item()] * (len(many) - len(few))


@given(batches())
def test_first_tokens_are_found_where_each_sequence_starts(batch):
    rows, row_length, align = batch
    values = torch.arange(1, len(rows) * row_length * 3 + 1).view(len(rows), row_length, 3)
    lengths = filled(rows)
    slots = first_slots(lengths, align)
    found = first_tokens(values, lengths, align)
    assert found.shape == (*lengths.shape, 3)
    assert torch.equal(first_tokens(values[..., 0], lengths, align), found[..., 0])
    for number, row in enumerate(rows):
        firsts = [slot for slot, (_, place, _) in enumerate(segments.slots_of(row, align)) if place == 0]
        missing = lengths.shape[1] - len(row)
        assert slots[number].tolist() == firsts + [0] * missing
        assert found[number].tolist() == values[number, firsts].tolist() + [[0, 0, 0]] * missing


@given(batches())
def test_transformers_finds_one_sequence_per_sequence_and_one_for_the_tail(batch):
    """The models that detect packing do so with these two functions; alignment and padding must not confuse them."""
    masking_utils = pytest.importorskip("transformers.masking_utils")
    flash = pytest.importorskip("transformers.modeling_flash_attention_utils")
    rows, row_length, align = batch
    positions = position_ids(filled(rows), row_length, align)
    groups = masking_utils.find_packed_sequence_indices(positions)
    for number, row in enumerate(rows):
        _, slots = segments.boundaries(row, row_length, align)
        expected = [group for group, (start, end) in enumerate(itertools.pairwise(slots)) for _ in range(start, end)]
        assert (groups is None and set(expected) == {0}) or groups[number].tolist() == expected
        (cu_q, cu_k), (longest, _) = flash.prepare_fa_kwargs_from_position_ids(positions[number : number + 1])
        assert cu_q.tolist() == cu_k.tolist() == slots
        assert longest == max(end - start for start, end in itertools.pairwise(slots))


def test_shapes_do_not_depend_on_values_so_that_a_compiled_graph_holds_for_all():
    def everything(lengths):
        return segment_ids(lengths, 8), position_ids(lengths, 8), cu_seqlens(lengths, 16, 1, 6), first_slots(lengths)

    compiled = torch.compile(everything, backend="eager", fullgraph=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for rows in ([[3, 1, 2], [4]], [[8], [1, 1, 1]], [[2, 2, 2], [5, 3]]):
            lengths = torch.tensor([row + [0] * (3 - len(row)) for row in rows])
            for found, expected in zip(compiled(lengths), everything(lengths), strict=True):
                assert torch.equal(found, expected)


@pytest.mark.parametrize("function", [segment_ids, position_ids, cu_seqlens])
@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([[3, 2]], r"^seq_lengths are a tensor of whole numbers, not \[\[3, 2\]\]"),
        (torch.tensor([[3.0]]), r"^seq_lengths are a tensor of whole numbers, not tensor"),
        (torch.tensor([[True]]), r"^seq_lengths are a tensor of whole numbers, not tensor"),
        (torch.tensor([3, 2]), r"^seq_lengths are of shape \(batch, segments\), not \(2,\)"),
        (torch.zeros(2, 0, dtype=torch.int64), r"^seq_lengths are of shape \(batch, segments\), not \(2, 0\)"),
        (
            torch.tensor([[3, 2], [0, 4]]),
            r"^the lengths of a row are at least 1, then 0s to fill it up, but row 1 has \[0, 4\]; leave empty seq",
        ),
        (torch.tensor([[3, -2]]), r"row 0 has \[3, -2\]"),
    ],
)
def test_lengths_that_are_none(function, lengths, message):
    with pytest.raises(LengthError, match=message):
        function(lengths, 8)


def test_what_does_not_fit():
    lengths = torch.tensor([[3, 2], [4, 0]])
    with pytest.raises(
        CapacityError,
        match=r"^the sequences of a row take 5 slots, more than its 4; give it more slots, or",
    ):
        segment_ids(lengths, 4)
    with pytest.raises(CapacityError, match=r"^the sequences of a row take 8 slots, more than its 7; give it"):
        position_ids(lengths, 7, align=4)
    with pytest.raises(CapacityError, match=r"take 9 slots, more than its 8; give it"):
        cu_seqlens(lengths, 8)
    with pytest.raises(CapacityError, match=r"^3 sequences are more than the 2 that max_segments has room for; raise"):
        cu_seqlens(lengths, 9, max_segments=2)


@pytest.mark.parametrize("align", [0, -4, True, 1.5])
def test_an_alignment_that_is_none(align):
    with pytest.raises(LengthError, match=rf"^align is a whole number from 1 to 2147483647, not {align}$"):
        segment_ids(torch.tensor([[3, 2]]), 8, align)
