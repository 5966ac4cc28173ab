"""What each architecture of Hugging Face transformers needs so that sequences in one row do not see one another.

A rule is looked up by `config.model_type`, never guessed. Which mask a model wants, whether it counts positions from 0,
and whether it has a state that no mask reaches are facts of its code, and a wrong guess leaks without an error. So an
architecture that is not in the table is refused, and `brimful.verify` is there to prove a way of one's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from brimful.errors import SettingError, shown
from brimful.models.architectures import ARCHITECTURES, Architecture

ATTENTION = ("sdpa", "eager", "flex", "varlen", "positions")
"""The ways of keeping sequences apart that the collator has inputs for."""

VARLEN_KEYS = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")
"""The inputs of "varlen"; models of transformers hand them on to their attention without naming them in forward."""

_OF_IMPLEMENTATION: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Additive masks are right for sdpa too. Boolean ones in eager attention are added as 0 and 1: no mask at all.
        "sdpa": ("sdpa", "eager", "positions", "varlen"),
        "eager": ("eager", "positions", "varlen"),
        "flex_attention": ("flex", "positions"),
        "flash_attention": ("varlen",),
    }
)
"""For each attn_implementation of a model, the ways that can work; the first is the way of `rule_for`."""

_BY_POSITION = ("positions", "varlen")  # on these the model itself looks for boundaries in position_ids


@dataclass(frozen=True, slots=True)
class PackingRule:
    """How to make the inputs of one model from packed rows.

    Args:
        attention: the way of keeping sequences apart, one of `ATTENTION`.
        causal: whether tokens attend to what is before them only, and labels are shifted inside the model.
        sliding_window: how far tokens attend, in tokens as `brimful.torch.masks` counts them; None for no limit.
        mask_mapping: the names under which `attention_mask` is a mapping of masks, where layers differ; all but
            "full_attention" have the sliding window. None where there is one mask, which has it.
        position_offset: what position 0 of a sequence is called: padding_idx + 1 in RoBERTa's family.
        keys: what of a batch goes into the model's forward.
        forward_arguments: what goes into forward besides, such as use_cache=False.
    """

    attention: str
    causal: bool
    sliding_window: int | None = None
    mask_mapping: tuple[str, ...] | None = None
    position_offset: int = 0
    keys: tuple[str, ...] = ("input_ids", "attention_mask", "position_ids", "labels")
    forward_arguments: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "forward_arguments", MappingProxyType(dict(self.forward_arguments)))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return partial(type(self), **{**values, "forward_arguments": dict(self.forward_arguments)}), ()


def rule_for(model_or_config: Any, attention: str | None = None) -> PackingRule:
    """The rule for a model of Hugging Face transformers, or the reason why there is none.

    Args:
        model_or_config: a model, also one wrapped for training, or its configuration.
        attention: the way of keeping sequences apart, one of `ATTENTION`; None for the one that suits the model's
            attn_implementation.

    Raises:
        SettingError: no rule for this architecture; sequences cannot be kept apart in it; or not in this way.

    Example:
        >>> from types import SimpleNamespace                   # in place of a transformers configuration
        >>> rule_for(SimpleNamespace(model_type="llama", _attn_implementation="sdpa")).forward_arguments["use_cache"]
        False
        >>> rule_for(SimpleNamespace(model_type="mamba"))
        Traceback (most recent call last):
        brimful.errors.SettingError: 'mamba' cannot be packed: its recurrent state and its convolution run on from one \
