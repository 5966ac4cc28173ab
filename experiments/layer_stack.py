"""A small BERT, and one pass over the same sequences in rows that are padded, sorted or packed.

All ways learn the same: masked words at 15 % of the tokens and the next sentence, each target with the weight that it
has among all of the pass, so that the gradients of a pass are equal. A step makes a batch, and computes its part of the
gradient. The optimizer's step, one for each pass whatever the way, is left out; so is dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from brimful import LengthHistogram, PackAssignment
from brimful.models import PackedEncoder
from brimful.torch import PackedCollator
from brimful.validation import IntArray
from experiments.turns import Step

VOCABULARY = 1024  # small, so that the layers are most of the work, as they are in a large BERT
_MASK, _FIRST_WORD, _IGNORED = 4, 5, -100
_MASKED = 0.15
_HEAD_WIDTH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """What one pass trains on: random tokens of given lengths, with targets.

    Args:
        lengths: (sequences,) tokens.
        input_ids: of each sequence, some of them masked.
        labels: of each sequence, −100 where no token is masked.
        next_sentence: (sequences,) 0 or 1.
        denominators: what the losses of the whole pass are divided by: all masked tokens, all sequences.
    """

    lengths: IntArray
    input_ids: list[IntArray]
    labels: list[IntArray]
    next_sentence: IntArray
    denominators: dict[str, float]


def even_sample(histogram: LengthHistogram, n: int, seed: int = 0) -> IntArray:
    """(n,) lengths at even ranks of a histogram, in random order: as like it as n lengths can be.

    Example:
        >>> sorted(even_sample(LengthHistogram.from_lengths([2, 2, 2, 2, 5, 5, 5, 9]), 4).tolist())
        [2, 2, 5, 5]
    """
    ranks = (np.arange(n) + 0.5) / n * histogram.n_sequences
    sample: IntArray = histogram.lengths[np.searchsorted(np.cumsum(histogram.counts), ranks)]
    np.random.default_rng(seed).shuffle(sample)
    return sample


def draw(lengths: IntArray, seed: int = 0) -> Sequences:
    """Sequences of these lengths; in each at least one token is masked."""
    random = np.random.default_rng(seed)
    tokens, labels = [], []
    for length in lengths.tolist():
        words = random.integers(_FIRST_WORD, VOCABULARY, length)
        chosen = random.random(length) < _MASKED
        chosen[random.integers(length)] = True
        tokens.append(np.where(chosen, _MASK, words))
        labels.append(np.where(chosen, words, _IGNORED))
    masked = sum(int((each != _IGNORED).sum()) for each in labels)
    denominators = {"token": float(masked), "sequence": float(len(lengths))}
    return Sequences(lengths, tokens, labels, random.integers(0, 2, len(lengths)), denominators)


def bert(hidden_size: int, layers: int, positions: int) -> PackedEncoder:
    """A BERT with heads for both tasks, always with the same weights; the plain model is its `.model`."""
    from transformers import BertConfig, BertForPreTraining

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden_size // _HEAD_WIDTH),
        intermediate_size=4 * hidden_size,
        max_position_embeddings=positions,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return PackedEncoder(BertForPreTraining(config))


def padded_steps(stack: PackedEncoder, sequences: Sequences, rows: int, row_length: int) -> list[Step]:
    """The plain model with its padding mask, on one sequence a row, in data order, padded to row_length."""
    ids = np.arange(len(sequences.lengths))
    return [partial(_padded_step, stack, sequences, ids[at : at + rows], row_length) for at in range(0, len(ids), rows)]


def sorted_steps(stack: PackedEncoder, sequences: Sequences, rows: int) -> list[Step]:
    """The same by falling length, each batch padded to its longest."""
    ids = np.argsort(-sequences.lengths, kind="stable")
    batches = [ids[at : at + rows] for at in range(0, len(ids), rows)]
    return [partial(_padded_step, stack, sequences, batch, int(sequences.lengths[batch[0]])) for batch in batches]


def packed_steps(
    stack: PackedEncoder, sequences: Sequences, packs: PackAssignment, rows: int, max_length: int
) -> list[Step]:
    """The packed model on the packs of an assignment."""
    collator = PackedCollator.for_model(stack.model, max_length, sequence_columns=stack.sequence_columns)
    made = packed_rows(sequences, packs)
    batches = [made[at : at + rows] for at in range(0, len(made), rows)]
    return [partial(_packed_step, stack, collator, batch, sequences.denominators) for batch in batches]


def packed_rows(sequences: Sequences, packs: PackAssignment) -> list[dict[str, Any]]:
    """The rows of a packed data set."""
    return [
        {
            "input_ids": np.concatenate([sequences.input_ids[number] for number in pack]),
            "labels": np.concatenate([sequences.labels[number] for number in pack]),
            "next_sentence_label": sequences.next_sentence[pack],
            "seq_lengths": sequences.lengths[pack],
        }
        for pack in map(packs.__getitem__, range(packs.packs))
    ]


def _packed_step(
    stack: PackedEncoder, collator: PackedCollator, rows: list[dict[str, Any]], denominators: dict[str, float]
) -> None:
    stack(**collator(rows), denominators=denominators).loss.backward()


def _padded_step(stack: PackedEncoder, sequences: Sequences, ids: IntArray, row_length: int) -> None:
    tokens = np.zeros((len(ids), row_length), np.int64)
    labels = np.full_like(tokens, _IGNORED)
    real = np.zeros_like(tokens)
    for row, number in enumerate(ids):
        length = sequences.lengths[number]
        tokens[row, :length], labels[row, :length] = sequences.input_ids[number], sequences.labels[number]
        real[row, :length] = 1
    outputs = stack.model(input_ids=torch.from_numpy(tokens), attention_mask=torch.from_numpy(real))
    words = F.cross_entropy(
        outputs.prediction_logits.flatten(0, 1), torch.from_numpy(labels).flatten(), reduction="sum"
    )
    following = torch.from_numpy(sequences.next_sentence[ids])
    follows = F.cross_entropy(outputs.seq_relationship_logits, following, reduction="sum")
    totals = sequences.denominators
    loss: Any = words / totals["token"] + follows / totals["sequence"]
    loss.backward()
