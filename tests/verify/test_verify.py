"""verify itself: its figures agree with a comparison by hand, it leaves the model alone, and it says what is wrong."""

from __future__ import annotations

import copy
import json
import re
import threading
from typing import Any

import pytest
import torch
from torch import nn

from brimful import DataError, SettingError
from brimful.torch import PackedCollator
from brimful.verify import VerifyReport, verify
from brimful.verify.cases import AWKWARD, Case, awkward_cases, given_case
from tests.models.tiny import tiny
from tests.verify.reports import detail, diagnosis

SEQUENCES = [[11, 12, 13], [14], [15, 16]]


def test_figures_are_those_of_a_comparison_by_hand():
    """Joined sequences in Llama, computed here without anything of verify."""
    model = tiny("llama").double()
    joined = torch.tensor([[11, 12, 13, 14, 15, 16]])

    def collate(rows):
        tokens = torch.tensor([row["input_ids"] for row in rows])
        return {"input_ids": tokens, "labels": tokens.clone()}

    report = verify(model, SEQUENCES, collate=collate, dtypes=["float64"])
    with torch.no_grad():
        packed = model(input_ids=joined, labels=joined)
        alone = [model(input_ids=torch.tensor([row]), labels=torch.tensor([row])) for row in SEQUENCES]
    expected = {}
    for number, (first, one) in enumerate(zip((0, 3, 4), alone, strict=True)):
        mine, theirs = packed.logits[0, first : first + one.logits.shape[1]], one.logits[0]
        expected[number] = float((mine - theirs).abs().max() / max(1, theirs.abs().max()))
    found = [each for each in report.differences if each.what == "output"]
    assert len(found) == 1
    assert found[0].amount == pytest.approx(max(expected.values()), rel=1e-9)
    assert found[0].where == f"sequence {1 + max(expected, key=expected.__getitem__)} of row 1"

    changed = joined.clone()
    leak = next(leak for leak in report.leaks if leak.changed == "sequence 2 of row 1")
    changed[0, 3] = 10  # any other token changes what comes after
    after = model(input_ids=changed).logits[0, 4:]
    assert (after - packed.logits[0, 4:]).abs().max() > 0
    assert leak.reached == "sequence 3 of row 1"
    loss = sum(weight * one.loss for weight, one in zip((2, 1), (alone[0], alone[2]), strict=True)) / 3
    difference = float((packed.loss - loss).abs() / max(1, loss.abs()))
    assert [each.amount for each in report.differences if each.what == "loss"] == pytest.approx([difference], rel=1e-5)


