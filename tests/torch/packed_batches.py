"""Batches of packed rows for the tests of losses: drawn lengths, random scores, and targets that may be missing."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor

CLASSES = 5
AWKWARD = [[1]], [[1, 1, 1]], [[3, 1, 2]], [[1, 4], [5]], [[5, 3], [8], [1, 1, 1, 1, 4]], [[], [2]]
TOLERANCES = [(torch.float64, 1e-12), (torch.float32, 1e-5)]


@dataclass(frozen=True)
class Batch:
    """Rows of sequences with everything that a loss may ask for; made by plain loops."""

    rows: list[list[int]]
    align: int
    seq: int
    dtype: torch.dtype
    seed: int

    @property
    def seq_lengths(self) -> Tensor:
        segments = max(map(len, self.rows)) + 1  # one slot more than any row has sequences
        return torch.tensor([row + [0] * (segments - len(row)) for row in self.rows])

    @property
    def segment_ids(self) -> Tensor:
        ids = torch.zeros(len(self.rows), self.seq, dtype=torch.long)
        for row, lengths in enumerate(self.rows):
            start = 0
            for number, length in enumerate(lengths, 1):
                ids[row, start : start + length] = number
                start += -(-length // self.align) * self.align
        return ids

    def logits(self, *shape: int) -> Tensor:
        """Random scores that want a gradient; the same for the same shape."""
        generator = torch.Generator().manual_seed(self.seed)
        return (3 * torch.randn(*shape, generator=generator, dtype=torch.float64)).to(self.dtype).requires_grad_()

    @property
    def token_logits(self) -> Tensor:
        return self.logits(len(self.rows), self.seq, CLASSES)

    @property
    def labels(self) -> Tensor:
        """A class for each slot, padding too, which must not count; about a third are -100."""
        generator = torch.Generator().manual_seed(self.seed + 1)
        labels = torch.randint(0, CLASSES, (len(self.rows), self.seq), generator=generator)
        return labels.where(torch.rand(labels.shape, generator=generator) > 1 / 3, -100)


def batch_of(rows: list[list[int]], align: int = 1, padding: int = 0, dtype=torch.float64, seed: int = 0) -> Batch:
    slots = max(sum(-(-length // align) * align for length in row) for row in rows)
    return Batch(rows, align, slots + padding, dtype, seed)


@st.composite
def batches(draw) -> Batch:
    rows = draw(st.lists(st.lists(st.integers(1, 7), max_size=4), min_size=1, max_size=3).filter(any))
    return batch_of(rows, draw(st.sampled_from([1, 2, 4])), draw(st.integers(0, 3)), seed=draw(st.integers(0, 999)))


def in_dtype(batch: Batch, dtype: torch.dtype) -> Batch:
    return Batch(batch.rows, batch.align, batch.seq, dtype, batch.seed)


def require_equal(found: Tensor, wanted: Tensor, tolerance: float, *leaves: Tensor) -> None:
    """Both losses and their gradients for every leaf are equal, and no NaN arises on the way."""
    assert found.ndim == 0
    assert abs(found.item() - wanted.item()) <= tolerance
    for leaf in leaves:
        with torch.autograd.set_detect_anomaly(True):
            one, other = (torch.autograd.grad(loss, leaf, retain_graph=True)[0] for loss in (found, wanted))
        assert one.dtype == leaf.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=tolerance)
