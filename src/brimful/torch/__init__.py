"""Packed rows in PyTorch: a collator, masks for every attention backend, and losses that equal the unpacked ones."""

try:
    from brimful.torch.collate import PackedCollator
    from brimful.torch.masks import Bidirectional, Causal, PrefixLM, SegmentMask, SlidingWindow
    from brimful.torch.segments import (
        cu_seqlens,
        cu_seqlens_padded,
        first_slots,
        first_tokens,
        position_ids,
        segment_ids,
    )
except ModuleNotFoundError as fault:
    if fault.name not in {"torch", "jaxtyping"}:
        raise
    raise ImportError(
        f"brimful.torch needs {fault.name}, which is not installed: pip install 'brimful[torch]'"
    ) from None

__all__ = [
    "Bidirectional",
    "Causal",
    "PackedCollator",
    "PrefixLM",
    "SegmentMask",
    "SlidingWindow",
    "cu_seqlens",
    "cu_seqlens_padded",
    "first_slots",
    "first_tokens",
    "position_ids",
    "segment_ids",
]
