"""Fine-tune a small causal model on prompts and completions, packed: only completions are learned.

Two jobs are trained side by side from the same weights, one on packs and one on padded rows, with the same sequences in
every step. completion_mask says what is to be learned; no token is ever compared with an end-of-sequence token.

    python examples/causal_sft.py
"""

from __future__ import annotations

import copy
import random

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from transformers import LlamaConfig, LlamaForCausalLM

from brimful.torch import PackedCollator
from brimful.torch.losses import causal_lm_loss

MAX_LENGTH, STEPS, EXAMPLES, END = 64, 60, 16, 10


def addition(rng: random.Random) -> dict[str, list[int]]:
    """A sum of up to five digits, tokens 0 to 9: the prompt has both numbers, 11 between them and 12 at its end."""
    one, two = (rng.randrange(10 ** rng.randint(1, 5)) for _ in range(2))
    prompt = [*map(int, str(one)), 11, *map(int, str(two)), 12]
    completion = [*map(int, str(one + two)), END]
    return {
        "input_ids": prompt + completion,
        "completion_mask": [0] * len(prompt) + [1] * len(completion),
    }


def padded(examples: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
    """One example a row, in PyTorch alone."""
    longest = max(len(example["input_ids"]) for example in examples)
    batch: dict[str, list[list[int]]] = {"input_ids": [], "attention_mask": [], "labels": []}
    for example in examples:
        tokens, learned = example["input_ids"], example["completion_mask"]
        empty = longest - len(tokens)
        batch["input_ids"].append(tokens + [END] * empty)
        batch["attention_mask"].append([1] * len(tokens) + [0] * empty)
        labels = [token if learn else -100 for token, learn in zip(tokens, learned, strict=True)]
        batch["labels"].append(labels + [-100] * empty)
    return {name: torch.tensor(rows) for name, rows in batch.items()}


def main() -> None:
    """Train both, and check that they stay the same."""
    torch.set_num_threads(1)  # on work this small, more threads only wait for one another
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=13, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4
    )
    packed_model = LlamaForCausalLM(config).double()
    padded_model = copy.deepcopy(packed_model)
    optimizers = [torch.optim.AdamW(model.parameters(), lr=3e-3) for model in (packed_model, padded_model)]
    collator = PackedCollator.for_model(packed_model, MAX_LENGTH, pad_token_id=END)
    rng = random.Random(0)
    for number in range(STEPS):
        examples = [addition(rng) for _ in range(EXAMPLES)]
        batch = collator.from_sequences(examples)
        logits = packed_model(**collator.model_inputs(batch)).logits
        packed_loss = causal_lm_loss(logits, batch["labels"], batch["segment_ids"])

        plain = padded(examples)
        labels = plain.pop("labels")
        logits = padded_model(**plain).logits
        padded_loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

        for optimizer, loss in zip(optimizers, (packed_loss, padded_loss), strict=True):
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        torch.testing.assert_close(packed_loss, padded_loss, atol=1e-8, rtol=0)
        if number % 20 == 0 or number == STEPS - 1:
            print(
                f"step {number:2}   packed loss {packed_loss.item():.6f} on {batch['input_ids'].numel()} slots   "
                f"padded loss {padded_loss.item():.6f} on {plain['input_ids'].numel()} slots"
            )


if __name__ == "__main__":
    main()
