"""Sentence pairs of real documents with hidden words, padded or packed: what the small BERT is pre-trained on.

    pairs ─► masked, anew in every epoch ─┬─► padded_steps    one to a row, filled up to 128 tokens
                                          ├─► repacked_steps  the same ones in each step, packed among themselves
                                          └─► packed_steps    packs of one plan for all pairs, filled anew each epoch

What is hidden in a pair depends on the seed, the epoch and the pair alone, so all three learn from the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import brimful
from brimful.plans import PackPlan
from brimful.torch import PackedCollator
from brimful.torch.padding import pad_collate
from brimful.validation import IntArray
from experiments.corpora import Document, SentencePair, TokenIds, documents, sentence_pairs, split, tokenizer, unseen
from experiments.corpora.tokens import SPECIAL, special_id

Row: TypeAlias = dict[str, Any]
Batch: TypeAlias = dict[str, Any]

MAX_LENGTH = 128
"""Tokens of a padded row, and of a pack."""
VOCABULARY = 2048
LABEL = "next_sentence_label"
PAD, UNKNOWN, _, _, MASK = range(len(SPECIAL))
IGNORED = -100

FULL: Mapping[str, int] = {"computing": 20_000, "dictionary": 12_000, "chat": 2_000}
"""Corpora of the full runs, and the most documents of each that are trained on."""
QUICK: Mapping[str, int] = {"computing": 2_000, "dictionary": 2_000, "chat": 200}

_HIDDEN, _AS_MASK, _AS_ANY = 0.15, 0.8, 0.1
_TRAIN_PER_HELD_OUT = 20


@dataclass(frozen=True, slots=True, eq=False)
class PretrainingData:
    """Pairs in a vocabulary of frequent tokens.

    Args:
        train: to learn from.
        held_out: of other documents, for the figures.
        numbers: (tokens of the tokenizer,) int64, what each is called in the vocabulary; see `frequent_tokens`.
        sources: registry, package and version of each corpus.
    """

    train: list[SentencePair]
    held_out: list[SentencePair]
    numbers: IntArray
    sources: tuple[str, ...]

    @property
    def vocabulary(self) -> int:
        """How many tokens the vocabulary has."""
        return int(self.numbers.max()) + 1

    @property
    def lengths(self) -> IntArray:
        """(pairs to learn from,) tokens of each."""
        return np.array([len(pair.input_ids) for pair in self.train])

    def figures(self) -> dict[str, Any]:
        """Where the pairs come from, and what of their words the vocabulary knows; ready for JSON."""
        words = np.concatenate([pair.input_ids for pair in self.train])
        words = words[(words == UNKNOWN) | (words >= len(SPECIAL))]
        return {
            "sources": list(self.sources),
            "vocabulary": self.vocabulary,
            "beyond_vocabulary": float(np.mean(words == UNKNOWN)),
        }


def pretraining_data(most: Mapping[str, int], held_out: int, vocabulary: int = VOCABULARY) -> PretrainingData:
    """Pairs from some documents of each corpus; half of the second segments are of another document, of any corpus.

    Args:
        most: for each corpus, the most documents to learn from.
        held_out: the most pairs that are held out.
        vocabulary: tokens that are kept; all others are read as [UNK], so that the scores of a word, of which there are
            as many as tokens, do not outweigh the encoder of a small model.

    Cost: half a minute for all of `FULL`, most of it to read and cut the dictionary.
    """
    known: dict[Document, None] = {}
    unknown: dict[Document, None] = {}
    for name, number in most.items():
        train, test = split(documents(name))
        test = unseen(test, train)
        known |= dict.fromkeys(train[:number])  # where one corpus stands in for all, each document is there once
        unknown |= dict.fromkeys(test[: -(-number // _TRAIN_PER_HELD_OUT)])
    by = tokenizer()
    pairs, others = (sentence_pairs(list(each), by, MAX_LENGTH) for each in (known, unknown))
    numbers = frequent_tokens(
        [pair.input_ids for pair in pairs], [special_id(by, token) for token in SPECIAL], vocabulary
    )
    return PretrainingData(
        [_renumbered(pair, numbers) for pair in pairs],
        [_renumbered(pair, numbers) for pair in others[:held_out]],
        numbers,
        tuple(dict.fromkeys(document.source for document in known)),
    )


def frequent_tokens(sequences: Sequence[TokenIds], special: Sequence[int], vocabulary: int) -> IntArray:
    """What each token is called in a vocabulary of the most frequent; of equally frequent ones the lower comes first.

    Args:
        sequences: of token ids.
        special: the ids of [PAD], [UNK], [CLS], [SEP] and [MASK], which become 0 to 4.
        vocabulary: tokens that are kept, those five among them.

    Returns:
        (highest id of all + 1,) int64; 1, as [UNK], for tokens that are not kept.

    Example:
        >>> frequent_tokens([np.array([2, 9, 7, 9, 8, 3])], special=[0, 1, 2, 3, 4], vocabulary=7)
        array([0, 1, 2, 3, 4, 1, 1, 6, 1, 5])
    """
    counts = np.bincount(np.concatenate([*sequences, np.array(special)]))
    counts[list(special)] = 0
    kept = np.argsort(-counts, kind="stable")[: vocabulary - len(special)]
    kept = kept[counts[kept] > 0]
    numbers = np.full(len(counts), UNKNOWN, np.int64)
    numbers[[*special, *kept]] = np.arange(len(special) + len(kept))
    return numbers


def renumbered(ids: TokenIds, numbers: IntArray) -> TokenIds:
    """Token ids in the vocabulary; those that it has never seen are [UNK]."""
    inside = ids < len(numbers)
    return np.where(inside, numbers[np.where(inside, ids, 0)], UNKNOWN).astype(np.int32)


def _renumbered(pair: SentencePair, numbers: IntArray) -> SentencePair:
    return SentencePair(renumbered(pair.input_ids, numbers), pair.token_type_ids, pair.next_sentence_label)


def masked(pairs: Sequence[SentencePair], vocabulary: int, seed: int, epoch: int = 0) -> list[Row]:
    """The pairs with 15 % of their words hidden: 80 % of these as [MASK], 10 % as any word, 10 % left to be seen.

    Returns:
        For each pair a row of `input_ids`, `token_type_ids`, `labels` (the hidden word, -100 elsewhere) and
        `next_sentence_label`. Special tokens, [UNK] among them, are never hidden.

    Source: Devlin et al., BERT (2019), section 3.1.
    """
    rng = np.random.default_rng([seed, epoch])
    words = np.concatenate([pair.input_ids for pair in pairs]).astype(np.int64)
    hidden = (rng.random(len(words)) < _HIDDEN) & (words >= len(SPECIAL))
    labels = np.where(hidden, words, IGNORED)
    way, anything = rng.random(len(words)), rng.integers(len(SPECIAL), vocabulary, len(words))
    words = np.where(hidden & (way < _AS_MASK), MASK, words)
    words = np.where(hidden & (way >= 1 - _AS_ANY), anything, words)
    places = np.cumsum([0, *(len(pair.input_ids) for pair in pairs)]).tolist()
    return [
        {
            "input_ids": words[start:end],
            "token_type_ids": pair.token_type_ids,
            "labels": labels[start:end],
            LABEL: pair.next_sentence_label,
        }
        for pair, (start, end) in zip(pairs, itertools.pairwise(places), strict=True)
    ]


def padded_steps(data: PretrainingData, rows: int, seed: int) -> Iterator[Batch]:
    """A batch of so many pairs for every step, each in a row of its own, filled up to 128 tokens; without end."""
    for each in _same_steps(data, rows, seed):
        yield pad_collate(each, PAD, pad_to=MAX_LENGTH)


def repacked_steps(data: PretrainingData, rows: int, seed: int, collator: PackedCollator) -> Iterator[Batch]:
    """The pairs of the same steps as `padded_steps`, packed among themselves in each step."""
    for each in _same_steps(data, rows, seed):
        yield collator.from_sequences(each)


def _same_steps(data: PretrainingData, rows: int, seed: int) -> Iterator[list[Row]]:
    for epoch in itertools.count():
        hidden = masked(data.train, data.vocabulary, seed, epoch)
        order = np.random.default_rng([seed, epoch, 1]).permutation(len(hidden))
        for at in range(0, len(order) - rows + 1, rows):
            yield [hidden[pair] for pair in order[at : at + rows]]


def packed_steps(
    data: PretrainingData, plan: PackPlan, packs: int, seed: int, collator: PackedCollator
) -> Iterator[Batch]:
    """A batch of so many packs of the plan for every step; in every epoch other pairs share a pack."""
    for epoch in itertools.count():
        hidden = masked(data.train, data.vocabulary, seed, epoch)
        yield from pack_batches(hidden, plan, packs, seed, epoch, collator)


def pack_batches(
    rows: Sequence[Row], plan: PackPlan, packs: int, seed: int, epoch: int, collator: PackedCollator
) -> Iterator[Batch]:
    """The batches of one epoch, without the last if it has fewer packs."""
    filled = brimful.assign(plan, [len(row["input_ids"]) for row in rows], seed, epoch)
    for at in range(0, filled.packs - packs + 1, packs):
        offsets = filled.pack_offsets[at : at + packs + 1]
        chosen = filled.sequence_ids[offsets[0] : offsets[-1]]
        alone = brimful.PackAssignment(np.arange(len(chosen)), offsets - offsets[0])
        yield collator.from_sequences([rows[sequence] for sequence in chosen], alone)
