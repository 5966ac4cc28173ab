"""PackedEncoder: a BERT-family model with its head trains on packs as on separate sequences; its code is not copied.

    tokens of a pack     [CLS] a b [SEP] | [CLS] c [SEP] | padding
    encoder              every token sees its own sequence: mask and positions from the collator
    heads per token      as they are                                       masked LM, token classification, span QA
    heads per sequence   at the first token of each sequence, not of each pack: NSP, sequence classification
    loss                 each target weighs what it would weigh in a batch of separate sequences

The model's own forward runs. Only what its encoder hands to a head that pools is exchanged on the way: hidden states
of (packs, slots) become those of (sequences, first token).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from brimful.errors import DataError, SettingError, shown
from brimful.models.rules import rule_for
from brimful.torch.losses import sequence_loss, token_loss
from brimful.torch.spans import span_loss


class PackedEncoder(nn.Module):
    """A BERT-family model of transformers with its head, on packs.

    Args:
        model: one that `rule_for` has a rule for, with a head of `HEADS`: ForPreTraining, ForMaskedLM,
            ForNextSentencePrediction, ForSequenceClassification, ForTokenClassification or ForQuestionAnswering. It is
            kept as it is, under `.model`: save and load that.
        normalization: of the loss over tokens: "token" (a mean over all targets, as transformers takes it), "sequence"
            or "sqrt"; see `brimful.torch.weights`.

    Raises:
        SettingError: no rule for this model, or no such head.

    Example:
        >>> from transformers import BertConfig, BertForSequenceClassification
        >>> import torch
        >>> from brimful.torch import PackedCollator
        >>> config = BertConfig(vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, num_labels=3)
        >>> packed = PackedEncoder(BertForSequenceClassification(config))
        >>> collator = PackedCollator.for_model(packed.model, max_length=8, sequence_columns=packed.sequence_columns)
        >>> batch = collator([{"input_ids": [2, 5, 3, 2, 6, 7, 3], "seq_lengths": [3, 4], "labels": [0, 2]}])
        >>> packed(**batch).logits.shape                 # a pack of two sequences, three classes
        torch.Size([1, 2, 3])

    Cost: that of the model, and for heads per sequence a gather of their first tokens.
    Source: arXiv 2107.02027, section 3.2.
    """

    def __init__(self, model: Any, normalization: str = "token") -> None:
        super().__init__()
        self._rule = rule_for(model)
        self._head = _head_of(model)
        self.model = model
        self.normalization = normalization

    @property
    def sequence_columns(self) -> tuple[str, ...]:
        """The columns of labels that have one value per sequence; the collator wants to know."""
        return self._head.sequence_columns

    def forward(self, *, denominators: Mapping[str, Tensor | float] | None = None, **batch: Any) -> Any:
        """The outputs of the model, those of a sequence as (batch, segments, …), and the loss if there are labels.

        Args:
            denominators: for a step of several batches or ranks, what "token" and "sequence" losses of the whole step
                are divided by, from `step_denominator`; None where a step is one batch on one rank.
            batch: from a `PackedCollator.for_model` of this model; labels under the names that the model has for them,
                with positions of answers counted from the first token of their sequence.

        Raises:
            DataError: no input_ids, segment_ids or seq_lengths in the batch; labels that the losses refuse.
            SettingError: a normalization that there is not.
        """
        if missing := {"input_ids", "segment_ids", "seq_lengths"} - batch.keys():
            raise DataError(f"a batch of packs has {min(missing)}; make it with PackedCollator.for_model(model)")
        inputs = {name: value for name, value in batch.items() if name in self._rule.keys and name != "labels"}
        seq_lengths = batch["seq_lengths"]
        pooling = None
        if self._head.of_sequence:
            first = _first_slots(batch["segment_ids"], seq_lengths.shape[1])
            pooling = self.model.base_model.register_forward_hook(_Pooled(first, self._head.hidden_too))
        try:
            outputs = self.model(**inputs, **self._rule.forward_arguments, return_dict=True)
        finally:
            if pooling is not None:
                pooling.remove()
        for name in self._head.of_sequence:
            outputs[name] = outputs[name].unflatten(0, seq_lengths.shape)
        if all(name in batch for name in self._head.labels):
            loss = self._head.loss(outputs, batch, self.normalization, dict(denominators or {}), self.model.config)
            # The loss comes first, as in the model's own outputs.
            return type(outputs)(**{**outputs, "loss": loss})
        return outputs


@dataclass(frozen=True, slots=True)
class _Pooled:
    """A hook: what the encoder gives to its head, at the first token of each sequence in place of each pack."""

    first_slots: Int[Tensor, "batch segments"]
    hidden_too: bool

    def __call__(self, encoder: Any, _: Any, outputs: Any) -> Any:
        hidden = outputs.last_hidden_state
        rows = torch.arange(len(hidden), device=hidden.device)[:, None]
        first = hidden[rows, self.first_slots].flatten(0, 1)[:, None]
        if outputs.get("pooler_output") is not None:
            outputs["pooler_output"] = _pool(encoder, first)
        if self.hidden_too:
            outputs["last_hidden_state"] = first
        return outputs


def _first_slots(segment_ids: Int[Tensor, "batch seq"], segments: int) -> Int[Tensor, "batch segments"]:
    """The first slot of each sequence, also where sequences are aligned; the last slot where a row has no such one."""
    last = segment_ids.shape[1] - 1
    slots = torch.arange(last + 1, device=segment_ids.device).expand_as(segment_ids)
    first = slots.new_full((len(segment_ids), segments + 1), last)
    return first.scatter_reduce(1, segment_ids.long(), slots, "amin")[:, 1:]


def _pool(encoder: Any, first: Float[Tensor, "sequences 1 hidden"]) -> Float[Tensor, "sequences hidden"]:
    if isinstance(encoder.pooler, nn.Linear):  # ALBERT picks the first token outside its pooler
        pooled: Tensor = encoder.pooler_activation(encoder.pooler(first[:, 0]))
    else:
        pooled = encoder.pooler(first)
    return pooled


def _tokens(outputs: Any, batch: Any, normalization: str, denominators: dict[str, Any], name: str) -> Tensor:
    labels, segments = batch["labels"], batch["segment_ids"]
    return token_loss(outputs[name], labels, segments, normalization, denominators.get("token"))


def _sequences(outputs: Any, batch: Any, denominators: dict[str, Any], name: str, label: str, problem: str) -> Tensor:
    return sequence_loss(outputs[name], batch[label], batch["seq_lengths"], problem, denominators.get("sequence"))


def _token_head(outputs: Any, batch: Any, normalization: str, denominators: dict[str, Any], _: Any) -> Tensor:
    return _tokens(outputs, batch, normalization, denominators, "logits")


def _classification(outputs: Any, batch: Any, _: str, denominators: dict[str, Any], config: Any) -> Tensor:
    problem = config.problem_type
    if problem is None:  # as transformers infers it
        whole = not batch["labels"].is_floating_point()
        several = "single_label_classification" if whole else "multi_label_classification"
        problem = "regression" if config.num_labels == 1 else several
    return _sequences(outputs, batch, denominators, "logits", "labels", problem)


def _next_sentence(outputs: Any, batch: Any, _: str, denominators: dict[str, Any], __: Any) -> Tensor:
    return _sequences(outputs, batch, denominators, "logits", "labels", "single_label_classification")


def _pretraining(logits: str, label: str) -> _Loss:
    def loss(outputs: Any, batch: Any, normalization: str, denominators: dict[str, Any], _: Any) -> Tensor:
        masked = _tokens(outputs, batch, normalization, denominators, "prediction_logits")
        return masked + _sequences(outputs, batch, denominators, logits, label, "single_label_classification")

    return loss


def _spans(outputs: Any, batch: Any, _: str, denominators: dict[str, Any], __: Any) -> Tensor:
    return span_loss(
        outputs["start_logits"],
        outputs["end_logits"],
        batch["start_positions"],
        batch["end_positions"],
        batch["segment_ids"],
        batch["seq_lengths"],
        denominators.get("sequence"),
    )


_Loss = Callable[[Any, Any, str, dict[str, Any], Any], Tensor]


@dataclass(frozen=True, slots=True)
class Head:
    """How a head is trained.

    Args:
        labels: the columns that its loss needs.
        sequence_columns: which of them have one value per sequence.
        loss: from outputs, batch, normalization, denominators and configuration.
        of_sequence: outputs that are per sequence.
        hidden_too: whether the head picks the first token of the hidden states by itself; no token needs them then.
    """

    labels: tuple[str, ...]
    sequence_columns: tuple[str, ...]
    loss: _Loss
    of_sequence: tuple[str, ...] = ()
    hidden_too: bool = False


_NSP, _SOP = "next_sentence_label", "sentence_order_label"

HEADS: Mapping[str, Head] = MappingProxyType(
    {
        "AlbertForPreTraining": Head(("labels", _SOP), (_SOP,), _pretraining("sop_logits", _SOP), ("sop_logits",)),
        "ForPreTraining": Head(
            ("labels", _NSP), (_NSP,), _pretraining("seq_relationship_logits", _NSP), ("seq_relationship_logits",)
        ),
        "ForMaskedLM": Head(("labels",), (), _token_head),
        "ForNextSentencePrediction": Head(("labels",), ("labels",), _next_sentence, ("logits",)),
        "ForSequenceClassification": Head(("labels",), ("labels",), _classification, ("logits",), hidden_too=True),
        "ForTokenClassification": Head(("labels",), (), _token_head),
        "ForQuestionAnswering": Head(
            ("start_positions", "end_positions"), ("start_positions", "end_positions"), _spans
        ),
    }
)
"""Every head by the end of its class's name, the longest that fits."""

_OTHER = ("ElectraForPreTraining",)  # tells replaced tokens from others, which is another loss


def _head_of(model: Any) -> Head:
    name = type(model).__name__
    fitting = [end for end in HEADS if name.endswith(end)]
    if not fitting or name in _OTHER:
        raise SettingError(f"there is no packed head for {shown(name)}; there are {', '.join(HEADS)}")
    return HEADS[max(fitting, key=len)]
