"""A tiny model of every architecture that the registry knows, with random weights that hide no fault."""

from __future__ import annotations

from typing import Any

import torch
import transformers

VOCABULARY = 97
WINDOW = 4

_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 40,
}
_GROUPED = {**_SIZES, "num_key_value_heads": 1, "head_dim": 8}
_GPT = {"vocab_size": VOCABULARY, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40}
_ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_TWO_KINDS = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
_EXPERTS = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
_MAMBA = {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}
_T5 = {"vocab_size": VOCABULARY, "d_model": 16, "d_ff": 24, "num_layers": 2, "num_heads": 2, "d_kv": 8}

PACKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "albert": ("Albert", "ForMaskedLM", {**_SIZES, "embedding_size": 8}),
    "bert": ("Bert", "ForMaskedLM", _SIZES),
    "biogpt": ("BioGpt", "ForCausalLM", _SIZES),
    "camembert": ("Camembert", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
    "codegen": ("CodeGen", "ForCausalLM", {**_GPT, **_ENDS, "rotary_dim": 4}),
    "cohere": ("Cohere", "ForCausalLM", _GROUPED),
    "cohere2": ("Cohere2", "ForCausalLM", {**_GROUPED, **_TWO_KINDS}),
    "data2vec-text": ("Data2VecText", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
    "deepseek_v3": (
        "DeepseekV3",
        "ForCausalLM",
        {
            **_SIZES,
            "num_key_value_heads": 2,
            "kv_lora_rank": 8,
            "q_lora_rank": 8,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 4,
            "v_head_dim": 8,
            "n_routed_experts": 4,
            "n_group": 2,
            "topk_group": 1,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 16,
        },
    ),
    "distilbert": (
        "DistilBert",
        "ForMaskedLM",
        {
            "vocab_size": VOCABULARY,
            "dim": 16,
            "hidden_dim": 24,
            "n_layers": 2,
            "n_heads": 2,
            "max_position_embeddings": 40,
        },
    ),
    "electra": ("Electra", "ForMaskedLM", {**_SIZES, "embedding_size": 8}),
    "ernie": ("Ernie", "ForMaskedLM", _SIZES),
    "eurobert": ("EuroBert", "ForMaskedLM", {**_GROUPED, **_ENDS, "mask_token_id": 3}),
    "falcon": ("Falcon", "ForCausalLM", {**_SIZES, **_ENDS}),
    "gemma": ("Gemma", "ForCausalLM", _GROUPED),
    "gemma2": ("Gemma2", "ForCausalLM", {**_GROUPED, **_TWO_KINDS}),
    "gemma3_text": ("Gemma3", "ForCausalLM", {**_GROUPED, **_TWO_KINDS}),
    "glm": ("Glm", "ForCausalLM", {**_GROUPED, **_ENDS}),
    "gpt2": ("GPT2", "LMHeadModel", {**_GPT, **_ENDS}),
    "gpt_bigcode": ("GPTBigCode", "ForCausalLM", {**_GPT, **_ENDS}),
    "gpt_neo": (
        "GPTNeo",
        "ForCausalLM",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 16,
            "num_layers": 2,
            "num_heads": 2,
            "max_position_embeddings": 40,
            "attention_types": [[["global", "local"], 1]],
            "window_size": WINDOW,
            **_ENDS,
        },
    ),
    "gpt_neox": ("GPTNeoX", "ForCausalLM", _SIZES),
    "gpt_oss": (
        "GptOss",
        "ForCausalLM",
        {**_GROUPED, **_TWO_KINDS, "num_local_experts": 2, "num_experts_per_tok": 1, "pad_token_id": 0},
    ),
    "gptj": ("GPTJ", "ForCausalLM", {**_GPT, **_ENDS, "rotary_dim": 4}),
    "granite": ("Granite", "ForCausalLM", _GROUPED),
    "llama": ("Llama", "ForCausalLM", _GROUPED),
    "megatron-bert": ("MegatronBert", "ForMaskedLM", _SIZES),
    "mistral": ("Mistral", "ForCausalLM", {**_GROUPED, "sliding_window": WINDOW}),
    "mixtral": ("Mixtral", "ForCausalLM", {**_GROUPED, "num_local_experts": 4}),
    "modernbert": (
        "ModernBert",
        "ForMaskedLM",
        {
            **_SIZES,
            **_ENDS,
            "cls_token_id": 1,
            "sep_token_id": 2,
            "global_attn_every_n_layers": 2,
            "local_attention": 2 * WINDOW,
        },
    ),
    "mpnet": ("MPNet", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
    "nemotron": ("Nemotron", "ForCausalLM", _GROUPED),
    "nomic_bert": ("NomicBert", "ForMaskedLM", _SIZES),
    "olmo": ("Olmo", "ForCausalLM", _GROUPED),
    "olmo2": ("Olmo2", "ForCausalLM", _GROUPED),
    "olmo3": ("Olmo3", "ForCausalLM", {**_GROUPED, **_TWO_KINDS}),
    "opt": (
        "OPT",
        "ForCausalLM",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 16,
            "ffn_dim": 24,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "max_position_embeddings": 40,
            "word_embed_proj_dim": 16,
            "pad_token_id": 1,
        },
    ),
    "phi": ("Phi", "ForCausalLM", _SIZES),
    "phi3": ("Phi3", "ForCausalLM", {**_GROUPED, **_ENDS, "sliding_window": WINDOW}),
    "qwen2": (
        "Qwen2",
        "ForCausalLM",
        {**_GROUPED, "use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
    ),
    "qwen2_moe": ("Qwen2Moe", "ForCausalLM", {**_GROUPED, **_EXPERTS, "shared_expert_intermediate_size": 16}),
    "qwen3": ("Qwen3", "ForCausalLM", _GROUPED),
    "qwen3_moe": ("Qwen3Moe", "ForCausalLM", {**_GROUPED, **_EXPERTS}),
    "roberta": ("Roberta", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
    "roberta-prelayernorm": ("RobertaPreLayerNorm", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
    "smollm3": ("SmolLM3", "ForCausalLM", {**_GROUPED, "pad_token_id": 0}),
    "stablelm": ("StableLm", "ForCausalLM", _GROUPED),
    "starcoder2": ("Starcoder2", "ForCausalLM", {**_GROUPED, "sliding_window": WINDOW}),
    "t5": ("T5", "EncoderModel", _T5),
    "mt5": ("MT5", "EncoderModel", _T5),
    "umt5": ("UMT5", "EncoderModel", _T5),
    "xlm-roberta": ("XLMRoberta", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
    "xlm-roberta-xl": ("XLMRobertaXL", "ForMaskedLM", {**_SIZES, "pad_token_id": 1}),
}
"""The architectures that can be packed: name of the family, what it ends in for the class of the model, sizes."""

REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bloom": ("Bloom", "ForCausalLM", {"vocab_size": VOCABULARY, "hidden_size": 16, "n_layer": 2, "n_head": 2}),
    "deberta-v2": ("DebertaV2", "ForMaskedLM", {**_SIZES, "relative_attention": True, "pos_att_type": ["p2c"]}),
    "falcon_mamba": ("FalconMamba", "ForCausalLM", _MAMBA),
    "jamba": (
        "Jamba",
        "ForCausalLM",
        {**_GROUPED, "num_experts": 2, "mamba_d_state": 4, "attn_layer_offset": 1, "attn_layer_period": 2},
    ),
    "lfm2": ("Lfm2", "ForCausalLM", {**_GROUPED, "layer_types": ["conv", "full_attention"]}),
    "mamba": ("Mamba", "ForCausalLM", _MAMBA),
    "mamba2": (
        "Mamba2",
        "ForCausalLM",
        {**_MAMBA, "num_heads": 4, "head_dim": 8, "expand": 2, "n_groups": 1, "chunk_size": 4},
    ),
    "mpt": (
        "Mpt",
        "ForCausalLM",
        {"vocab_size": VOCABULARY, "d_model": 16, "n_layers": 2, "n_heads": 2, "max_seq_len": 40, "expansion_ratio": 2},
    ),
    "rwkv": (
        "Rwkv",
        "ForCausalLM",
        {"vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "attention_hidden_size": 16},
    ),
    "xlnet": (
        "XLNet",
        "LMHeadModel",
        {"vocab_size": VOCABULARY, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24},
    ),
}
"""Some of those that cannot."""


def tiny(name, implementation=None, head=None, **changes):
    """The tiny model of an architecture, in eval mode."""
    family, usual, _ = {**PACKED, **REFUSED}[name]
    config = tiny_config(name, **changes)
    if implementation is not None:
        config._attn_implementation = implementation
    torch.manual_seed(0)
    model = getattr(transformers, family + (head or usual))(config)
    for parameter in model.parameters():  # norms, biases and gates too, so that none of them hides a fault
        parameter.data.add_(torch.randn_like(parameter), alpha=0.2)
    return model.eval()


def tiny_config(name, **changes):
    """Its configuration."""
    family, _, sizes = {**PACKED, **REFUSED}[name]
    named = family + "Text" if family == "Gemma3" else family
    return getattr(transformers, f"{named}Config")(**{**sizes, **changes})
