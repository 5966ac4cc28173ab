"""200 steps on packs and 200 on the separate sequences, with the same effective batch: the loss curves are one."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
import transformers

from brimful.models import PackedEncoder
from brimful.torch import PackedCollator
from brimful.torch.losses import causal_lm_loss

STEPS, SEQUENCES, SLOTS, VOCABULARY = 200, 12, 32, 20


def sequence(random, length):
    """Something to learn: tokens that count up, a fifth of them masked in a copy."""
    tokens = (random.integers(VOCABULARY) + np.arange(length) * random.integers(1, 4)) % VOCABULARY + 3
    masked = random.random(length) < 0.2
    masked[0] = True
    return {
        "input_ids": np.where(masked, 2, tokens).tolist(),
        "labels": np.where(masked, tokens, -100).tolist(),
        "next_sentence_label": int(random.integers(2)),
    }


def steps():
    random = np.random.default_rng(0)
    for _ in range(STEPS):
        yield [sequence(random, int(length)) for length in random.integers(1, SLOTS + 1, SEQUENCES)]


def padded(sequences):
    """One sequence a row, as any user of transformers would do it."""
    ids, labels = (
        torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(row[name]) for row in sequences], batch_first=True, padding_value=fill
        )
        for name, fill in (("input_ids", 0), ("labels", -100))
    )
    attention_mask = torch.arange(ids.shape[1]) < torch.tensor([[len(row["input_ids"])] for row in sequences])
    return {"input_ids": ids, "attention_mask": attention_mask.long()}, labels


def curve(model, loss_of):
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for sequences in steps():
        loss = loss_of(model, sequences)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def check(model, packed_loss, padded_loss):
    one, two = curve(copy.deepcopy(model), packed_loss), curve(copy.deepcopy(model), padded_loss)
    assert max(abs(a - b) for a, b in zip(one, two, strict=True)) <= 1e-4
    assert np.mean(one[-20:]) < np.mean(one[:20]) - 0.05  # it learned something


def small(kind):
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY + 3,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    sizes |= {"intermediate_size": 32, "max_position_embeddings": SLOTS, "_attn_implementation": "sdpa"}
    if kind == "bert":
        config = transformers.BertConfig(**sizes, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        return transformers.BertForPreTraining(config).double()
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).double()


def test_bert_pre_training():
    model = small("bert")
    collator = PackedCollator.for_model(model, SLOTS, sequence_columns=("next_sentence_label",))

    def packed(model, sequences):
        return PackedEncoder(model)(**collator.from_sequences(sequences)).loss

    def separate(model, sequences):
        inputs, labels = padded(sequences)
        answers = torch.tensor([row["next_sentence_label"] for row in sequences])
        out = model(**inputs)
        masked = F.cross_entropy(out.prediction_logits.flatten(0, 1), labels.flatten())
        return masked + F.cross_entropy(out.seq_relationship_logits, answers)

    check(model, packed, separate)


@pytest.mark.parametrize("normalization", ["token", "sequence"])
def test_causal_language_model(normalization):
    model = small("llama")
    collator = PackedCollator.for_model(model, SLOTS, pad_token_id=0)

    def packed(model, sequences):
        batch = collator.from_sequences([{"input_ids": row["input_ids"]} for row in sequences])
        logits = model(**collator.model_inputs(batch)).logits
        return causal_lm_loss(logits, batch["labels"], batch["segment_ids"], normalization)

    def separate(model, sequences):
        inputs, _ = padded(sequences)
        logits, targets = model(**inputs).logits[:, :-1], inputs["input_ids"][:, 1:]
        counted = inputs["attention_mask"][:, 1:]
        losses = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets) * counted
        if normalization == "token":
            return losses.sum() / counted.sum()
        targets_of = counted.sum(1)
        return (losses.sum(1) / targets_of.clamp(min=1)).sum() / (targets_of > 0).sum()

    check(model, packed, separate)
