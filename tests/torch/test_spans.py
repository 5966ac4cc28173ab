"""Spans of answers in packed rows: a softmax over each sequence's own tokens, as if it were alone."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from hypothesis import given, settings

from brimful.errors import DataError, LengthError
from brimful.torch.spans import predicted_positions, span_loss
from tests.reference import losses as separate
from tests.torch.packed_batches import TOLERANCES, batch_of, batches, in_dtype, require_equal


def _positions(batch, seed):
    """A place in each sequence, -100 in about a quarter of them; where there is no sequence, anything."""
    generator = torch.Generator().manual_seed(batch.seed + seed)
    drawn = torch.rand(batch.seq_lengths.shape, generator=generator)
    places = (drawn * batch.seq_lengths).long()
    answered = torch.rand(drawn.shape, generator=generator) > 1 / 4
    return places.where(answered, -100).where(batch.seq_lengths > 0, 12345)


def _edges(batch):
    both = batch.logits(2, len(batch.rows), batch.seq).detach()
    return both[0].clone().requires_grad_(), both[1].clone().requires_grad_()


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@settings(max_examples=60)
@given(batch=batches())
def test_span_loss_is_that_of_separate_sequences(dtype, tolerance, batch):
    batch = in_dtype(batch, dtype)
    start_logits, end_logits = _edges(batch)
    starts, ends = _positions(batch, 1), _positions(batch, 2)
    found = span_loss(start_logits, end_logits, starts, ends, batch.segment_ids, batch.seq_lengths)
    wanted = separate.span_loss(start_logits, end_logits, starts, ends, batch.rows, batch.align)
    assert found.dtype == dtype
    require_equal(found, wanted, tolerance, start_logits, end_logits)


@given(batch=batches())
def test_predicted_positions_are_those_of_separate_sequences(batch):
    logits = batch.logits(len(batch.rows), batch.seq).detach().round()  # with many equal scores
    found = predicted_positions(logits, batch.segment_ids, batch.seq_lengths)
    assert found[batch.seq_lengths > 0].tolist() == separate.predicted_positions(logits, batch.rows, batch.align)
    assert (found[batch.seq_lengths == 0] == -100).all()


def test_a_softmax_over_the_whole_row_is_something_else():
    batch = batch_of([[4, 4]])
    start_logits, end_logits = _edges(batch)
    starts, ends = torch.tensor([[1, 2, -100]]), torch.tensor([[3, 2, -100]])
    whole = [
        F.cross_entropy(logits.expand(2, 8), torch.tensor(at))
        for logits, at in ((start_logits, [1, 6]), (end_logits, [3, 6]))
    ]
    found = span_loss(start_logits, end_logits, starts, ends, batch.segment_ids, batch.seq_lengths)
    assert sum(whole) / 2 - found > 0.1


def test_scores_far_apart_neither_overflow_nor_vanish():
    """Each sequence has its own highest score to measure from."""
    logits = torch.tensor([[1e4, 1e4 - 1, -1e4, -1e4 - 1, 5e4]], dtype=torch.float64, requires_grad=True)
    segment_ids, seq_lengths = torch.tensor([[1, 1, 2, 2, 0]]), torch.tensor([[2, 2]])
    starts = torch.tensor([[0, 0]])
    loss = span_loss(logits, logits, starts, starts, segment_ids, seq_lengths)
    (gradient,) = torch.autograd.grad(loss, logits)
    assert abs(loss.item() - torch.tensor(1 + torch.e**-1).log().item()) < 1e-6
    assert gradient.isfinite().all()
    assert gradient[0, 4] == 0


def test_a_position_outside_its_sequence_has_probability_zero():
    """What is said of positions on an accelerator, where they are not looked at: an infinite loss, and no NaN."""
    logits = torch.zeros(1, 5, requires_grad=True)
    segment_ids, seq_lengths = torch.tensor([[1, 1, 2, 2, 2]]), torch.tensor([[2, 3]])

    def loss(logits, starts):
        return span_loss(logits, logits, starts, torch.tensor([[0, 0]]), segment_ids, seq_lengths)

    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    assert compiled(logits, torch.tensor([[1, 2]])).isfinite()
    assert compiled(logits, torch.tensor([[2, 2]])) == torch.inf
    assert compiled(logits, torch.tensor([[1, -3]])) == torch.inf


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_has_its_softmax_in_float32(dtype):
    batch = batch_of([[50, 30], [80]])
    start_logits, end_logits = (edge.detach().to(dtype).requires_grad_() for edge in _edges(batch))
    starts, ends = _positions(batch, 1), _positions(batch, 2)
    rest = starts, ends, batch.segment_ids, batch.seq_lengths
    found = span_loss(start_logits, end_logits, *rest)
    assert found.dtype == torch.float32
    assert torch.equal(found, span_loss(start_logits.float(), end_logits.float(), *rest))
    assert torch.autograd.grad(found, start_logits)[0].dtype == dtype


@pytest.mark.parametrize("denominator", [None, 0, 7])
def test_no_answer_is_a_loss_of_zero_with_a_gradient_of_zeros(denominator):
    batch = batch_of([[3, 1], []], padding=1)
    start_logits, end_logits = _edges(batch)
    none = torch.full_like(batch.seq_lengths, -100)
    found = span_loss(start_logits, end_logits, none, none, batch.segment_ids, batch.seq_lengths, denominator)
    assert found.item() == 0
    for leaf in (start_logits, end_logits):
        assert torch.equal(torch.autograd.grad(found, leaf, retain_graph=True)[0], torch.zeros_like(leaf))


def test_positions_of_the_row_in_place_of_the_sequence_are_refused():
    batch = batch_of([[3, 2]])
    logits, ends = torch.zeros(1, 5), torch.tensor([[1, 1, -100]])
    with pytest.raises(
        DataError, match=r"start_positions count from the first token .* 0 to 1 in sequence 2 of row 0, .* not 3$"
    ):
        span_loss(logits, logits, torch.tensor([[0, 3, -100]]), ends, batch.segment_ids, batch.seq_lengths)


def test_segments_that_do_not_match_lengths_are_refused():
    batch = batch_of([[3, 2], [4]])
    logits, places = torch.zeros(2, 5), torch.zeros(2, 3, dtype=torch.long)
    with pytest.raises(
        LengthError, match="segment_ids hold 2 tokens of sequence 2 in row 0, but seq_lengths say 1; make"
    ):
        span_loss(
            logits, logits, places, places, batch.segment_ids, batch.seq_lengths - (batch.seq_lengths == 2).long()
        )
    with pytest.raises(LengthError, match="room for 1 sequences a row, but segment_ids of row 0 go up to 2; make both"):
        predicted_positions(logits, batch.segment_ids, batch.seq_lengths[:, :1])
    with pytest.raises(DataError, match="one batch size, not 2 and 1; take both"):
        predicted_positions(logits, batch.segment_ids, batch.seq_lengths[:1])
    with pytest.raises(DataError, match=r"end_logits and segment_ids have one shape, not \(2, 4\) and \(2, 5\)"):
        span_loss(logits, logits[:, 1:], places, places, batch.segment_ids, batch.seq_lengths)
    with pytest.raises(DataError, match=r"end_positions and seq_lengths have one shape, not \(2, 1\) and \(2, 3\)"):
        span_loss(logits, logits, places, places[:, :1], batch.segment_ids, batch.seq_lengths)
    with pytest.raises(DataError, match=r"start_logits are floating point, not torch.int64"):
        span_loss(logits.long(), logits, places, places, batch.segment_ids, batch.seq_lengths)
