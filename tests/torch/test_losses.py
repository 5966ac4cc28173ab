"""The loss of packed rows, and its gradient, are those of the separate sequences."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from hypothesis import example, given, settings
from hypothesis import strategies as st

from brimful.errors import DataError, LengthError, SettingError
from brimful.torch.losses import PROBLEMS, causal_lm_loss, cross_entropy, sequence_loss, shift_labels, token_loss
from brimful.torch.weights import NORMALIZATIONS
from tests.reference import losses as separate
from tests.torch.packed_batches import AWKWARD, CLASSES, TOLERANCES, batch_of, batches, in_dtype, require_equal


def _with_awkward(test):
    for rows in AWKWARD:
        test = example(batch=batch_of(rows, padding=1))(test)
    return test


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@settings(max_examples=40)
@given(batch=batches())
@_with_awkward
def test_token_loss_is_that_of_separate_sequences(normalization, dtype, tolerance, batch):
    batch = in_dtype(batch, dtype)
    logits = batch.token_logits
    found = token_loss(logits, batch.labels, batch.segment_ids, normalization)
    wanted = separate.token_loss(logits, batch.labels, batch.rows, batch.align, normalization)
    assert found.dtype == dtype
    require_equal(found, wanted, tolerance, logits)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@settings(max_examples=40)
@given(batch=batches(), shift=st.integers(1, 4))
def test_causal_loss_is_that_of_separate_sequences(normalization, dtype, tolerance, batch, shift):
    """Also several tokens ahead, and where a sequence is too short to have a target."""
    batch = in_dtype(batch, dtype)
    logits = batch.token_logits
    found = causal_lm_loss(logits, batch.labels, batch.segment_ids, normalization, shift=shift)
    wanted = separate.causal_lm_loss(logits, batch.labels, batch.rows, batch.align, normalization, shift)
    require_equal(found, wanted, tolerance, logits)


@given(batch=batches(), shift=st.integers(1, 40))
def test_shifted_labels_never_cross_a_boundary(batch, shift):
    labels, kept = torch.arange(batch.segment_ids.numel()).view_as(batch.segment_ids), []
    shifted = shift_labels(labels, batch.segment_ids, shift)
    for row, _, at in separate.slices(batch.rows, batch.align):
        assert (
            shifted[row, at].tolist()
            == [*labels[row, at][shift:].tolist(), *[-100] * (at.stop - at.start)][: at.stop - at.start]
        )
        kept.append(shifted[row, at].numel())
    assert (shifted != -100).sum() == sum(max(length - shift, 0) for length in kept)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@settings(max_examples=30)
@given(batch=batches(), outputs=st.sampled_from([1, 3]), whole=st.booleans())
def test_sequence_loss_is_that_of_separate_sequences(problem, dtype, tolerance, batch, outputs, whole):
    """Whatever stands where there is no sequence."""
    batch = in_dtype(batch, dtype)
    seq_lengths = batch.seq_lengths
    logits = batch.logits(*seq_lengths.shape, outputs)
    generator = torch.Generator().manual_seed(batch.seed)
    if problem == "single_label_classification":
        labels = torch.randint(-1, outputs, seq_lengths.shape, generator=generator)
        labels = labels.where(labels >= 0, -100).where(seq_lengths > 0, 999)
    elif problem == "multi_label_classification":
        labels = torch.randint(0, 2, logits.shape, generator=generator).to(dtype)
        labels[seq_lengths == 0] = torch.nan
    else:
        labels = torch.randn(logits.shape, generator=generator, dtype=dtype)
        labels[seq_lengths == 0] = torch.nan
        if outputs == 1:
            labels = labels.squeeze(-1)
            logits = batch.logits(*seq_lengths.shape) if whole else logits
    found = sequence_loss(logits, labels, seq_lengths, problem)
    require_equal(found, separate.sequence_loss(logits, labels, batch.rows, problem), tolerance, logits)


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
def test_rows_of_one_sequence_give_torchs_own_loss(dtype, tolerance):
    """Not packed at all: the mean over tokens is the plain cross entropy."""
    batch = batch_of([[9], [6], [3]], dtype=dtype)
    logits, labels = batch.token_logits, batch.labels.where(batch.segment_ids > 0, -100)
    plain = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    require_equal(token_loss(logits, labels, batch.segment_ids), plain, tolerance, logits)


def test_averaging_by_pack_is_something_else():
    """What the losses are there to mend: with company, a sequence would count for less."""
    batch = batch_of([[8], [1, 1, 2, 4]])
    logits, labels = batch.token_logits, torch.arange(16).view(2, 8) % CLASSES
    by_pack = torch.stack([F.cross_entropy(row, label) for row, label in zip(logits, labels, strict=True)]).mean()
    wanted = separate.token_loss(logits, labels, batch.rows, 1, "sequence")
    assert abs(by_pack - wanted) > 0.05
    assert abs(token_loss(logits, labels, batch.segment_ids, "sequence") - wanted) < 1e-12
    losses = {name: token_loss(logits, labels, batch.segment_ids, name).item() for name in NORMALIZATIONS}
    assert min(abs(losses[a] - losses[b]) for a in losses for b in losses if a < b) > 0.01


def test_crossing_a_boundary_is_something_else():
    """The shift of unpacked data, put upon a pack, asks the last token of a sequence about the first of the next."""
    batch = batch_of([[3, 5]])
    logits, labels = batch.token_logits, torch.arange(8)[None] % CLASSES
    crossing = F.cross_entropy(logits[0, :-1], labels[0, 1:])
    packed = causal_lm_loss(logits, labels, batch.segment_ids)
    assert abs(crossing - packed) > 0.05
    (gradient,) = torch.autograd.grad(packed, logits)
    assert (gradient.abs().sum(-1) > 0).tolist() == [[True, True, False, True, True, True, True, False]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_has_its_softmax_in_float32(dtype):
    batch = batch_of([[5, 3], [8]])
    logits = batch.logits(2, 8, 3000).detach().to(dtype).requires_grad_()
    exact = logits.detach().float().requires_grad_()
    found, wanted = (token_loss(leaf, batch.labels, batch.segment_ids, "sqrt") for leaf in (logits, exact))
    assert found.dtype == torch.float32
    assert torch.equal(found, wanted)
    (gradient,), (exact_gradient,) = torch.autograd.grad(found, logits), torch.autograd.grad(wanted, exact)
    assert torch.equal(gradient, exact_gradient.to(dtype))
    scores = batch.logits(2, 4, 7).detach().to(dtype)
    lengths = torch.tensor([[5, 3, 0, 0], [8, 0, 0, 0]])
    for problem, labels in (("regression", scores + 1), ("single_label_classification", lengths)):
        loss = sequence_loss(scores, labels.where(labels < 7, 0), lengths, problem)
        assert loss.dtype == torch.float32
        assert torch.equal(loss, sequence_loss(scores.float(), labels.where(labels < 7, 0), lengths, problem))


def test_under_autocast_the_loss_is_the_same():
    batch = batch_of([[5, 3], [8]], dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = token_loss(batch.token_logits, batch.labels, batch.segment_ids, "sqrt")
    assert torch.equal(found, token_loss(batch.token_logits, batch.labels, batch.segment_ids, "sqrt"))


@pytest.mark.parametrize("denominator", [None, 0, 12.5, torch.tensor(0.0)])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_no_target_is_a_loss_of_zero_with_a_gradient_of_zeros(normalization, denominator):
    batch = batch_of([[3, 1, 2], []], padding=1)
    labels = batch.labels.where(batch.segment_ids == 0, -100)  # on padding only
    for loss in (token_loss, causal_lm_loss):
        logits = batch.token_logits
        found = loss(logits, labels, batch.segment_ids, normalization, denominator)
        assert found.item() == 0
        assert torch.equal(torch.autograd.grad(found, logits)[0], torch.zeros_like(logits))


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("denominator", [None, 0, 3.0])
def test_no_sequence_is_a_loss_of_zero_with_a_gradient_of_zeros(problem, denominator):
    logits = torch.randn(2, 3, 4, requires_grad=True)
    labels = torch.ones(2, 3, dtype=torch.long) if problem.startswith("single") else torch.ones(2, 3, 4)
    found = sequence_loss(logits, labels, torch.zeros(2, 3, dtype=torch.long), problem, denominator)
    assert found.item() == 0
    assert torch.equal(torch.autograd.grad(found, logits)[0], torch.zeros_like(logits))


def test_the_denominator_divides_and_may_be_a_number_or_a_tensor():
    batch = batch_of([[5, 3], [8]])
    logits, labels, segment_ids = batch.token_logits, batch.labels, batch.segment_ids
    total = cross_entropy(logits, labels).sum()
    for denominator in (40, 40.0, torch.tensor(40), torch.tensor(40.0, dtype=torch.float32)):
        require_equal(token_loss(logits, labels, segment_ids, "token", denominator), total / 40, 1e-12, logits)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_the_loss_compiles_into_one_graph(normalization):
    """No look at a value, no loop over sequences: fullgraph refuses either."""
    batch = batch_of([[5, 3], [1, 1, 6]])

    def loss(logits, labels, segment_ids):
        return causal_lm_loss(logits, labels, segment_ids, normalization)

    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    arguments = batch.token_logits, batch.labels, batch.segment_ids
    assert torch.equal(compiled(*arguments), loss(*arguments))


def test_a_label_that_is_no_class_is_named():
    batch = batch_of([[2, 1], [3]], padding=1)
    labels = torch.zeros_like(batch.segment_ids)
    for wrong in (CLASSES, -1):
        with pytest.raises(
            DataError, match=rf"classes from 0 to 4, or -100 .*, not {wrong} \(row 1, place 2\); do model"
        ):
            token_loss(
                batch.token_logits,
                labels.index_put((torch.tensor(1), torch.tensor(2)), torch.tensor(wrong)),
                batch.segment_ids,
            )
    labels[1, 3] = 99  # on padding anything may stand
    token_loss(batch.token_logits, labels, batch.segment_ids)
    with pytest.raises(DataError, match=r"classes from 0 to 2, .* not 7 \(row 0, place 1\)"):
        sequence_loss(torch.zeros(1, 2, 3), torch.tensor([[0, 7]]), torch.tensor([[4, 4]]))


def test_shapes_that_do_not_agree_are_told_apart():
    batch = batch_of([[2, 1], [3]], padding=1)
    logits, labels, segment_ids = batch.token_logits, batch.labels, batch.segment_ids
    with pytest.raises(DataError, match=r"labels and segment_ids have one shape, not \(2, 3\) and \(2, 4\); take both"):
        token_loss(logits, labels[:, 1:], segment_ids)
    with pytest.raises(
        DataError, match=r"shape of their labels, \(2, 4\), .* not \(2, 3, 5\); a causal shift is made here"
    ):
        causal_lm_loss(logits[:, :-1], labels, segment_ids)
    with pytest.raises(DataError, match=r"labels are \(batch, seq\), not of shape \(8,\)"):
        token_loss(logits, labels.flatten(), segment_ids)
    with pytest.raises(DataError, match=r"labels are whole numbers with a sign, .* not torch.float64"):
        token_loss(logits, labels.double(), segment_ids)
    with pytest.raises(DataError, match=r"logits are floating point, not torch.int64"):
        token_loss(logits.long(), labels, segment_ids)
    lengths = torch.tensor([[2, 1]])
    with pytest.raises(DataError, match=r"labels and seq_lengths have one shape, not \(1, 1\) and \(1, 2\)"):
        sequence_loss(torch.zeros(1, 1, 3), torch.tensor([[0]]), lengths)
    with pytest.raises(DataError, match=r"\(1, 2\), .* not \(1, 1, 3\)"):
        sequence_loss(torch.zeros(1, 1, 3), torch.tensor([[0, 1]]), lengths)
    with pytest.raises(DataError, match=r"labels and logits have one shape, not \(1, 2\) and \(1, 2, 3\)"):
        sequence_loss(torch.zeros(1, 2, 3), torch.zeros(1, 2), lengths, "regression")
    with pytest.raises(
        DataError, match=r"as seq_lengths, \(1, 2\), not \(1, 3\); one for each sequence, not for each pack"
    ):
        sequence_loss(torch.zeros(1, 3), torch.zeros(1, 3), lengths, "regression")


def test_settings_that_there_are_not_list_those_there_are():
    batch = batch_of([[2, 1]])
    arguments = batch.token_logits, batch.labels, batch.segment_ids
    with pytest.raises(SettingError, match=r"no normalization 'mean'; there are token, sequence, sqrt$"):
        token_loss(*arguments, "mean")
    with pytest.raises(SettingError, match="no problem 'nsp'; there are single_label_classification, multi_label_"):
        sequence_loss(torch.zeros(1, 1, 2), torch.tensor([[0]]), torch.tensor([[3]]), "nsp")
    for wrong in (-1, torch.inf, torch.nan):
        with pytest.raises(
            SettingError, match=rf"denominator is a number from 0 up, not {wrong}; see step_denominator"
        ):
            token_loss(*arguments, "token", wrong)
    with pytest.raises(SettingError, match=r"a denominator is one number, not of shape \(2,\)"):
        token_loss(*arguments, "token", torch.ones(2))
    with pytest.raises(LengthError, match="shift"):
        shift_labels(*arguments[1:], 0)
