"""The rule of each architecture: right where there is one, and a reason where there is none."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from typing import get_args

import pytest
import torch
import transformers
from torch import nn

from brimful import SettingError
from brimful.models import PackingRule, general_rule, rule_for
from brimful.models.architectures import ARCHITECTURES
from brimful.models.rules import ATTENTION
from brimful.torch import PackedCollator
from brimful.torch.collate import Attention
from tests.models.tiny import PACKED, REFUSED, WINDOW, tiny, tiny_config

CAUSAL = {name for name, (_, head, _) in PACKED.items() if head in {"ForCausalLM", "LMHeadModel"}}
OFFSET = {name for name, (_, _, sizes) in PACKED.items() if sizes.get("pad_token_id") == 1} - {"opt"}


@pytest.mark.parametrize("name", PACKED)
def test_what_the_registry_says_is_what_the_code_of_the_model_does(name):
    """Facts read off the models by other means: their class, the padding index of their embedding, their flags."""
    model = tiny(name)
    rule = rule_for(model)
    assert rule.causal == (name in CAUSAL)
    assert rule.attention == ("sdpa" if type(model)._supports_sdpa else "eager")
    embeddings = [module for module in model.modules() if type(module).__name__.endswith("Embeddings")]
    padding = [module.padding_idx for module in embeddings if hasattr(module, "padding_idx")]
    assert rule.position_offset == (padding[0] + 1 if padding else 0)
    assert (name in OFFSET) == bool(rule.position_offset)
    takes_a_cache = "use_cache" in inspect.signature(model.forward).parameters
    assert rule.forward_arguments == ({"use_cache": False} if takes_a_cache else {})


@pytest.mark.parametrize("name", [name for name in PACKED if PACKED[name][1] != "EncoderModel"])
def test_a_configuration_alone_has_the_rule_of_its_model(name):
    rule, known = rule_for(tiny(name)), rule_for(tiny_config(name))
    assert set(rule.keys) - {"token_type_ids"} <= set(known.keys)
    for setting in ("attention", "causal", "sliding_window", "mask_mapping", "position_offset", "forward_arguments"):
        assert getattr(rule, setting) == getattr(known, setting)


@pytest.mark.parametrize(
    ("name", "window", "mapping"),
    [
        ("llama", None, None),
        ("mistral", WINDOW, None),
        ("starcoder2", WINDOW, None),
        ("gemma3_text", WINDOW, ("full_attention", "sliding_attention")),
        ("modernbert", WINDOW, ("full_attention", "sliding_attention")),
    ],
)
def test_windows(name, window, mapping):
    rule = rule_for(tiny(name))
    assert (rule.sliding_window, rule.mask_mapping) == (window, mapping)


def test_layers_of_one_kind_need_one_mask():
    only_full = tiny_config("qwen2", max_window_layers=2)
    assert (rule_for(only_full).sliding_window, rule_for(only_full).mask_mapping) == (None, None)
    only_near = tiny_config("gemma3_text", layer_types=["sliding_attention"] * 2)
    assert (rule_for(only_near).sliding_window, rule_for(only_near).mask_mapping) == (WINDOW, None)


@pytest.mark.parametrize(
    ("implementation", "attention"),
    [("sdpa", "sdpa"), ("eager", "eager"), ("flex_attention", "flex"), ("flash_attention_2", "varlen")],
)
def test_attention_is_that_of_the_implementation(implementation, attention):
    config = tiny_config("llama")
    config._attn_implementation = implementation
    assert rule_for(config).attention == attention


def test_an_additive_mask_suits_sdpa_as_well_but_a_boolean_one_no_arithmetic():
    assert rule_for(tiny("bert"), "eager").attention == "eager"
    with pytest.raises(
        SettingError,
        match=r"^attention 'sdpa' does not keep sequences apart in 'bert' with attn_implementation 'eager', which "
        r"would add True and False as numbers; there is eager$",
    ):
        rule_for(tiny("bert", "eager"), "sdpa")


@pytest.mark.parametrize("attention", ["positions", "varlen"])
@pytest.mark.parametrize("name", ["bert", "opt", "biogpt", "gpt_oss", "modernbert"])
def test_positions_alone_are_refused_where_the_model_does_not_look_at_them(name, attention):
    with pytest.raises(SettingError, match=r"which does not look for boundaries in position_ids; there "):
        rule_for(tiny(name), attention)


def test_positions_alone_do_where_the_model_looks_at_them():
    rule = rule_for(tiny("llama"), "positions")
    assert "attention_mask" not in rule.keys
    assert rule.forward_arguments == {"use_cache": False}
    assert "cu_seq_lens_q" in rule_for(tiny("llama"), "varlen").keys


def test_keys_are_what_forward_takes():
    assert rule_for(tiny("bert")).keys == ("input_ids", "attention_mask", "position_ids", "token_type_ids", "labels")
    assert rule_for(tiny("bert", head="Model")).keys == (
        "input_ids",
        "attention_mask",
        "position_ids",
        "token_type_ids",
    )
    assert rule_for(tiny("llama")).keys == ("input_ids", "attention_mask", "position_ids", "labels")
    assert rule_for(tiny("t5")).keys == ("input_ids", "attention_mask")


def test_a_wrapped_model_has_the_rule_of_the_model_in_it():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

    model = tiny("mistral")
    assert rule_for(Wrapper(model)) == rule_for(model)
    assert rule_for(torch.compile(model, backend="eager")) == rule_for(model)


def test_every_known_architecture_is_either_packed_in_the_tests_or_refused():
    assert {name for name, known in ARCHITECTURES.items() if not isinstance(known.refusal, str)} == set(PACKED)
    assert {name for name in REFUSED if ARCHITECTURES[name].refusal} == set(REFUSED)


@pytest.mark.parametrize("name", sorted(set(ARCHITECTURES) - set(PACKED)))
def test_the_others_are_refused_with_a_reason(name):
    class Known:
        model_type = name

    with pytest.raises(SettingError, match=rf"^'{name}' cannot be packed: .*(runs? on|whole row|of pairs)"):
        rule_for(Known())
    with pytest.raises(SettingError, match="cannot be packed"):
        PackedCollator.for_model(Known(), 8, attention="eager")


def test_what_is_refused_by_its_settings():
    with pytest.raises(SettingError, match=r"'falcon' cannot be packed: its ALiBi bias counts over the whole row"):
        rule_for(tiny_config("falcon", alibi=True))
    with pytest.raises(SettingError, match=r"'bert' cannot be packed: as a decoder it has no rule"):
        rule_for(tiny_config("bert", is_decoder=True))
    whole = transformers.T5ForConditionalGeneration(tiny_config("t5"))
    with pytest.raises(SettingError, match=r"'t5' cannot be packed: its cross-attention .* its EncoderModel can"):
        rule_for(whole)
    with pytest.raises(SettingError, match=r"'t5' cannot be packed"):
        rule_for(whole.config)


@pytest.mark.parametrize("name", ["mixtral", "qwen2_moe", "qwen3_moe", "gpt_oss"])
def test_a_loss_of_the_router_over_the_whole_batch_is_refused(name):
    with pytest.raises(
        SettingError,
        match=rf"^'{name}' cannot be packed: with output_router_logits=True its auxiliary loss is over the whole batch"
        r".*; set config.output_router_logits=False$",
    ):
        rule_for(tiny(name, output_router_logits=True))
    assert rule_for(tiny(name)).causal


def test_heads_per_sequence_of_causal_models_are_refused():
    for name, head in (("llama", "ForSequenceClassification"), ("gpt2", "DoubleHeadsModel")):
        with pytest.raises(SettingError, match=rf"^'{name}' cannot be packed: its head takes one token of each row, n"):
            rule_for(tiny(name, head=head, pad_token_id=0))
    assert not rule_for(tiny("bert", head="ForSequenceClassification")).causal


def test_errors_say_what_there_is_and_what_to_do():
    with pytest.raises(
        SettingError, match=r"^there is no rule for the architecture 'xglm'; choose an attention, prove it"
    ):
        rule_for(transformers.XGLMConfig())
    with pytest.raises(SettingError, match=r"^Linear has no config.model_type to find a rule by; .*sdpa, eager, flex"):
        rule_for(nn.Linear(2, 2))
    with pytest.raises(SettingError, match=r"^there is no attention 'flash'; there are sdpa, eager, flex, varlen, pos"):
        rule_for(tiny_config("llama"), "flash")
    odd = tiny_config("llama")
    odd._attn_implementation = "paged|sdpa"
    with pytest.raises(SettingError, match=r"no rule for attn_implementation 'paged\|sdpa'; load the model with"):
        rule_for(odd)


def test_a_general_rule_promises_nothing_and_takes_what_it_is_given():
    assert general_rule(tiny("mamba"), "varlen").attention == "varlen"
    assert general_rule(tiny("bert"), "positions").causal is False
    assert general_rule(tiny("bert"), "sdpa", causal=True).causal is True  # what is said counts, known or not

    class Own(nn.Module):
        def forward(self, input_ids, position_ids): ...

    assert general_rule(Own(), "sdpa").keys == ("input_ids", "position_ids")
    assert general_rule(Own(), "sdpa", causal=True).causal is True
    with pytest.raises(SettingError, match="there is no attention 'none'"):
        general_rule(Own(), "none")


def test_the_ways_are_those_of_the_collator():
    assert get_args(Attention) == ATTENTION


def test_rules_need_neither_torch_nor_transformers():
    """They are imported where a model of theirs comes along."""
    code = "import sys, brimful.models; sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603
    code = "import sys, brimful.verify; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603


def test_without_torch_a_packed_encoder_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; from brimful.models import PackedEncoder"
    said = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)  # noqa: S603
    assert "pip install 'brimful[torch]'" in said.stderr.splitlines()[-1]


def test_rules_are_values():
    rule = PackingRule("sdpa", True, forward_arguments={"use_cache": False})
    assert pickle.loads(pickle.dumps(rule)) == copy.deepcopy(rule) == rule  # noqa: S301
    with pytest.raises(TypeError):
        rule.forward_arguments["use_cache"] = True  # type: ignore[index]
