"""Which token may attend to which: masks as values that compose, and the form that each attention backend takes.

    SegmentMask(segment_ids)                       every token sees its own sequence, no token sees another
    SegmentMask(segment_ids) & Causal()            ... and of that only what came before it
    SegmentMask(segment_ids) & SlidingWindow(4)    ... and of that only the last 4, itself included
    SegmentMask(segment_ids) & PrefixLM(lengths)   ... but the first tokens of each sequence are seen by all of it

        segment_ids  1 1 1 2 2 0        & Causal()          as `materialize` gives it; . may not attend
                  1  # # # . . .        # . . . . .
                  1  # # # . . .        # # . . . .
                  1  # # # . . .        # # # . . .
                  2  . . . # # .        . . . # . .
                  2  . . . # # .        . . . # # .
                  0  . . . . . .        . . . . . .

For a backend, padding attends to itself: the softmax of a row with nothing in it is not a number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask

from brimful.errors import LengthError, SettingError, shown
from brimful.validation import validate_capacity

_FAR = 2**31 - 1  # a distance that no two slots have


@dataclass(frozen=True, slots=True)
class Causal:
    """A token sees itself and what came before it."""

    def narrow(self, mask: SegmentMask) -> SegmentMask:
        """What the mask allows, and this does too."""
        return replace(mask, least=max(mask.least, 0))


@dataclass(frozen=True, slots=True)
class Bidirectional:
    """A token sees its whole sequence: what a SegmentMask allows anyway, said aloud."""

    def narrow(self, mask: SegmentMask) -> SegmentMask:
        """What the mask allows."""
        return mask


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """A token sees only what is near: with query i and key j, i − window < j ≤ i, or |i − j| ≤ window if not causal.

    The two count differently because the models that have such windows do: `sliding_window_causal_mask_function` and
    `sliding_window_bidirectional_mask_function` of transformers.

    Args:
        window: tokens, ≥ 1.
        causal: does it look back only?

    Raises:
        LengthError: the window is no whole number ≥ 1.
    """

    window: int
    causal: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "window", validate_capacity(self.window, "the window"))

    def narrow(self, mask: SegmentMask) -> SegmentMask:
        """What the mask allows, and this does too."""
        least, most = (0, self.window - 1) if self.causal else (-self.window, self.window)
        return replace(mask, least=max(mask.least, least), most=min(mask.most, most))


@dataclass(frozen=True, slots=True, eq=False)
class PrefixLM:
    """A token sees what came before it, and the prefix of its sequence.

    Args:
        prefix_lengths: (batch, segments) tokens of each sequence's prefix, ≥ 0; as many segments as the mask's rows
            have, or more. One that is longer than its sequence is all of it.

    Source: Raffel et al., arXiv 1910.10683, section 3.2.1.
    """

    prefix_lengths: Int[Tensor, "batch segments"]

    def narrow(self, mask: SegmentMask) -> SegmentMask:
        """What the mask allows, and this does too."""
        ids = mask.segment_ids
        lengths = self.prefix_lengths
        segments = int(ids.max()) if ids.numel() else 0
        if lengths.ndim != 2 or len(lengths) != len(ids) or lengths.shape[1] < segments:
            raise LengthError(
                f"prefix_lengths are of shape (batch, segments), here at least ({len(ids)}, {segments}), "
                f"not {tuple(lengths.shape)}"
            )
        slot = torch.arange(ids.shape[1], device=ids.device)
        starts = torch.nn.functional.pad(ids[:, 1:] != ids[:, :-1], (1, 0), value=True)
        place = slot - torch.where(starts, slot, 0).cummax(1).values
        in_prefix = (place < lengths.to(ids.device).gather(1, (ids.long() - 1).clamp(min=0))) & (ids > 0)
        return replace(mask, prefix=in_prefix if mask.prefix is None else in_prefix & mask.prefix)


Rule: TypeAlias = Causal | Bidirectional | SlidingWindow | PrefixLM


@dataclass(frozen=True, slots=True, eq=False)
class SegmentMask:
    """The block-diagonal mask, narrowed by the rules it is combined with.

    It is a `mask_mod` of FlexAttention as well, and can be pickled, so that it passes between processes.

    Args:
        segment_ids: (batch, seq) 1, 2, 3 … per sequence, 0 on padding; the slots of a sequence are consecutive.
        least, most: of (query − key), within which a token may attend; rules set them.
        prefix: (batch, seq) which slots all of their sequence may attend to; PrefixLM sets it.

    Raises:
        LengthError: segment_ids that are no whole numbers of this shape.

    Example:
        >>> mask = SegmentMask(torch.tensor([[1, 1, 1, 2, 2, 0]])) & Causal()
        >>> for row in mask.materialize()[0].int().tolist():
        ...     print(*row)
        1 0 0 0 0 0
        1 1 0 0 0 0
        1 1 1 0 0 0
        0 0 0 1 0 0
        0 0 0 1 1 0
        0 0 0 0 0 0

    Source: arXiv 2107.02027, section 3.2.2 and figure 2.
    """

    segment_ids: Int[Tensor, "batch seq"]
    least: int = -_FAR
    most: int = _FAR
    prefix: Bool[Tensor, "batch seq"] | None = None

    def __post_init__(self) -> None:
        ids = self.segment_ids
        if not isinstance(ids, Tensor) or ids.ndim != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
            raise LengthError(f"segment_ids are whole numbers of shape (batch, seq), not {shown(ids)}")

    def __and__(self, rule: Rule) -> SegmentMask:
        """What both allow."""
        return rule.narrow(self) if isinstance(rule, Rule) else NotImplemented

    __rand__ = __and__

    def materialize(self) -> Bool[Tensor, "batch query key"]:
        """The dense mask: True where a query may attend to a key; padding neither attends nor is attended to.

        Cost: batch × seq² bytes.
        """
        batch, length = self.segment_ids.shape
        slot = torch.arange(length, device=self.segment_ids.device)
        rows = torch.arange(batch, device=slot.device)[:, None, None]
        return self._allows(rows, slot[None, :, None], slot[None, None, :])

    def for_sdpa(self) -> Bool[Tensor, "batch 1 query key"]:
        """For `scaled_dot_product_attention`, which reads True as: may attend.

        Example:
            >>> SegmentMask(torch.tensor([[1, 1, 0]])).for_sdpa().int().tolist()
            [[[[1, 1, 0], [1, 1, 0], [0, 0, 1]]]]
        """
        mask = self.materialize()
        mask.diagonal(dim1=1, dim2=2).fill_(True)
        return mask[:, None]

    def for_eager(self, dtype: torch.dtype = torch.float32) -> Float[Tensor, "batch 1 query key"]:
        """For attention by arithmetic, which adds the mask to the scores: 0, or the least number that dtype has.

        A boolean mask would be added as 0 and 1 there, and mask nothing.

        Example:
            >>> SegmentMask(torch.tensor([[1, 2]])).for_eager(torch.float16).tolist()
            [[[[0.0, -65504.0], [-65504.0, 0.0]]]]

        Raises:
            SettingError: a dtype that is not floating point.
        """
        if not dtype.is_floating_point:
            raise SettingError(f"an eager mask is added to the scores, so its dtype is one of theirs, not {dtype}")
        mask = self.for_sdpa()
        return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, torch.finfo(dtype).min)

    def for_flex(self, block_size: int = 128) -> BlockMask:
        """For FlexAttention: which blocks of the mask are empty, full or mixed, and this mask for the mixed ones.

        From batch to batch of one shape only values change, so a compiled `flex_attention` is compiled once. Blocks are
        found from the first and last sequence in each, without the dense mask: (seq / block_size)² steps a row. A block
        at the edge of a window or a prefix may be called mixed where it is empty, which costs time and changes nothing.

        PyTorch has no backward of FlexAttention on a CPU.

        Example:
            >>> mask = SegmentMask(torch.arange(1, 5).repeat_interleave(128)[None]) & Causal()
            >>> mask.for_flex().to_dense()[0, 0].tolist()
            [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

        Source: Dong et al., arXiv 2412.05496, section 3.
        """
        some, full = self._blocks(validate_capacity(block_size, "block_size"))
        return _SegmentBlocks.from_kv_blocks(
            *_ordered(some & ~full),
            *_ordered(full),
            BLOCK_SIZE=block_size,
            mask_mod=self,
            seq_lengths=(self.segment_ids.shape[1], self.segment_ids.shape[1]),
        )

    def to(self, device: torch.device | str) -> SegmentMask:
        """The same mask on another device."""
        return replace(
            self,
            segment_ids=self.segment_ids.to(device),
            prefix=None if self.prefix is None else self.prefix.to(device),
        )

    def __call__(self, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:  # noqa: ARG002
        """FlexAttention's question about one cell; on padding, too, the diagonal is allowed."""
        return self._allows(batch, query, key) | (query == key)

    def _allows(self, batch: Tensor, query: Tensor, key: Tensor) -> Tensor:
        """Whether these queries may attend to these keys, as far as the indices broadcast."""
        keys = self.segment_ids[batch, key]
        allowed = self.segment_ids[batch, query] == torch.where(keys > 0, keys, -1)
        if self.least > -_FAR:
            allowed = allowed & (query - key >= self.least)
        if self.most < _FAR:
            allowed = allowed & (query - key <= self.most)
        if self.prefix is not None:
            allowed = allowed & ((key <= query) | self.prefix[batch, key])
        return allowed

    def _blocks(self, size: int) -> tuple[Bool[Tensor, "batch query key"], Bool[Tensor, "batch query key"]]:
        """Which blocks of size × size cells have some cell that is allowed (or may have), and which are all allowed."""
        batch, length = self.segment_ids.shape
        n_blocks = -(-length // size)

        def in_blocks(values: Tensor, fill: int) -> Tensor:
            return torch.nn.functional.pad(values, (0, n_blocks * size - length), value=fill).view(
                batch, n_blocks, size
            )

        ids = in_blocks(self.segment_ids, 0)
        padding = ids == 0
        # Padding is in no sequence: from a first that is beyond all others to a last before all others.
        first = ids.masked_fill(padding, torch.iinfo(ids.dtype).max).amin(2)
        last = ids.amax(2)
        some = (first[:, :, None] <= last[:, None, :]) & (first[:, None, :] <= last[:, :, None])
        whole = (first == last) & ~padding.any(2)
        full = some & whole[:, :, None] & whole[:, None, :]
        block = torch.arange(n_blocks, device=ids.device)
        apart = (
            block[:, None] - block[None, :]
        ) * size  # query − key runs from apart − (size − 1) to apart + (size − 1)
        some &= (apart + (size - 1) >= self.least) & (apart - (size - 1) <= self.most)
        full &= (apart - (size - 1) >= self.least) & (apart + (size - 1) <= self.most)
        if self.prefix is not None:
            prefix = in_blocks(self.prefix, False)
            some &= (apart >= 0) | prefix.any(2)[:, None, :]
            full &= (apart > 0) | prefix.all(2)[:, None, :]
        return some | torch.eye(n_blocks, dtype=torch.bool, device=ids.device), full


class _SegmentBlocks(BlockMask):
    """A BlockMask whose `to` moves what its mask reads as well; torch's own leaves that behind."""

    def to(self, device: torch.device | str) -> BlockMask:
        moved = super().to(device)
        if isinstance(self.mask_mod, SegmentMask):
            moved.mask_mod = self.mask_mod.to(device)
        return moved


def _ordered(
    blocks: Bool[Tensor, "batch query key"],
) -> tuple[Int[Tensor, "batch 1 query"], Int[Tensor, "batch 1 query key"]]:
    """How many key blocks each query block has, and which, those first."""
    order = torch.argsort(blocks.to(torch.uint8), dim=-1, descending=True, stable=True)
    return blocks.sum(-1, dtype=torch.int32)[:, None], order.to(torch.int32)[:, None]
