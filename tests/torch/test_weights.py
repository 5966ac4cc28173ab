"""Weights and denominators: parts of an optimizer step, on one process or several, learn what the whole batch would."""

from __future__ import annotations

import multiprocessing

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.parallel import DistributedDataParallel

from brimful.errors import DataError, LengthError
from brimful.torch.checks import check_targets
from brimful.torch.losses import causal_lm_loss, sequence_loss, shift_labels, token_loss
from brimful.torch.weights import NORMALIZATIONS, sequence_weights, step_denominator, token_weights
from tests.reference import losses as separate
from tests.torch.packed_batches import CLASSES, batch_of, batches, require_equal

ROWS = [[5, 3], [8], [1, 1, 1, 1, 4], [2, 2, 4]]
LAYERS = 6  # inputs of the small model of the tests below


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@given(batch=batches())
def test_weights_are_those_of_a_loop_over_sequences(normalization, batch):
    power = {"token": 0, "sqrt": 0.5, "sequence": 1}[normalization]
    wanted = torch.zeros(batch.segment_ids.shape, dtype=torch.float64)
    for row, _, at in separate.slices(batch.rows, batch.align):
        targets = batch.labels[row, at] != -100
        if targets.any():
            wanted[row, at] = targets.double() / int(targets.sum()) ** power
    found = token_weights(batch.labels, batch.segment_ids, normalization, torch.float64)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-15)
    assert token_weights(batch.labels, batch.segment_ids, normalization).dtype == torch.float32


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@given(batch=batches(), shift=st.integers(0, 2))
def test_losses_of_micro_batches_sum_to_that_of_the_batch(normalization, batch, shift):
    """One row a micro-batch, some without targets; gradients too."""
    logits, labels, ids = batch.token_logits, batch.labels, batch.segment_ids
    targets = shift_labels(labels, ids, shift) if shift else labels
    micro_batches = [slice(row, row + 1) for row in range(len(labels))]
    denominator = step_denominator(
        token_weights(targets[m], ids[m], normalization, torch.float64) for m in micro_batches
    )
    if shift:
        parts = [
            causal_lm_loss(logits[m], labels[m], ids[m], normalization, denominator, shift=shift) for m in micro_batches
        ]
        whole = causal_lm_loss(logits, labels, ids, normalization, shift=shift)
    else:
        parts = [token_loss(logits[m], labels[m], ids[m], normalization, denominator) for m in micro_batches]
        whole = token_loss(logits, labels, ids, normalization)
    require_equal(torch.stack(parts).sum(), whole, 1e-12, logits)


def test_sequence_losses_of_micro_batches_sum_to_that_of_the_batch():
    lengths = torch.tensor([[5, 3, 0], [8, 0, 0], [2, 2, 4]])
    logits = torch.randn(3, 3, 2, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1, 0, -100], [1, -100, -100], [0, -100, 1]])
    denominator = step_denominator(
        sequence_weights(one, label) for one, label in zip(lengths[:, None], labels[:, None], strict=True)
    )
    assert denominator == 5
    parts = [sequence_loss(logits[[row]], labels[[row]], lengths[[row]], denominator=denominator) for row in range(3)]
    require_equal(torch.stack(parts).sum(), sequence_loss(logits, labels, lengths), 1e-12, logits)


def test_the_mean_of_micro_batches_is_something_else():
    batch = batch_of(ROWS)
    logits, labels, ids = batch.token_logits, batch.labels, batch.segment_ids
    for normalization in NORMALIZATIONS:
        parts = [token_loss(logits[[row]], labels[[row]], ids[[row]], normalization) for row in range(4)]
        assert abs(torch.stack(parts).mean() - token_loss(logits, labels, ids, normalization)) > 0.01


def _model():
    torch.manual_seed(0)
    return torch.nn.Linear(LAYERS, CLASSES, dtype=torch.float64)


