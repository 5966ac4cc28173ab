"""The architectures of Hugging Face transformers that brimful knows, each with what its code does about packing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Architecture:
    """What the code of one architecture does.

    Args:
        causal: whether tokens attend to what is before them only.
        finds_boundaries: whether it takes a restart in position_ids for a boundary, when it has neither a mask nor a
            cache.
        counts_from_padding: whether positions start at padding_idx + 1.
        refusal: why sequences cannot be kept apart in it: a reason, or a function of the configuration and the model
            (None if only the configuration is known) that gives one or None. None where they can.
    """

    causal: bool
    finds_boundaries: bool = False
    counts_from_padding: bool = False
    refusal: str | Callable[[Any, Any], str | None] | None = None

    def refuses(self, config: Any, model: Any) -> str | None:
        """Why this model cannot be packed, or None if it can."""
        reason = self.refusal(config, model) if callable(self.refusal) else self.refusal
        if reason is None and self.causal and type(model).__name__.endswith(_ONE_PER_ROW):
            return _LAST_TOKEN
        return reason

    def position_offset(self, config: Any) -> int:
        """What position 0 of a sequence is called."""
        return int(config.pad_token_id) + 1 if self.counts_from_padding else 0


_RECURRENT = "its recurrent state and its convolution run on from one sequence into the next, whatever the mask"
_MIXED = "some of its layers are recurrent or convolutions, which run on from one sequence into the next"
_ALIBI = "its ALiBi bias counts over the whole row, not from the start of each sequence"
_ONE_PER_ROW = ("ForSequenceClassification", "DoubleHeadsModel")
_LAST_TOKEN = (
    "its head takes one token of each row, not of each sequence; take the hidden states of the model below it at the "
    "last token of each sequence, and put the head on those"
)
_OWN_MASK = "it makes its attention from a mask of one value a token, and takes no mask of pairs"


def _alibi_if_set(config: Any, _: Any) -> str | None:
    return _ALIBI if getattr(config, "alibi", False) else None


def _decoder_if_set(config: Any, _: Any) -> str | None:
    return "as a decoder it has no rule; load it as an encoder" if getattr(config, "is_decoder", False) else None


def _router_loss_if_set(config: Any, _: Any) -> str | None:
    if not getattr(config, "output_router_logits", False):
        return None
    return (
        "with output_router_logits=True its auxiliary loss is over the whole batch, padding too, and takes a mask of "
        "one value a token, not of pairs; set config.output_router_logits=False"
    )


def _beside_a_decoder(_: Any, model: Any) -> str | None:
    """The encoder alone takes the mask; the whole model hands the encoder's mask to cross-attention."""
    if type(model).__name__.endswith("EncoderModel"):
        return None
    return (
        "its cross-attention takes the mask of its encoder, which is of another shape; its EncoderModel can be packed"
    )


_ENCODER = Architecture(causal=False, refusal=_decoder_if_set)
_ROBERTA = Architecture(causal=False, counts_from_padding=True, refusal=_decoder_if_set)
_DECODER = Architecture(causal=True, finds_boundaries=True)
_EXPERTS = Architecture(causal=True, finds_boundaries=True, refusal=_router_loss_if_set)
_NEEDS_MASK = Architecture(causal=True)


def _refused(reason: str, causal: bool = True) -> Architecture:
    return Architecture(causal, refusal=reason)


ARCHITECTURES: Mapping[str, Architecture] = MappingProxyType(
    {
        **dict.fromkeys(("albert", "bert", "distilbert", "electra", "ernie", "megatron-bert"), _ENCODER),
        **dict.fromkeys(("eurobert", "modernbert", "nomic_bert"), _ENCODER),
        **dict.fromkeys(("camembert", "data2vec-text", "mpnet", "roberta", "roberta-prelayernorm"), _ROBERTA),
        **dict.fromkeys(("xlm-roberta", "xlm-roberta-xl"), _ROBERTA),
        **dict.fromkeys(("codegen", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj"), _DECODER),
        **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3"), _DECODER),
        **dict.fromkeys(("mixtral", "qwen2_moe", "qwen3_moe"), _EXPERTS),
        **dict.fromkeys(("gemma", "gemma2", "gemma3_text", "phi", "phi3"), _DECODER),
        **dict.fromkeys(("cohere", "cohere2", "glm", "granite", "nemotron", "olmo", "olmo2", "olmo3"), _DECODER),
        **dict.fromkeys(("deepseek_v3", "smollm3", "stablelm", "starcoder2"), _DECODER),
        **dict.fromkeys(("biogpt", "opt"), _NEEDS_MASK),
        "gpt_oss": Architecture(causal=True, refusal=_router_loss_if_set),
        "falcon": Architecture(causal=True, finds_boundaries=True, refusal=_alibi_if_set),
        **dict.fromkeys(("bloom", "mpt"), _refused(_ALIBI)),
        **dict.fromkeys(("falcon_mamba", "mamba", "mamba2", "rwkv"), _refused(_RECURRENT)),
        **dict.fromkeys(("bamba", "falcon_h1", "granitemoehybrid", "jamba", "lfm2"), _refused(_MIXED)),
        **dict.fromkeys(("nemotron_h", "qwen3_next", "recurrent_gemma", "zamba", "zamba2"), _refused(_MIXED)),
        **dict.fromkeys(("deberta", "deberta-v2", "funnel", "longformer", "xlnet"), _refused(_OWN_MASK, causal=False)),
        **dict.fromkeys(("mt5", "t5", "umt5"), Architecture(causal=False, refusal=_beside_a_decoder)),
    }
)
"""Every known architecture by its `config.model_type`; those that can be packed are proved so in the tests."""
