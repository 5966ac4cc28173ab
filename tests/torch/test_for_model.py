"""What `for_model` makes is what the models of transformers take: packed outputs are those of the sequences alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from brimful import SettingError
from brimful.torch import PackedCollator

TINY = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 40,
    "max_position_embeddings": 32,
}
LAYERS = {"num_key_value_heads": 1, "head_dim": 8}
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", {}),
    "roberta": ("RobertaConfig", "RobertaModel", {"pad_token_id": 1}),
    "llama": ("LlamaConfig", "LlamaModel", {"num_key_value_heads": 1}),
    "mistral, window in every layer": ("MistralConfig", "MistralModel", {**LAYERS, "sliding_window": 3}),
    "qwen3, window in one layer": (
        "Qwen3Config",
        "Qwen3Model",
        {**LAYERS, "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
    ),
    "modernbert, window both ways": (
        "ModernBertConfig",
        "ModernBertModel",
        {"pad_token_id": 0, "local_attention": 4, "layer_types": ["full_attention", "sliding_attention"]},
    ),
}
ROWS = [
    {"input_ids": [5, 6, 7, 8, 9, 10, 11, 12, 13, 14], "seq_lengths": [6, 1, 3]},
    {"input_ids": [15, 16, 17, 18], "seq_lengths": [1, 3]},
]


def model_of(name, implementation):
    config, model, changes = MODELS[name]
    torch.manual_seed(0)
    chosen = getattr(transformers, config)(**TINY, **changes, attn_implementation=implementation)
    return getattr(transformers, model)(chosen).eval().double()


def largest_difference(model, collator):
    """Between the outputs of the packed rows, token by token, and those of every sequence alone without any mask."""
    batch = collator(ROWS)
    packed = model(**collator.model_inputs(batch)).last_hidden_state
    largest = 0.0
    for number, row in enumerate(ROWS):
        for segment, tokens in enumerate(torch.tensor(row["input_ids"]).split(row["seq_lengths"]), 1):
            alone = model(input_ids=tokens[None]).last_hidden_state[0]
            mine = packed[number][batch["segment_ids"][number] == segment]
            largest = max(largest, (mine - alone).abs().max().item())
    return largest


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", MODELS)
def test_packed_outputs_are_those_of_the_sequences_alone(name, implementation):
    model = model_of(name, implementation)
    collator = PackedCollator.for_model(model, 12)
    assert largest_difference(model, collator) < 1e-12
    assert collator.dtype == torch.float64


def test_positions_alone_do_for_a_model_that_looks_at_them():
    model = model_of("llama", "sdpa")
    assert largest_difference(model, PackedCollator.for_model(model, 12, attention="positions")) < 1e-12


@pytest.mark.parametrize("name", ["bert", "llama", "mistral, window in every layer"])
def test_this_check_can_fail(name):
    """Without the mask, sequences see one another."""
    model = model_of(name, "sdpa")
    collator = PackedCollator.for_model(model, 12)
    careless = PackedCollator(12, 0, causal=collator.causal, keys=("input_ids", "position_ids"))
    assert largest_difference(model, careless) > 1e-4


def test_settings_come_from_the_configuration():
    model = model_of("roberta", "sdpa")
    collator = PackedCollator.for_model(model, 12, max_sequences=3, pad_to="longest", sequence_columns=("label",))
    assert (collator.pad_token_id, collator.position_offset, collator.causal) == (1, 2, False)
    assert (collator.max_sequences, collator.pad_to, collator.sequence_columns) == (3, "longest", ("label",))
    assert PackedCollator.for_model(model.config, 12, pad_token_id=7).pad_token_id == 7


def test_a_model_that_cannot_be_packed_is_refused():
    with pytest.raises(SettingError, match=r"'mamba' cannot be packed"):
        PackedCollator.for_model(transformers.MambaConfig(), 12)
    with pytest.raises(SettingError, match=r"attention 'positions' does not keep sequences apart in 'bert'"):
        PackedCollator.for_model(model_of("bert", "sdpa"), 12, attention="positions")
