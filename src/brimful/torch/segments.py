"""Where every sequence of a packed row lies: ids, positions and boundaries, all derived from seq_lengths.

        seq_lengths   [3 1 2]        in a row of 8 slots
        slot           0  1  2  3  4  5  6  7
        segment_ids    1  1  1  2  3  3  0  0        0 is padding
        position_ids   0  1  2  0  0  1  0  1        padding is one tail, which counts up as a sequence does
        cu_seqlens     0        3  4     6     8

A batch of rows has seq_lengths of shape (batch, segments), filled up with 0. With align above 1 every sequence starts
at a multiple of align slots, as context parallelism and 8-bit kernels want it. The padding in between has segment id
0, and positions that count on from its sequence, so that they restart nowhere but at a sequence and at the tail.
"""

from __future__ import annotations

import torch
from jaxtyping import Int, Int32, Shaped
from torch import Tensor

from brimful.errors import CapacityError, LengthError, shown
from brimful.torch.checks import at_hand
from brimful.validation import validate_capacity


def segment_ids(
    seq_lengths: Int[Tensor, "batch segments"], row_length: int, align: int = 1
) -> Int[Tensor, "batch seq"]:
    """Which sequence of its row each slot belongs to: 1, 2, 3 …, and 0 on padding.

    Args:
        seq_lengths: (batch, segments) tokens of the sequences of each row, in order, ≥ 1; rows of fewer end in 0s.
        row_length: token slots of a row; at least as many as its sequences take.
        align: slots, ≥ 1; every sequence starts at a multiple of it.

    Returns:
        (batch, row_length) of the dtype of seq_lengths, on its device.

    Raises:
        LengthError: seq_lengths that are no whole numbers of this shape, below 0, or 0 before the end of a row.
        CapacityError: a row whose sequences take more than row_length slots.

    Example:
        >>> segment_ids(torch.tensor([[3, 2], [4, 0]]), row_length=6).tolist()
        [[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]]
        >>> segment_ids(torch.tensor([[3, 2]]), row_length=8, align=4).tolist()
        [[1, 1, 1, 0, 2, 2, 0, 0]]

    Cost: one binary search a slot, nothing of a shape that depends on values. Values are checked on the CPU only, where
    that waits for nothing.
    Source: arXiv 2107.02027, section 3.2.2.
    """
    index, offset = _index_and_offset(seq_lengths, row_length, align)
    length = torch.cat([seq_lengths, seq_lengths.new_zeros(len(seq_lengths), 1)], dim=1).gather(1, index)
    return torch.where(offset < length, index + 1, 0).to(seq_lengths.dtype)


def position_ids(
    seq_lengths: Int[Tensor, "batch segments"], row_length: int, align: int = 1
) -> Int[Tensor, "batch seq"]:
    """The place of each slot in its sequence, from 0; padding at the end counts from 0 as one more sequence.

    A model that finds the sequences by where positions restart sees the tail as one sequence, never as one per token.

    Args, raises, cost: as `segment_ids`.

    Example:
        >>> position_ids(torch.tensor([[3, 2], [4, 0]]), row_length=6).tolist()
        [[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 0, 1]]
        >>> position_ids(torch.tensor([[3, 2]]), row_length=10, align=4).tolist()
        [[0, 1, 2, 3, 0, 1, 2, 3, 0, 1]]

    Source: arXiv 2107.02027, section 3.2.1.
    """
    return _index_and_offset(seq_lengths, row_length, align)[1].to(seq_lengths.dtype)


def cu_seqlens(
    seq_lengths: Int[Tensor, "batch segments"],
    total: int | None = None,
    align: int = 1,
    max_segments: int | None = None,
) -> Int32[Tensor, " boundaries"]:
    """The running sum of the sequences' tokens over the whole batch, from 0: what kernels for ragged batches take.

        seq_lengths  [3 2] [4 0]     total 12     ->     0 3 5 9 12

    Sequences of no tokens never appear, and padding up to total is one segment at the end, so that every slot belongs
    to a segment and its output is defined. With align above 1 the sums are of the tokens, not of the slots: see
    `cu_seqlens_padded`.

    Args:
        seq_lengths: as for `segment_ids`; the rows follow one another without padding between them.
        total: slots of the flattened batch; None for as many as the sequences take.
        align: slots, ≥ 1; every sequence starts at a multiple of it.
        max_segments: for fixed shapes: pad the result to max_segments + 2 boundaries, one segment more than there may
            be sequences, by repeating the last. That is the usual convention: kernels take a repeat for a segment of
            no tokens, of which there is nothing to compute. None for no more boundaries than there are.

    Returns:
        (boundaries,) int32, on the device of seq_lengths.

    Raises:
        LengthError: as `segment_ids`.
        CapacityError: the sequences take more than total slots, or are more than max_segments.

    Example:
        >>> cu_seqlens(torch.tensor([[3, 2], [4, 0]])).tolist()
        [0, 3, 5, 9]
        >>> cu_seqlens(torch.tensor([[3, 2], [4, 0]]), total=12, max_segments=5).tolist()
        [0, 3, 5, 9, 12, 12, 12]
        >>> cu_seqlens(torch.tensor([[3, 2]]), total=8, align=4).tolist(), "starts in", [0, 4, 8]
        ([0, 3, 5], 'starts in', [0, 4, 8])

    Cost: one pass over the sequences; on a GPU it waits to learn how many there are.
    """
    return _boundaries(seq_lengths, total, align, max_segments, in_slots=False)