sequence into the next, whatever the mask

    Cost: none. Each architecture in the table is proved by `brimful.verify` in the tests.
    """
    model, config = _opened(model_or_config)
    name = getattr(config, "model_type", None)
    if name is None:
        raise SettingError(
            f"{type(model_or_config).__name__} has no config.model_type to find a rule by; choose an attention "
            f"({', '.join(ATTENTION)}), prove it with brimful.verify.verify(model, attention=…), and give it to "
            "PackedCollator"
        )
    _require_way(attention)
    architecture = ARCHITECTURES.get(name)
    if architecture is None:
        raise SettingError(
            f"there is no rule for the architecture {shown(name)}; choose an attention, prove it with "
            "brimful.verify.verify(model, attention='sdpa'), and give it to PackedCollator"
        )
    if reason := architecture.refuses(config, model):
        raise SettingError(f"{shown(name)} cannot be packed: {reason}")
    implementation = _implementation(config, model)
    ways = _ways(architecture, implementation)
    if attention is not None and attention not in ways:
        raise SettingError(
            f"attention {shown(attention)} does not keep sequences apart in {shown(name)} with attn_implementation "
            f"{shown(implementation)}{_why_not(attention, implementation)}; there {'is' if len(ways) == 1 else 'are'} "
            f"{', '.join(ways)}"
        )
    return _rule(model, config, architecture, attention or ways[0])


def general_rule(model: Any, attention: str, causal: bool | None = None) -> PackingRule:
    """What one would try on a module that the table does not know: no promise, but something to `verify`.

    Args:
        model: any torch module, or a model of transformers.
        attention: one of `ATTENTION`.
        causal: whether tokens attend to what is before them only; None for what the table knows, or else to tell by
            the name of the class.

    Raises:
        SettingError: there is no such attention.

    Example:
        >>> class TinyForCausalLM:
        ...     def forward(self, input_ids, attention_mask): ...
        >>> rule = general_rule(TinyForCausalLM(), "sdpa")
        >>> rule.causal, rule.keys
        (True, ('input_ids', 'attention_mask'))
    """
    _require_way(attention)
    model, config = _opened(model)
    named = type(model).__name__
    by_name = "CausalLM" in named or "LMHead" in named or getattr(config, "is_decoder", False) is True
    architecture = ARCHITECTURES.get(getattr(config, "model_type", ""), Architecture(by_name))
    if causal is not None:
        architecture = replace(architecture, causal=causal)
    return _rule(model, config, architecture, attention)


def _require_way(attention: str | None) -> None:
    if attention is not None and attention not in ATTENTION:
        raise SettingError(f"there is no attention {shown(attention)}; there are {', '.join(ATTENTION)}")


def _opened(model_or_config: Any) -> tuple[Any, Any]:
    """The model below what wraps it for training, or None; and its configuration for text."""
    inner = model_or_config
    while True:
        below = getattr(inner, "_orig_mod", None)  # of torch.compile, which has what the model has, but its forward
        if below is None and not hasattr(inner, "config") and not hasattr(inner, "model_type"):
            below = getattr(inner, "module", None)
        if below is None:
            break
        inner = below
    if hasattr(inner, "config"):
        model, config = inner, inner.config
    elif hasattr(inner, "model_type"):
        model, config = None, inner
    else:
        model, config = inner, None
    if hasattr(config, "get_text_config"):
        config = config.get_text_config()
    return model, config


def _implementation(config: Any, model: Any) -> str:
    """The name by which the model's attention was chosen; what transformers would choose, if it was not."""
    stated = getattr(config, "_attn_implementation", None)
    if stated is not None:
        return "flash_attention" if str(stated).startswith("flash_attention") else str(stated)
    if model is None:
        from transformers import MODEL_MAPPING

        model = MODEL_MAPPING[type(config)]
    return "sdpa" if getattr(model, "_supports_sdpa", False) else "eager"


def _ways(architecture: Architecture, implementation: str) -> tuple[str, ...]:
    ways = _OF_IMPLEMENTATION.get(implementation)
    if ways is None:
        raise SettingError(
            f"there is no rule for attn_implementation {shown(implementation)}; load the model with "
            "attn_implementation='sdpa'"
        )
    if implementation == "flash_attention" or architecture.finds_boundaries:
        return ways
    return tuple(way for way in ways if way not in _BY_POSITION)


def _why_not(attention: str, implementation: str) -> str:
    if attention == "sdpa" and implementation == "eager":
        return ", which would add True and False as numbers"
    if attention in _BY_POSITION and implementation != "flash_attention":
        return ", which does not look for boundaries in position_ids"
    return ""


def _rule(model: Any, config: Any, architecture: Architecture, attention: str) -> PackingRule:
    window, names = _masks(config)
    masked = attention not in _BY_POSITION
    keys = ["input_ids", *(["attention_mask"] if masked else []), "position_ids", "token_type_ids", "labels"]
    if attention == "varlen":
        keys += VARLEN_KEYS
    accepted = inspect.signature(model.forward).parameters if model is not None else {}
    if model is None and not hasattr(config, "type_vocab_size"):
        keys.remove("token_type_ids")
    if "input_ids" in accepted:  # else forward hands on what it is given, and does not say to whom
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values())
        keys = [key for key in keys if key in accepted or (open_ended and key in VARLEN_KEYS)]
    cached = "use_cache" in accepted if "input_ids" in accepted else architecture.causal
    return PackingRule(
        attention=attention,
        causal=architecture.causal,
        sliding_window=window,
        mask_mapping=names,
        position_offset=architecture.position_offset(config),
        keys=tuple(keys),
        forward_arguments={"use_cache": False} if cached else {},
    )


def _masks(config: Any) -> tuple[int | None, tuple[str, ...] | None]:
    """The sliding window, and the names of the masks where layers differ."""
    window = getattr(config, "sliding_window", None)
    kinds = tuple(sorted(set(getattr(config, "layer_types", None) or ())))
    if len(kinds) > 1:
        return window, kinds
    return (None if kinds == ("full_attention",) else window), None