def test_gradients_are_compared_for_every_parameter():
    """One parameter whose gradient alone is wrong, by a backward of its own."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(_, weight):
            return weight.clone()

        @staticmethod
        def backward(_, gradient):
            return gradient + torch.arange(gradient.numel()).view_as(gradient)

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.scale = nn.Embedding(40, 6), nn.Parameter(torch.ones(6))

        def forward(self, input_ids):
            return self.tokens(input_ids) * Wrong.apply(self.scale)

    report = verify(Own(), attention="sdpa", dtypes=["float64"])  # right once, but not once for each sequence
    assert [(each.what, each.name) for each in report.differences] == [("gradient", "scale")] * 4
    with torch.no_grad():
        assert verify(Own(), attention="sdpa", dtypes=["float64"]).differences
    with torch.inference_mode():
        assert verify(Own(), attention="sdpa", dtypes=["float64"]).differences


def test_gradients_that_are_sums_over_a_large_vocabulary_may_round_more():
    model = tiny("gpt2", vocab_size=2**16)
    assert "(4e-05 allowed)" in detail(verify(model, SEQUENCES, dtypes=["float32"]), "gradients")
    assert "(1e-05 allowed)" in detail(verify(model, SEQUENCES, dtypes=["float32"]), "outputs")
    assert "(1e-04 allowed)" in detail(verify(model, SEQUENCES, dtypes=["float32"], tolerance=1e-4), "gradients")


@pytest.mark.parametrize("training", [True, False])
def test_the_model_stays_as_it_is(training):
    model = tiny("bert").train(training)
    model.config.hidden_dropout_prob = 0.5
    frozen = model.bert.embeddings.word_embeddings.weight
    frozen.requires_grad_(False)
    other = model.bert.encoder.layer[0].output.dense.weight
    other.grad = torch.ones_like(other)
    before = copy.deepcopy(model.state_dict())
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    threads, enabled = torch.get_num_threads(), torch.is_grad_enabled()
    assert verify(model).passed
    assert torch.equal(torch.random.get_rng_state(), state)
    assert model.training is training
    assert all(module.training is training for module in model.modules())
    assert not frozen.requires_grad
    assert frozen.grad is None
    assert torch.equal(other.grad, torch.ones_like(other))
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) and before[name].dtype is after[name].dtype for name in before)
    assert not any(module._forward_hooks for module in model.modules())
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, enabled)
    with torch.no_grad():
        assert verify(model, SEQUENCES, dtypes=["float32"]).passed  # gradients all the same


def test_random_numbers_that_a_model_draws_are_given_back():
    class Draws(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(40, 6)

        def forward(self, input_ids):
            return self.tokens(input_ids) + 0 * torch.rand(())

    model = Draws()
    state = torch.random.get_rng_state()
    assert verify(model, SEQUENCES, attention="sdpa").passed
    assert torch.equal(torch.random.get_rng_state(), state)


def test_dropout_is_off():
    model = tiny("gpt2", resid_pdrop=0.9, embd_pdrop=0.9, attn_pdrop=0.9).train()
    assert verify(model, SEQUENCES).passed


def test_it_leaves_the_model_after_a_failure_too():
    model = tiny("mamba").train()
    state = torch.random.get_rng_state()
    assert verify(model, SEQUENCES, attention="varlen", dtypes=["float32"]).leaks
    with pytest.raises(DataError, match="fails on the packed batch"):
        verify(model, SEQUENCES, collate=lambda _: bad())
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), state)
    assert not any(module._forward_hooks for module in model.modules())


def bad():
    tokens = torch.tensor([[11, 12, 13, 14, 15, 16]])
    return {"input_ids": tokens, "attention_mask": torch.ones(1, 1, 6, 6, 2)}


def test_other_dtypes():
    report = verify(tiny("llama"), dtypes=["bfloat16"])
    assert report.passed, str(report)
    assert "in bfloat16 (5e-02 allowed)" in detail(report, "outputs")
    assert report.notes == ("gradients: not compared in bfloat16, whose rounding is as large as a fault",)
    assert "gradients" not in {check.name for check in report.checks}


def test_a_model_that_knows_no_float64():
    class Narrow(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(40, 6)

        def forward(self, input_ids):
            if self.tokens.weight.dtype is torch.float64:
                raise RuntimeError("no kernel")
            return self.tokens(input_ids)

    report = verify(Narrow(), attention="sdpa")
    assert report.passed
    assert report.notes[0] == "float64: not compared, for the model does not compute in it"


def test_tolerance():
    collate = PackedCollator(8, 0)
    model = tiny("bert", "eager")
    assert not verify(model, collate=collate, dtypes=["float32"], tolerance=1e-3).passed
    assert verify(model, collate=collate, dtypes=["float32"], tolerance=100).passed
    assert not verify(tiny("llama"), dtypes=["float64"], tolerance=0).passed


def test_a_report_prints_what_is_wrong_and_where():
    report = verify(tiny("bert"), SEQUENCES, attention="positions", dtypes=["float32"])
    lines = str(report).splitlines()
    assert lines[0] == "BertForMaskedLM with attention 'positions': packed is NOT the same as separate"
    assert lines[1].startswith("  FAILED outputs: largest difference ")
    assert any(
        line.startswith("  FAILED isolation: 3 sequences of up to 3 tokens changed one by one, and the padding of 1")
        for line in lines
    )
    assert any(re.match(r"  changing .* changed logits of sequence . of row 1 by ", line) for line in lines)
    assert any(
        line.startswith("  starts in bert.encoder.layer.0.attention.self (BertSelfAttention), off by") for line in lines
    )
    assert lines[-1].endswith("(tried here: then it is the same)")
    assert [leak.amount for leak in report.leaks] == sorted((leak.amount for leak in report.leaks), reverse=True)
    good = str(verify(tiny("bert"), SEQUENCES))
    assert "packed equals separate" in good
    assert "FAILED" not in good
    assert "cause" not in good


def test_a_report_is_json():
    class Nan(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(40, 6)

        def forward(self, input_ids):
            return self.tokens(input_ids) * float("nan")

    report = verify(Nan(), attention="sdpa", dtypes=["float32"])
    assert isinstance(report, VerifyReport)
    value = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert value["passed"] is False
    assert value["differences"][0]["amount"] is None
    assert {"model", "attention", "checks", "leaks", "differences", "diagnosis", "notes"} < value.keys()
    assert verify(tiny("bert"), SEQUENCES).to_json()["passed"] is True


def test_the_lengths_that_are_run():
    """Those of the demand, each within its rows, all tokens of a case different."""
    rows = [row for rows, _ in AWKWARD for row in rows]
    assert {(1,), (1, 1, 1), (3, 1, 2), (1, 4), (5, 3)} <= set(rows)
    assert any(sum(row) == length for rows, length in AWKWARD for row in rows)  # a full row
    assert any(sum(row) == length - 1 for rows, length in AWKWARD for row in rows)  # one token of padding
    assert any(len(rows) > 1 for rows, _ in AWKWARD)
    for case in awkward_cases(range(100), lambda *_: {}, 6):
        tokens = [token for row in case.packed() for token in row["input_ids"]]
        assert len(set(tokens)) == len(tokens)
        assert all(sum(row["seq_lengths"]) == len(row["input_ids"]) <= case.max_length for row in case.packed())
    assert any(length > 6 for row in case.packed() for length in row["seq_lengths"])


def test_a_change_changes_every_token_of_one_sequence_and_no_other():
    case = given_case([[1, 2, 3], [4, 5], [6]])
    for place, length in enumerate((3, 2, 1)):
        before, after = (each.packed()[0]["input_ids"] for each in (case, case.changed(0, place, range(1, 9))))
        assert sum(one != other for one, other in zip(before, after, strict=True)) == length
    assert isinstance(case, Case)


class Silent(nn.Module):
    """No vocabulary to be found."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, input_ids):
        return input_ids[..., None] * self.weight