def cu_seqlens_padded(
    seq_lengths: Int[Tensor, "batch segments"],
    total: int | None = None,
    align: int = 1,
    max_segments: int | None = None,
) -> Int32[Tensor, " boundaries"]:
    """Where each sequence starts in the flattened batch when its slots are rounded up to a multiple of align.

    Transformer Engine and Megatron take it beside `cu_seqlens`, which counts the tokens. Without align both are equal.

    Args, raises, cost: as `cu_seqlens`.

    Example:
        >>> cu_seqlens_padded(torch.tensor([[3, 2], [5, 0]]), align=4).tolist()
        [0, 4, 8, 16]
        >>> cu_seqlens(torch.tensor([[3, 2], [5, 0]]), align=4).tolist()
        [0, 3, 5, 10]
    """
    return _boundaries(seq_lengths, total, align, max_segments, in_slots=True)


def first_slots(seq_lengths: Int[Tensor, "batch segments"], align: int = 1) -> Int[Tensor, "batch segments"]:
    """The slot of each sequence's first token in its row; 0, a slot there is, where a row has no such sequence.

    Example:
        >>> first_slots(torch.tensor([[3, 1, 2], [4, 0, 0]])).tolist()
        [[0, 3, 4], [0, 0, 0]]
    """
    slots = _slots(seq_lengths, align)
    return torch.where(slots > 0, slots.cumsum(1) - slots, 0)


def first_tokens(
    values: Shaped[Tensor, "batch seq *rest"], seq_lengths: Int[Tensor, "batch segments"], align: int = 1
) -> Shaped[Tensor, "batch segments *rest"]:
    """The value at the first token of each sequence, such as the hidden state that BERT pools; 0 where there is none.

    Example:
        >>> hidden = torch.tensor([[10.0, 11.0, 20.0, 21.0], [30.0, 31.0, 32.0, 0.0]])
        >>> first_tokens(hidden, torch.tensor([[2, 2], [3, 0]])).tolist()
        [[10.0, 20.0], [30.0, 0.0]]

    Source: arXiv 2107.02027, section 3.2.3.
    """
    rows = torch.arange(len(values), device=values.device)[:, None]
    missing = (seq_lengths == 0).reshape(*seq_lengths.shape, *(1,) * (values.ndim - 2))
    return values[rows, first_slots(seq_lengths, align)].masked_fill(missing, 0)


def _index_and_offset(
    seq_lengths: Int[Tensor, "batch segments"], row_length: int, align: int
) -> tuple[Int[Tensor, "batch seq"], Int[Tensor, "batch seq"]]:
    """Per slot: which sequence of the row it belongs to, from 0 (on the tail: as many as segments), and how far in."""
    ends = _slots(seq_lengths, align).cumsum(1)
    _require_room(ends[:, -1:], row_length)
    slot = torch.arange(row_length, device=ends.device).expand(len(ends), row_length).contiguous()
    index = torch.searchsorted(ends, slot, right=True)
    starts = torch.nn.functional.pad(ends, (1, 0))
    return index, slot - starts.gather(1, index)


def _boundaries(
    seq_lengths: Int[Tensor, "batch segments"], total: int | None, align: int, max_segments: int | None, in_slots: bool
) -> Int32[Tensor, " boundaries"]:
    slots = _slots(seq_lengths, align).flatten()
    used = slots.sum()
    if total is not None:
        _require_room(used, total)
        tail = (total - used)[None]
    else:
        tail = slots[:0]
    lengths = torch.cat([slots if in_slots else seq_lengths.flatten(), tail])
    if max_segments is None:
        lengths = lengths[lengths > 0]
    else:
        # Those of no tokens go to the end, where they repeat the total.
        lengths = lengths[torch.argsort((lengths == 0).to(torch.uint8), stable=True)]
        if at_hand(slots) and (sequences := int((slots > 0).sum())) > max_segments:
            raise CapacityError(
                f"{sequences} sequences are more than the {max_segments} that max_segments has room for; raise it"
            )
        lengths = torch.nn.functional.pad(lengths, (0, max(0, max_segments + 1 - len(lengths))))[: max_segments + 1]
    return torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)


def _slots(seq_lengths: Int[Tensor, "batch segments"], align: int) -> Int[Tensor, "batch segments"]:
    """How many slots each sequence takes, as int64."""
    if not isinstance(seq_lengths, Tensor) or seq_lengths.is_floating_point() or seq_lengths.dtype == torch.bool:
        raise LengthError(f"seq_lengths are a tensor of whole numbers, not {shown(seq_lengths)}")
    if seq_lengths.ndim != 2 or not seq_lengths.shape[1]:
        raise LengthError(f"seq_lengths are of shape (batch, segments), not {tuple(seq_lengths.shape)}")
    align = validate_capacity(align, "align")
    if at_hand(seq_lengths):
        wrong = seq_lengths < 0
        wrong[:, 1:] |= (seq_lengths[:, 1:] > 0) & (seq_lengths[:, :-1] == 0)
        if wrong.any():
            row = int(wrong.any(1).nonzero()[0])
            raise LengthError(
                f"the lengths of a row are at least 1, then 0s to fill it up, but row {row} has "
                f"{shown(seq_lengths[row].tolist())}; leave empty sequences out"
            )
    return -(-seq_lengths.long() // align) * align


def _require_room(used: Int[Tensor, " *rows"], room: int) -> None:
    """Nothing, if no row takes more slots than there are; otherwise a CapacityError."""
    if at_hand(used) and (used > room).any():
        raise CapacityError(
            f"the sequences of a row take {int(used.max())} slots, more than its {room}; "
            "give it more slots, or pack with as many as these"
        )
