"""Every architecture of the registry is proved here, and every kind of those that are refused is shown to leak."""

from __future__ import annotations

import pytest
import torch

from brimful import SettingError
from brimful.torch import PackedCollator
from brimful.verify import verify
from tests.models.tiny import PACKED, tiny
from tests.verify.reports import detail, diagnosis

EXPERTS = ("gpt_oss", "mixtral", "qwen2_moe", "qwen3_moe")  # group tokens anew when one changes, and round otherwise
SELF_DETECTING = ("gpt2", "gpt_neox", "llama", "qwen3", "mistral", "gemma3_text")


@pytest.mark.parametrize("name", PACKED)
def test_packed_equals_separate_by_the_rule(name):
    report = verify(tiny(name))
    assert report.passed, str(report)
    loss = [] if PACKED[name][1] == "EncoderModel" else ["loss"]
    assert [check.name for check in report.checks] == ["outputs", *loss, "gradients", "isolation"]
    assert "in float32" in detail(report, "gradients")
    assert "in float64" in detail(report, "gradients"), report.notes
    same = "all else stayed within" if name in EXPERTS else "all else stayed the same to the last bit"
    assert same in detail(report, "isolation")
    assert ("loss: not compared, for the model computed none" in report.notes) == (not loss)


@pytest.mark.parametrize("name", ["bert", "albert", "roberta", "llama", "mistral", "gemma3_text", "modernbert"])
def test_the_other_implementation_of_attention_as_well(name):
    assert verify(tiny(name, "eager"), dtypes=["float64"]).passed


@pytest.mark.parametrize("attention", ["positions", "varlen"])
@pytest.mark.parametrize("name", SELF_DETECTING)
def test_positions_alone_where_the_model_looks_at_them(name, attention):
    report = verify(tiny(name), attention=attention, dtypes=["float64"])
    assert report.passed, str(report)
    assert report.attention == attention


@pytest.mark.parametrize("name", ["bert", "distilbert", "electra", "albert", "roberta", "mpnet", "opt", "gpt_oss"])
def test_positions_alone_leak_where_it_does_not(name):
    """The rule refuses them, and for this reason."""
    with pytest.raises(SettingError, match="does not look for boundaries in position_ids"):
        PackedCollator.for_model(tiny(name), 8, attention="positions")
    report = verify(tiny(name), attention="positions", dtypes=["float32"])
    assert report.leaks
    assert report.differences
    assert "att" in diagnosis(report).part
    assert "no mask keeps the sequences apart" in diagnosis(report).cause
    assert diagnosis(report).tried


@pytest.mark.parametrize("attention", ["positions", "varlen"])
@pytest.mark.parametrize("name", ["mamba", "mamba2", "falcon_mamba", "rwkv", "jamba"])
def test_recurrent_models_are_refused_and_leak(name, attention):
    with pytest.raises(SettingError, match=rf"'{name}' cannot be packed: .* run on"):
        verify(tiny(name))
    report = verify(tiny(name), attention=attention, dtypes=["float32"])
    assert report.leaks
    assert "a recurrent state or a convolution runs on" in diagnosis(report).cause
    assert any(word in diagnosis(report).part for word in ("mixer", "mamba", "attention.time_shift"))


@pytest.mark.parametrize("name", ["bloom", "deberta-v2", "xlnet", "lfm2"])
def test_the_other_kinds_of_refusal_are_for_a_reason(name):
    with pytest.raises(SettingError, match=rf"'{name}' cannot be packed"):
        verify(tiny(name))
    assert verify(tiny(name), attention="positions", dtypes=["float32"]).leaks


def test_alibi_drifts_with_the_length_of_the_row():
    """MPT's bias is counted from the end of the row: exact on short rows, and less so the longer they are."""
    generator = torch.Generator().manual_seed(0)
    sequences = [torch.randint(3, 97, (length,), generator=generator).tolist() for length in (150, 50, 250)]
    model = tiny("mpt", max_seq_len=512, n_heads=8)
    report = verify(model, sequences, attention="eager", dtypes=["float64"], tolerance=1e-7)
    assert not report.passed
    assert not report.leaks
    assert "something is counted over the whole row" in diagnosis(report).cause
    with pytest.raises(SettingError, match=r"'mpt' cannot be packed: its ALiBi bias counts over the whole row"):
        verify(model)


def test_the_sliding_window_is_reached_or_said_not_to_be():
    assert not verify(tiny("mistral"), dtypes=["float32"]).notes
    report = verify(tiny("mistral", sliding_window=1000), dtypes=["float32"])
    assert report.passed
    assert len(report.notes) == 1
    assert report.notes[0].startswith("the sliding window of 1000 was not reached; longer sequences are needed: give ")