def test_own_sequences_for_a_module_without_a_vocabulary():
    assert verify(Silent(), SEQUENCES, attention="sdpa", dtypes=["float64"]).passed
    one = verify(Silent(), [[11, 12]], attention="sdpa", dtypes=["float64"])
    assert detail(one, "isolation").startswith(
        "1 sequence of up to 2 tokens changed one by one, and the padding of 1 b"
    )
    with pytest.raises(
        SettingError,
        match=r"^Silent has no config.vocab_size and no embedding .*; give sequences, in Python: verify\(model, seq",
    ):
        verify(Silent(), attention="sdpa")


def test_tokens_that_cannot_be_changed():
    """Where there is no other token, isolation would pass whatever leaks."""
    with pytest.raises(
        SettingError, match=r"^verify changes every token .* sequences have 1 to choose from; give some"
    ):
        verify(Silent(), [[5, 5], [5]], attention="sdpa")
    module = Silent()
    module.tokens = nn.Embedding(2, 3)
    for sequences in (None, [[1], [1, 1]]):
        with pytest.raises(
            SettingError, match=r"beside special tokens Silent has 1 to choose from; make its vocabulary"
        ):
            verify(module, sequences, attention="sdpa")


def test_columns_of_ones_own():
    sequences = [{"input_ids": row, "token_type_ids": [1] * len(row), "labels": [-100, *row[1:]]} for row in SEQUENCES]
    assert verify(tiny("bert"), sequences).passed


