"""Figures by sequence are those that each sequence has when it is alone."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

from brimful.errors import DataError, LengthError
from brimful.torch.losses import cross_entropy, shift_labels, token_loss
from brimful.torch.metrics import PerSequence, sequence_accuracy, span_accuracy, token_accuracy, unpack
from tests.reference import losses as separate
from tests.torch.packed_batches import CLASSES, batch_of, batches, require_equal


@settings(max_examples=60)
@given(batch=batches())
def test_the_mean_of_means_is_the_loss_by_sequence(batch):
    """Two ways to unpack: sorting losses by sequence, and weighing them; both are the separate sequences' loss."""
    logits, labels = batch.token_logits, batch.labels
    found = unpack(cross_entropy(logits, labels), labels, batch.segment_ids, batch.seq_lengths)
    for loss, normalization in ((found.mean, "sequence"), (found.token_mean, "token")):
        wanted = separate.token_loss(logits, labels, batch.rows, batch.align, normalization)
        require_equal(loss, wanted, 1e-12, logits)
        require_equal(loss, token_loss(logits, labels, batch.segment_ids, normalization), 1e-12, logits)


@settings(max_examples=60)
@given(batch=batches())
def test_token_accuracy_is_that_of_separate_sequences(batch):
    logits, present = batch.token_logits.detach(), batch.seq_lengths > 0
    for labels in (batch.labels, shift_labels(batch.labels, batch.segment_ids)):
        found = token_accuracy(logits, labels, batch.segment_ids, batch.seq_lengths)
        wanted = separate.token_hits(logits, labels, batch.rows, batch.align)
        assert list(zip(found.sums[present].tolist(), found.counts[present].tolist(), strict=True)) == wanted
        assert not found.counts[~present].any()
        shares = [hits / targets for hits, targets in wanted if targets]
        assert abs(found.mean - sum(shares) / max(len(shares), 1)) < 1e-6


@given(batch=batches())
def test_sequence_accuracy_is_that_of_separate_sequences(batch):
    lengths = batch.seq_lengths
    logits = batch.logits(*lengths.shape, 3).detach()
    labels = torch.randint(-1, 3, lengths.shape, generator=torch.Generator().manual_seed(batch.seed))
    labels = labels.where(labels >= 0, -100)
    found = sequence_accuracy(logits, labels, lengths)
    hits = [
        float(logits[row, at].argmax() == labels[row, at])
        for row, sequences in enumerate(batch.rows)
        for at in range(len(sequences))
        if labels[row, at] != -100
    ]
    assert found.means[found.counts > 0].tolist() == hits
    assert abs(found.mean - sum(hits) / max(len(hits), 1)) < 1e-6


@settings(max_examples=60)
@given(batch=batches())
def test_exact_match_is_that_of_separate_sequences(batch):
    logits = batch.logits(len(batch.rows), batch.seq).detach()
    places = separate.predicted_positions(logits, batch.rows, batch.align)
    starts = torch.zeros_like(batch.seq_lengths)
    starts[batch.seq_lengths > 0] = torch.tensor(places)
    ends = starts.clone()
    wanted = []
    for number, (row, at, where) in enumerate(separate.slices(batch.rows, batch.align)):
        right = bool((batch.seed + number) % 3)
        if number % 5 == 4:
            ends[row, at] = -100  # no answer: it does not count
        elif right or where.stop - where.start == 1:
            wanted.append(1.0)
        else:
            wanted.append(0.0)
            ends[row, at] = (ends[row, at] + 1) % (where.stop - where.start)
    found = span_accuracy(logits, logits, starts, ends, batch.segment_ids, batch.seq_lengths)
    assert found.means[found.counts > 0].tolist() == wanted


def test_accuracy_by_pack_is_something_else():
    batch = batch_of([[7, 1]])
    labels = torch.zeros(1, 8, dtype=torch.long)
    logits = torch.zeros(1, 8, CLASSES)
    logits[0, :7, 0], logits[0, 7, 1] = 1, 1  # seven hits in the first sequence, none in the second
    found = token_accuracy(logits, labels, batch.segment_ids, batch.seq_lengths)
    assert (found.mean.item(), found.token_mean.item()) == (0.5, 7 / 8)


def test_nothing_that_counts_gives_zero_not_nan():
    nothing = PerSequence(torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.long))
    assert (nothing.mean.item(), nothing.token_mean.item(), nothing.means.tolist()) == (0, 0, [[0, 0]])


def test_what_does_not_count_may_be_anything():
    values, labels = torch.tensor([[1.0, torch.nan, torch.inf]]), torch.tensor([[0, -100, 0]])
    found = unpack(values, labels, torch.tensor([[1, 1, 0]]), torch.tensor([[2]]))
    assert (found.sums.tolist(), found.counts.tolist()) == ([[1]], [[1]])


def test_bad_input_is_named():
    batch = batch_of([[3, 2]])
    labels, values = batch.labels, torch.zeros(1, 5)
    with pytest.raises(LengthError, match="segment_ids hold 3 tokens of sequence 1 in row 0, but seq_lengths say 4"):
        unpack(values, labels, batch.segment_ids, torch.tensor([[4, 1]]))
    with pytest.raises(DataError, match=r"values and labels have one shape, not \(1, 4\) and \(1, 5\)"):
        unpack(values[:, 1:], labels, batch.segment_ids, batch.seq_lengths)
    with pytest.raises(DataError, match=r"shape of their labels, \(1, 5\), .* not \(1, 4, 5\)"):
        token_accuracy(batch.token_logits[:, 1:], labels, batch.segment_ids, batch.seq_lengths)
    with pytest.raises(DataError, match=r"\(1, 3\), .* not \(1, 2, 5\)"):
        sequence_accuracy(torch.zeros(1, 2, 5), torch.zeros(1, 3, dtype=torch.long), batch.seq_lengths)
