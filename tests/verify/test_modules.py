"""Any torch module can be verified: what it returns, how it is called, and each way in which it can be wrong."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from brimful import DataError
from brimful.models.packed_encoder import PackedEncoder
from brimful.torch import PackedCollator
from brimful.verify import verify
from tests.models.tiny import tiny
from tests.verify.reports import detail, diagnosis

VOCABULARY, WIDTH = 60, 8
NAMES = ("input_ids", "position_ids", "attention_mask", "segment_ids", "labels")


class Attention(nn.Module):
    """One layer that uses the mask and positions it is given, and returns its logits in one of several ways."""

    def __init__(self, returns="tensor"):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(64, WIDTH)
        self.mix = nn.Linear(WIDTH, 3 * WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.returns = returns
        self.dropout = nn.Dropout(0.5)

    def attend(self, input_ids, position_ids, attention_mask):
        hidden = self.dropout(self.tokens(input_ids) + self.positions(position_ids))
        query, key, value = self.mix(hidden)[:, None].chunk(3, -1)
        return hidden + functional.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask)[:, 0]

    def forward(self, input_ids, position_ids, attention_mask):
        logits = self.head(self.attend(input_ids, position_ids, attention_mask))
        return {
            "tensor": logits,
            "tuple": (logits, None),
            "mapping": {"logits": logits, "count": input_ids.shape},
            "flat": logits.flatten(0, 1),
        }[self.returns]


class WithLoss(Attention):
    """The same with a loss over labels that are not shifted; by token, by row, or by sequence."""

    def __init__(self, mean="tokens"):
        super().__init__()
        self.mean = mean

    def forward(self, input_ids, position_ids, attention_mask, segment_ids, labels):  # type: ignore[override]
        logits = self.head(self.attend(input_ids, position_ids, attention_mask))
        losses = functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
        counted = (labels != -100).to(losses.dtype)
        if self.mean == "tokens":
            loss = losses.sum() / counted.sum()
        elif self.mean == "rows":
            loss = (losses.sum(1) / counted.sum(1)).mean()
        elif self.mean == "sequences":
            each = [
                losses[row][segment_ids[row] == segment].mean()
                for row in range(len(labels))
                for segment in range(1, int(segment_ids[row].max()) + 1)
            ]
            loss = torch.stack(each).mean()
        else:
            loss = losses.sum()
        return loss, logits


@pytest.mark.parametrize("returns", ["tensor", "tuple", "mapping", "flat"])
def test_outputs_of_every_shape(returns):
    report = verify(Attention(returns), attention="sdpa")
    assert report.passed, str(report)
    assert "in float64 (1e-12 allowed)" in detail(report, "outputs")
    assert report.notes == ("loss: not compared, for the model computed none",)
    leaking = verify(Attention(returns), collate=naive, dtypes=["float32"])
    assert leaking.leaks
    assert leaking.differences


def naive(rows):
    batch = PackedCollator(8, 0)(rows)
    return {**batch, "attention_mask": torch.ones_like(batch["attention_mask"])}


def test_a_module_that_takes_the_batch_as_its_one_argument():
    class TakesBatch(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Attention()

        def forward(self, batch):
            return self.inner(batch["input_ids"], batch["position_ids"], batch["attention_mask"])

    assert verify(TakesBatch(), attention="sdpa").passed


def test_flex_attention_on_a_cpu_is_compared_but_for_gradients():
    from torch.nn.attention.flex_attention import flex_attention

    class Flex(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            hidden = self.tokens(input_ids) + self.positions(position_ids)
            query, key, value = self.mix(hidden)[:, None].chunk(3, -1)
            return self.head(hidden + flex_attention(query, key, value, block_mask=attention_mask)[:, 0])

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "flex_attention called without torch.compile")  # once in a process
        report = verify(Flex(), [[1, 2, 3], [4], [5, 6]], attention="flex", causal=True)
    assert report.passed, str(report)
    assert "gradients: not compared, for PyTorch has no backward of FlexAttention on a CPU" in report.notes


@pytest.mark.parametrize("mean", ["tokens", "sequences"])
def test_a_loss_over_tokens_or_over_sequences(mean):
    report = verify(WithLoss(mean), attention="sdpa")
    assert report.passed, str(report)
    assert "in float64 (1e-12 allowed)" in detail(report, "loss")


@pytest.mark.parametrize(
    ("mean", "cause"),
    [("rows", "it is averaged per row, that is per pack"), ("nothing", "the loss is neither the mean over the tokens")],
)
def test_a_loss_averaged_per_pack_or_not_at_all(mean, cause):
    report = verify(WithLoss(mean), attention="sdpa", dtypes=["float64"])
    assert {each.what for each in report.differences} == {"loss", "gradient"}
    assert cause in diagnosis(report).cause
    assert not report.leaks


def test_a_module_that_returns_its_loss_only():
    class OnlyLoss(WithLoss):
        def forward(self, **batch):  # type: ignore[override]
            return super().forward(**{name: batch[name] for name in NAMES})[0]

    report = verify(OnlyLoss(), attention="sdpa")
    assert report.passed
    assert [check.name for check in report.checks] == ["loss", "gradients"]
    assert report.notes == ("isolation: not tested, for the model gives no output per token or per sequence",)
    assert {each.what for each in verify(OnlyLoss("rows"), attention="sdpa").differences} == {"loss", "gradient"}


class Named(NamedTuple):
    scale: torch.Tensor
    loss: torch.Tensor
    logits: torch.Tensor


@pytest.mark.parametrize("returns", [Named, lambda *values: dict(zip(Named._fields, values, strict=True))])
def test_the_loss_is_found_by_its_name(returns):
    """Another number stands before it, which is no mean and would differ."""

    class Names(WithLoss):
        def forward(self, **batch):  # type: ignore[override]
            loss, logits = super().forward(**{name: batch[name] for name in NAMES})
            return returns(logits.sum(), loss, logits)

    assert verify(Names(), attention="sdpa", dtypes=["float64"]).passed


def test_a_module_that_returns_nothing_to_compare():
    class Nothing(Attention):
        def forward(self, input_ids):  # type: ignore[override]
            return input_ids

    with pytest.raises(DataError, match=r"^Nothing returns neither outputs nor a loss in floating point$"):
        verify(Nothing(), attention="sdpa")


def test_a_gradient_that_is_cut_off():
    class Cut(WithLoss):
        def attend(self, input_ids, position_ids, attention_mask):
            hidden = super().attend(input_ids, position_ids, attention_mask)
            return hidden.detach() if len(torch.unique(position_ids)) < position_ids.numel() else hidden

    report = verify(Cut(), attention="sdpa", dtypes=["float32"])
    assert {each.what for each in report.differences} == {"gradient"}
    assert "outputs agree but gradients do not" in diagnosis(report).cause


def test_a_module_that_hands_on_no_gradient_at_all():
    class Detached(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            return super().forward(input_ids, position_ids, attention_mask).detach()

    assert "largest difference 0.0e+00" in detail(verify(Detached(), attention="sdpa"), "gradients")


def test_an_output_of_another_shape_is_another_output():
    class Cropped(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            return super().forward(input_ids, position_ids, attention_mask)[..., : input_ids.shape[1]]

    report = verify(Cropped(), [[1, 2, 3], [4]], attention="sdpa", dtypes=["float32"])
    assert [each.amount for each in report.differences if each.what == "output"] == [math.inf]


def test_rows_that_reach_one_another():
    """Statistics over the batch: no mask is at fault, and a row of one sequence is reached as well."""

    class OverTheBatch(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            hidden = self.attend(input_ids, position_ids, attention_mask)
            return self.head(hidden - hidden.mean((0, 1)))

    report = verify(OverTheBatch(), attention="sdpa", dtypes=["float32"])
    assert ("sequence 1 of row 1", "sequence 1 of row 5") in {(leak.changed, leak.reached) for leak in report.leaks}
    assert "the model does not use the mask, or mixes tokens elsewhere" in diagnosis(report).cause


def test_the_part_is_the_module_in_which_it_starts():
    class Block(nn.Module):
        def __init__(self, leaks):
            super().__init__()
            self.inner, self.leaks = nn.Linear(WIDTH, WIDTH), leaks

        def forward(self, hidden):
            return self.inner(hidden.cumsum(1) if self.leaks else hidden)

    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(VOCABULARY, WIDTH)
            self.blocks = nn.Sequential(Block(False), Block(False), Block(True), Block(False))

        def forward(self, input_ids):
            return self.blocks(self.tokens(input_ids))

    report = verify(Blocks(), attention="sdpa", dtypes=["float32"])
    assert diagnosis(report).part == "blocks.2"  # not blocks.2.inner, whose input is another already
    assert report.diagnosis is not None
    assert report.diagnosis.part_class == "Block"


def test_a_function_that_guesses_boundaries_from_tokens():
    """It takes token 7 for an end: right until a sequence has such a token inside."""

    def collate(rows):
        batch = PackedCollator(12, 0)(rows)
        after = functional.pad((batch["input_ids"] == 7)[:, :-1], (1, 0)).cumsum(1)
        same = after[:, :, None] == after[:, None, :]
        real = batch["segment_ids"] > 0
        eye = torch.eye(same.shape[1], dtype=torch.bool)
        return {**batch, "attention_mask": ((same & real[:, None, :]) | eye)[:, None]}

    good, bad = [[5, 6, 7], [8, 9, 7], [4, 7]], [[5, 7, 6, 7], [8, 9, 7], [4, 7]]
    module = tiny("bert")
    right = verify(module, good, collate=collate, dtypes=["float32"])
    wrong = verify(module, bad, collate=collate, dtypes=["float32"])
    assert not right.differences
    assert wrong.differences
    assert right.leaks  # with one other token an end is missed, and that counts


@pytest.mark.parametrize("align", [1, 2, 4])
def test_sequences_are_found_wherever_the_collator_puts_them(align):
    collate = PackedCollator(24, 0, align=align, causal=True)
    report = verify(tiny("llama"), collate=lambda rows: collate.model_inputs(collate(rows)), dtypes=["float32"])
    assert report.passed, str(report)


def test_sequences_may_lie_elsewhere_once_one_is_changed():
    """A collate function that puts the padding first if the row starts with a small token: no leak."""

    def collate(rows):
        batch = PackedCollator(4, 0)(rows)
        by = int(batch["input_ids"][0, 0] < 5)
        rolled = {name: batch[name].roll(by, 1) for name in ("input_ids", "position_ids")}
        return {**rolled, "attention_mask": batch["attention_mask"].roll((by, by), (2, 3))}

    report = verify(Attention(), [[8, 9], [7]], collate=collate, dtypes=["float64"])  # 8 becomes 1
    assert report.passed, str(report)


def test_packed_heads_are_proved_as_well():
    for head in ("ForSequenceClassification", "ForQuestionAnswering", "ForTokenClassification", "ForMaskedLM"):
        report = verify(PackedEncoder(tiny("bert", head=head)), dtypes=["float64"])
        assert report.passed, str(report)
        assert "in float64 (1e-12 allowed)" in detail(report, "loss")
    report = verify(PackedEncoder(tiny("bert", head="ForPreTraining")), dtypes=["float64"])
    assert report.passed, str(report)


def test_packed_heads_that_pool_the_wrong_token(monkeypatch):
    from brimful.models import packed_encoder

    def first_of_row(segment_ids, segments):
        return segment_ids.new_zeros((len(segment_ids), segments)).long()

    monkeypatch.setattr(packed_encoder, "_first_slots", first_of_row)
    report = verify(PackedEncoder(tiny("bert", head="ForSequenceClassification")), dtypes=["float64"])
    assert {each.what for each in report.differences} == {"output", "loss", "gradient"}


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.sampled_from(["bert", "gpt2", "mistral", "gemma3_text"]))
@settings(max_examples=12)
def test_any_lengths(lengths, name):
    """By the rule all is equal; joined without any care nothing is, as soon as there are two."""
    model = tiny(name)
    tokens = torch.randperm(90, generator=torch.Generator().manual_seed(sum(lengths))) + 5
    sequences = [part.tolist() for part in tokens[: sum(lengths)].split(lengths)]
    report = verify(model, sequences, dtypes=["float64"])
    assert report.passed, str(report)

    def joined(rows):
        tokens = torch.tensor([row["input_ids"] for row in rows])
        return {"input_ids": tokens, "labels": tokens}

    if len(lengths) > 1:
        assert verify(model, sequences, collate=joined, dtypes=["float64"]).leaks


def test_a_batch_that_loses_a_sequence():
    def collate(rows):
        return PackedCollator(8, 0)([{"input_ids": row["input_ids"][:2], "seq_lengths": [2]} for row in rows])

    with pytest.raises(
        DataError, match=r"collate makes of \[3 1\] in rows of 5, sequence 1 of row 1 is missing; input_ids hold the"
    ):
        verify(Attention(), [[1, 2, 3], [4]], collate=collate)


@pytest.mark.parametrize("width", [3, 6, 8, 40, 72])
def test_an_output_as_wide_as_a_row_has_slots_is_not_taken_for_one_value_per_token(width):
    """BERT's pooled output, and that of a module of one's own beside its outputs per token."""
    heads = 2 if width % 2 == 0 else 1
    config = transformers.BertConfig(
        vocab_size=90, hidden_size=width, num_attention_heads=heads, num_hidden_layers=1, intermediate_size=12
    )
    report = verify(transformers.BertModel(config).eval(), dtypes=["float64"])
    assert report.passed, str(report)

    class Pools(Attention):
        def __init__(self):
            super().__init__()
            self.pool = nn.Linear(VOCABULARY, width)

        def forward(self, input_ids, position_ids, attention_mask):
            logits = super().forward(input_ids, position_ids, attention_mask)
            return {"logits": logits, "pooled": self.pool(logits[:, 0])}

    report = verify(Pools(), attention="sdpa", dtypes=["float64"])
    assert "pooled has one value per row" in diagnosis(report).cause
    assert {each.name for each in report.differences} <= {"pooled"}


def test_a_module_that_reaches_farther_than_a_few_tokens():
    class Dilated(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens = nn.Embedding(90, 8)
            self.conv = nn.Conv1d(8, 8, kernel_size=2, dilation=12)

        def forward(self, input_ids):
            return self.conv(functional.pad(self.tokens(input_ids).mT, (12, 0))).mT

    report = verify(Dilated(), attention="sdpa", dtypes=["float32"])
    assert {leak.case for leak in report.leaks} == {"[40 30 1] in rows of 73"}
    assert diagnosis(report).part == "Dilated"
    assert "sequences of up to 40 tokens changed one by one" in detail(report, "isolation")


def test_longer_sequences_that_a_collator_does_not_take_are_said_to_be_untested():
    collate = PackedCollator(8, 0)
    report = verify(Attention(), collate=collate, dtypes=["float32"])
    assert report.passed
    assert report.notes[0].startswith("longer sequences, [35 26] in rows of 63, were not tested: ")
    assert "sequences of up to 5 tokens changed one by one" in detail(report, "isolation")


def test_rows_are_no_longer_than_a_table_of_positions():
    module = Attention()
    module.positions = nn.Embedding(30, WIDTH)
    report = verify(module, attention="sdpa", dtypes=["float32"])
    assert report.passed, str(report)
    assert "sequences of up to 16 tokens" in detail(report, "isolation")  # and 12 beside it, in a row of 30


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(VOCABULARY), nn.InstanceNorm1d(VOCABULARY, track_running_stats=True)])
def test_statistics_over_the_batch_in_training_are_noted(norm):
    class Normed(Attention):
        def __init__(self):
            super().__init__()
            self.norm = norm

        def forward(self, input_ids, position_ids, attention_mask):
            return self.norm(super().forward(input_ids, position_ids, attention_mask).mT).mT

    report = verify(Normed(), attention="sdpa", dtypes=["float32"])
    assert any(
        note.startswith(f"norm ({type(norm).__name__}) normalizes over all tokens of a batch in train mode")
        for note in report.notes
    )
    assert not any("normalizes" in note for note in verify(Attention(), attention="sdpa", dtypes=["float32"]).notes)


def test_labels_that_are_no_labels_of_tokens_do_not_stop_the_diagnosis():
    class Wrong(PackedEncoder):
        def forward(self, **batch):
            outputs = super().forward(**batch)
            outputs["loss"] = outputs["loss"] * 1.5
            return outputs

    report = verify(Wrong(tiny("bert", head="ForSequenceClassification")), dtypes=["float64"])
    assert {each.what for each in report.differences} == {"loss", "gradient"}
    assert "the loss is neither the mean over the tokens" in diagnosis(report).cause


def test_a_diagnosis_that_fails_does_not_hide_the_report(monkeypatch):
    def fails(*_):
        raise KeyError("no such part")

    monkeypatch.setattr("brimful.verify.diagnosis.first_part", fails)
    report = verify(Attention(), collate=naive, dtypes=["float32"])
    assert report.leaks
    assert diagnosis(report).cause == "not found, for the search for it failed with KeyError: 'no such part'"
    assert "start from the largest difference or leak" in diagnosis(report).remedy


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_loss_is_judged_by_the_dtype_of_the_model(dtype):
    for model in (PackedEncoder(tiny("bert", head="ForSequenceClassification")), tiny("llama"), tiny("bert")):
        report = verify(model, dtypes=[dtype])
        assert report.passed, str(report)
        allowed = "5e-02" if dtype == "bfloat16" else "5e-03"
        assert f"in {dtype} ({allowed} allowed)" in detail(report, "loss")


def test_isolation_is_judged_as_float32_where_a_model_in_float64_computes_in_it():
    class Single(Attention):
        """With a constant that rounds in float32 and moves with the tokens of the row, within its rounding."""

        def forward(self, input_ids, position_ids, attention_mask):
            logits = super().forward(input_ids, position_ids, attention_mask).float()
            return logits + 1e-8 * input_ids.sum().float().cos()

    module = Single()
    assert verify(module, attention="sdpa", dtypes=["float64"]).passed


def test_dropout_that_is_left_on():
    class Drops(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            return functional.dropout(super().forward(input_ids, position_ids, attention_mask), 0.3)

    report = verify(Drops(), attention="sdpa", dtypes=["float32"])
    assert "the same batch run twice differs by " in diagnosis(report).cause
    assert "dropout is left on, or the model keeps a state" in diagnosis(report).cause


def test_values_that_are_no_numbers_alone_either():
    class Divides(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            logits = super().forward(input_ids, position_ids, attention_mask)
            return logits / (position_ids[..., None] - 1)

    report = verify(Divides(), attention="sdpa", dtypes=["float32"])
    assert diagnosis(report).cause.startswith("output is NaN or infinite for a sequence alone as well")


def test_rounding_is_told_from_a_fault():
    """A large number is added and taken away again: 1e-3 is left of float32, and nothing of a fault in float64."""

    class Cancels(Attention):
        def forward(self, input_ids, position_ids, attention_mask):
            logits = super().forward(input_ids, position_ids, attention_mask)
            large = 1e3 * (1 + input_ids.double().sum(1).sin().to(logits)[:, None, None])
            return logits + large - large

    report = verify(Cancels(), attention="sdpa", dtypes=["float32"])
    assert diagnosis(report).cause.startswith("rounding only: in float64 the same rows agree to ")
    assert diagnosis(report).remedy.startswith("allow more in float32: a tolerance above ")
    fault = verify(Attention(), collate=naive, dtypes=["float32"])
    assert "rounding only" not in diagnosis(fault).cause
