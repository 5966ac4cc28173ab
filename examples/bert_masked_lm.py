"""Pre-train a small BERT on packs: masked LM and next-sentence prediction on the docstrings of the standard library.

pack_dataset      sentence pairs of differing length, several to a row
PackedCollator    mask, positions and labels of a batch, as this model needs them
PackedEncoder     next-sentence prediction at the first token of each sequence, and losses as if nothing were packed

python examples/bert_masked_lm.py
"""

from __future__ import annotations

import ast
import random
import sysconfig
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForPreTraining

import brimful
from brimful.models import PackedEncoder
from brimful.torch import PackedCollator

CLS, SEP, MASK, BYTES = 256, 257, 258, 259  # bytes are tokens, and four more
MAX_LENGTH, MOST_BYTES, PAIRS, STEPS, BATCH = 512, 126, 1500, 41, 2


def paragraphs() -> list[list[str]]:
    """The docstrings of this Python's modules, in paragraphs."""
    folder = Path(sysconfig.get_path("stdlib"))
    docs = (ast.get_docstring(ast.parse(path.read_bytes())) for path in sorted(folder.glob("[a-z]*.py")))
    return [doc.split("\n\n") for doc in docs if doc and doc.count("\n\n") > 1]


def pairs(rng: random.Random) -> pa.Table:
    """Sentence pairs: half of the second ones follow the first, the others come from elsewhere; some bytes masked."""
    documents = paragraphs()
    names = ("input_ids", "token_type_ids", "labels", "next_sentence_label")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for _ in range(PAIRS):
        document = rng.choice(documents)
        at = rng.randrange(len(document) - 1)
        elsewhere = rng.random() < 0.5
        second = rng.choice(rng.choice(documents)) if elsewhere else document[at + 1]
        one, two = (list(text.encode()[:MOST_BYTES]) for text in (document[at], second))
        tokens = [CLS, *one, SEP, *two, SEP]
        masked = [rng.random() < 0.15 and token < CLS for token in tokens]
        columns["input_ids"].append([MASK if hidden else token for token, hidden in zip(tokens, masked, strict=True)])
        columns["token_type_ids"].append([0] * (len(one) + 2) + [1] * (len(two) + 1))
        columns["labels"].append([token if hidden else -100 for token, hidden in zip(tokens, masked, strict=True)])
        columns["next_sentence_label"].append(int(elsewhere))
    return pa.table(columns)


def main() -> None:
    """Pack, train, and say what packing saved."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # on work this small, more threads only wait for one another
    packed = brimful.pack_dataset(pairs(random.Random(0)), MAX_LENGTH, keep_columns=["next_sentence_label"])
    figures = brimful.packing_report(packed)["figures"]
    print(f"{figures['sequences']} pairs in {figures['packs']} packs, efficiency {figures['efficiency']:.1%}")

    config = BertConfig(
        vocab_size=BYTES,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=MAX_LENGTH,
    )
    model = PackedEncoder(BertForPreTraining(config))
    collator = PackedCollator.for_model(model.model, MAX_LENGTH, sequence_columns=model.sequence_columns)
    loader = DataLoader(packed.to_pylist(), BATCH, shuffle=True, collate_fn=collator)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    batches = iter(loader)
    for step in range(STEPS):
        loss = model(**next(batches)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0 or step == STEPS - 1:
            print(f"step {step:2}   loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