@pytest.mark.parametrize(
    ("sequences", "error"),
    [
        ([], "sequences are a list of at least one list of tokens, not []"),
        ("abc", "sequences are a list of at least one list of tokens, not 'abc'"),
        ([[1], []], "sequence 1 (the first is 0): input_ids is a list of at least one whole number, not []"),
        ([[1.5]], "sequence 0 (the first is 0): input_ids is a list of at least one whole number, not [1.5]"),
        (
            [[1, [2, 3]]],
            "sequence 0 (the first is 0): input_ids is a list of at least one whole number, not [1, [2, 3]]",
        ),
        ([{"input_ids": [1], "x": 0.5}], "x is a list of at least one whole number, or one for the sequence, not 0.5"),
        ([{"labels": [1]}], "sequence 0 (the first is 0) has no input_ids"),
        ([{"input_ids": [1, 2], "labels": [1]}], "sequence 0 (the first is 0): labels has 1 values for 2 tokens"),
        ([[1], {"input_ids": [1], "x": [1]}], "sequence 1 (the first is 0) has other columns than sequence 0"),
        ([{"input_ids": [1], "x": 1}, {"input_ids": [1], "x": [1]}], "sequence 1 (the first is 0) has other columns"),
    ],
)
def test_sequences_that_are_none(sequences, error):
    with pytest.raises(DataError) as fault:
        verify(tiny("bert"), sequences)
    assert error in str(fault.value)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"attention": "flash"}, "there is no attention 'flash'; there are sdpa, eager, flex, varlen, positions"),
        ({"attention": "sdpa", "collate": dict}, "give one of the two"),
        ({"tolerance": -1}, "tolerance is a number from 0 up, such as 1e-5, not -1"),
        ({"tolerance": True}, "tolerance is a number from 0 up"),
        ({"dtypes": ["int8"]}, "dtypes are a list of one or more of float64, float32, bfloat16, float16, not ['int8']"),
        ({"dtypes": "float32"}, "bfloat16, float16, not 'float32'"),
        ({"dtypes": []}, "dtypes are a list of one or more of float64, float32, bfloat16, float16, not []"),
        ({"dtypes": torch.float32}, "bfloat16, float16, not torch.float32"),
    ],
)
def test_settings_that_there_are_not(settings, error):
    with pytest.raises(SettingError) as fault:
        verify(tiny("bert"), **settings)
    assert error in str(fault.value)


def test_models_that_cannot_be_verified():
    with pytest.raises(
        SettingError, match=r"^Silent is of no architecture .* with attention \(--attention\): sdpa, eager"
    ):
        verify(Silent(), SEQUENCES)
    with pytest.raises(SettingError, match=r"^ReLU has no parameters"):
        verify(nn.ReLU(), attention="sdpa")
    name: Any = "bert-base-uncased"
    with pytest.raises(SettingError, match=r"^a model is a torch module, loaded already, not 'bert-base-uncased'$"):
        verify(name)
    with pytest.raises(SettingError, match=r"^the forward of Bilinear takes neither input_ids nor one batch; wrap it"):
        verify(nn.Bilinear(2, 2, 2), SEQUENCES, attention="sdpa")
    uncopied: Any = Silent()
    uncopied.lock = threading.Lock()
    with pytest.raises(SettingError, match=r"^Silent cannot be copied to torch.float32, and verify runs on a copy"):
        verify(uncopied, SEQUENCES, attention="sdpa")


def test_a_collate_that_makes_no_batch():
    rows_as_they_are: Any = list
    with pytest.raises(DataError, match=r"^collate returns a batch, a mapping of tensors, not 'list'$"):
        verify(tiny("bert"), collate=rows_as_they_are)
    with pytest.raises(DataError, match=r"^what collate returns has no input_ids of shape \(batch, seq\)$"):
        verify(tiny("bert"), collate=lambda _: {"input_ids": [1]})


def test_a_model_that_fails_on_the_packed_batch():
    with pytest.raises(DataError, match=r"^BloomForCausalLM fails on the packed batch: ValueError: too many values"):
        verify(tiny("bloom"), attention="eager")


def test_wrapped_models():
    assert diagnosis(verify(nn.DataParallel(tiny("mamba")), attention="positions", dtypes=["float32"])).part
    compiled: Any = torch.compile(tiny("bert"), backend="eager")
    assert verify(compiled, SEQUENCES).model == "BertForMaskedLM"


def test_too_few_positions_for_the_sequences_that_are_drawn():
    with pytest.raises(
        SettingError, match=r"^GPT2LMHeadModel has n_positions 4, and verify draws sequences of up to 5 tokens; make "
    ):
        verify(tiny("gpt2", n_positions=4))
    assert verify(tiny("gpt2", n_positions=8), [[11, 12, 13], [14]], dtypes=["float32"]).passed


def test_a_collate_that_fails():
    def collate(rows):
        return rows[0]["nothing"]

    with pytest.raises(DataError, match=r"^collate fails on \[3 1 2\] in rows of 7: KeyError: 'nothing'$"):
        verify(tiny("bert"), SEQUENCES, collate=collate)