def _batch_of_rank(rank, ranks):
    """Rows of one rank of a batch of four; the last row has no target at all."""
    batch = batch_of(ROWS)
    inputs = torch.randn(4, 8, LAYERS, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    labels = batch.labels.clone()
    labels[2, 2:] = labels[3] = -100
    return [tensor[rank * 4 // ranks : (rank + 1) * 4 // ranks] for tensor in (inputs, labels, batch.segment_ids)]


def _train(rank, ranks, folder):
    """One optimizer step of DDP in micro-batches of one row; the gradients of every rank go into the folder."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=ranks)
    model = DistributedDataParallel(_model())
    micro_batches = [[tensor[None] for tensor in row] for row in zip(*_batch_of_rank(rank, ranks), strict=True)]
    found = {}
    for normalization in NORMALIZATIONS:
        weights = [token_weights(labels, ids, normalization, torch.float64) for _, labels, ids in micro_batches]
        denominator = step_denominator(weights)
        added = step_denominator(weights, averaged_over_ranks=False)
        model.zero_grad()
        losses = []
        with model.no_sync():
            for inputs, labels, ids in micro_batches[:-1]:
                losses.append(token_loss(model(inputs), labels, ids, normalization, denominator))
                losses[-1].backward()
        inputs, labels, ids = micro_batches[-1]
        losses.append(token_loss(model(inputs), labels, ids, normalization, denominator))
        losses[-1].backward()
        gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        found[normalization] = torch.stack(losses).sum().detach(), gradients, denominator, added
    torch.save(found, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_ranks_with_two_micro_batches_each_learn_what_one_batch_would(tmp_path):
    """Real processes and the real DistributedDataParallel, which averages gradients; the ranks' shares are unequal."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_train, args=(rank, 2, tmp_path)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        process.kill()
    assert [process.exitcode for process in processes] == [0, 0]
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]

    inputs, labels, segment_ids = _batch_of_rank(0, 1)
    for normalization in NORMALIZATIONS:
        model = _model()
        whole = token_loss(model(inputs), labels, segment_ids, normalization)
        whole.backward()
        mine = [
            token_loss(model(one), label, ids, normalization)
            for one, label, ids in (_batch_of_rank(0, 2), _batch_of_rank(1, 2))
        ]
        assert abs(torch.stack(mine).mean() - whole) > 1e-3, "these ranks would not show a wrong denominator"
        losses, gradients, denominators, added = zip(*(rank[normalization] for rank in ranks), strict=True)
        assert abs(torch.stack(losses).mean() - whole) < 1e-12
        assert denominators[0] == denominators[1] == added[0] / 2
        for both in gradients:
            for found, parameter in zip(both, model.parameters(), strict=True):
                torch.testing.assert_close(found, parameter.grad, rtol=0, atol=1e-12)


def test_a_step_without_micro_batches_is_refused():
    with pytest.raises(DataError, match="a step has at least one micro-batch, on every rank"):
        step_denominator([])


def test_sequence_weights_need_a_sequence_and_every_label():
    lengths = torch.tensor([[5, 3, 0]])
    starts, ends = torch.tensor([[0, 1, 0]]), torch.tensor([[0, -100, 0]])
    assert sequence_weights(lengths).tolist() == [[1, 1, 0]]
    assert sequence_weights(lengths, starts, ends, dtype=torch.float64).tolist() == [[1, 0, 0]]
    with pytest.raises(DataError, match=r"labels are whole numbers with a sign, .* not torch.float32"):
        sequence_weights(lengths, starts.float())


@pytest.mark.parametrize(
    ("segment_ids", "value", "place"),
    [
        ([[1, 1, 2], [1, 2, 1]], 1, "row 1, place 2"),
        ([[1, 4, 0]], 4, "row 0, place 1"),
        ([[-1, 1, 1]], -1, "row 0, place 0"),
    ],
)
def test_segments_that_do_not_count_up_are_named(segment_ids, value, place):
    """Two packs flattened into one row without new ids would share their sequences' means."""
    segment_ids = torch.tensor(segment_ids)
    with pytest.raises(
        LengthError, match=rf"count 1, 2, 3 … from left to right .* but {value} stands in {place}; when rows"
    ):
        token_weights(segment_ids, segment_ids)


def test_check_targets_looks_at_everything():
    batch = batch_of([[3, 2], [4]])
    labels = torch.zeros_like(batch.segment_ids)
    check_targets(labels, batch.segment_ids, 1, batch.seq_lengths)
    with pytest.raises(DataError, match=r"classes from 0 to 6, or -100 for no target, not 7 \(row 1, place 3\)"):
        check_targets(labels.index_put((torch.tensor(1), torch.tensor(3)), torch.tensor(7)), batch.segment_ids, 7)
    with pytest.raises(LengthError, match="segment_ids hold 4 tokens of sequence 1 in row 1, but seq_lengths say 5"):
        check_targets(labels, batch.segment_ids, 1, batch.seq_lengths + (batch.seq_lengths == 4).long())
    with pytest.raises(DataError, match="one batch size, not 2 and 1"):
        check_targets(labels, batch.segment_ids, 1, batch.seq_lengths[:1])
