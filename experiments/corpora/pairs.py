"""Pairs of segments for BERT's pre-training: masked words and next sentence, at the lengths that documents have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from tokenizers import Tokenizer

from brimful.errors import DataError, LengthError
from experiments.corpora.document import Document, sentences
from experiments.corpora.tokens import TokenIds, special_id

NEXT, RANDOM = 0, 1
_SHORT = 0.1
_LEAST_MAX_LENGTH = 8


@dataclass(frozen=True, slots=True, eq=False)
class SentencePair:
    """[CLS] first segment [SEP] second segment [SEP], not padded and nothing masked.

    Args:
        input_ids: (length,) int32.
        token_type_ids: (length,) int32, 0 up to the first [SEP], 1 after it.
        next_sentence_label: 0 if the second segment follows the first in their document, 1 if it is of another.
    """

    input_ids: TokenIds
    token_type_ids: TokenIds
    next_sentence_label: int


@dataclass(frozen=True, slots=True, eq=False)
class _Halves:
    document: int
    first: TokenIds
    second: TokenIds


def sentence_pairs(
    documents: Sequence[Document], tokenizer: Tokenizer, max_length: int = 128, seed: int = 0
) -> list[SentencePair]:
    """Cut documents into runs of sentences, cut each run in two, and let half of the runs swap their second segments.

        document a   [a1 a2 | a3] [a4 | a5]         a1 a2 + a3   next        a4 + b2     random
        document b   [b1 | b2]    [b3 | b4 b5]      b1 + a5      random      b3 + b4 b5  next

    Every second segment is used once, and swapped for one of nearly the same length (those of other documents, closest
    in length first): neither the length of a pair nor its second segment by itself tells. A run is as many sentences as
    fit into max_length, one run in ten as many as fit into a length drawn below it, and never more than its document
    has. So lengths are those of the documents, with an edge at max_length.

    Args:
        documents: those to train on, or those held out, never both: partners are drawn among them.
        tokenizer: with [CLS] and [SEP].
        max_length: most tokens of a pair, ≥ 8. A sentence is cut to half of what that leaves.
        seed: of cuts, swaps and order.

    Returns:
        Pairs in random order; half of them are random, but for one pair, or for more where one document holds most of
        the text. A document of a single sentence gives none, and a sentence left alone at a document's end is left out.

    Raises:
        DataError: no two documents have two sentences each.
        LengthError: max_length is below 8.

    Cost: tokenization; about 20 s for the 126,000 entries of the dictionary on two cores.
    Source: Devlin et al., BERT (2019), appendix A.2; there, random segments are drawn afresh, of any length.
    """
    if max_length < _LEAST_MAX_LENGTH:
        raise LengthError(f"max_length of pairs is at least {_LEAST_MAX_LENGTH} tokens, not {max_length}")
    rng = np.random.default_rng(seed)
    slots = max_length - 3
    runs = [
        _cut_in_two(at, run, rng)
        for at, encoded in enumerate(_encode(documents, tokenizer, most=slots // 2))
        for run in _runs(encoded, slots, rng)
    ]
    if len({run.document for run in runs}) < 2:
        raise DataError(f"pairs need two documents of two sentences or more; there is no such two in {len(documents)}")
    order = rng.permutation(len(runs))
    seconds, swapped = _swap(runs, order[: len(runs) // 2])
    cls, sep = special_id(tokenizer, "[CLS]"), special_id(tokenizer, "[SEP]")
    return [
        _pair(runs[at].first, seconds[at][: slots - len(runs[at].first)], RANDOM if at in swapped else NEXT, cls, sep)
        for at in rng.permutation(len(runs)).tolist()
    ]


def _encode(documents: Sequence[Document], tokenizer: Tokenizer, most: int) -> list[list[TokenIds]]:
    """The sentences of each document, as at most so many tokens each; none is empty."""
    texts = [sentences(document) for document in documents]
    flat = [text for each in texts for text in each]
    encoded: list[TokenIds] = []
    for at in range(0, len(flat), 10_000):
        batch = tokenizer.encode_batch_fast(flat[at : at + 10_000], add_special_tokens=False)
        encoded += (np.array(each.ids[:most], np.int32) for each in batch)
    places = np.cumsum([0, *map(len, texts)]).tolist()
    return [[ids for ids in encoded[start:end] if len(ids)] for start, end in pairwise(places)]


def _runs(encoded: list[TokenIds], slots: int, rng: np.random.Generator) -> list[list[TokenIds]]:
    """Consecutive sentences, two or more a run, that fit into the slots."""
    runs: list[list[TokenIds]] = []
    run: list[TokenIds] = []
    target = filled = 0
    for ids in encoded:
        if len(run) >= 2 and filled + len(ids) > target:
            runs.append(run)
            run, filled = [], 0
        if not run:
            target = int(rng.integers(2, slots + 1)) if rng.random() < _SHORT else slots
        run.append(ids)
        filled += len(ids)
    return [*runs, run] if len(run) >= 2 else runs


def _cut_in_two(document: int, run: list[TokenIds], rng: np.random.Generator) -> _Halves:
    at = int(rng.integers(1, len(run)))
    return _Halves(document, np.concatenate(run[:at]), np.concatenate(run[at:]))


def _swap(runs: list[_Halves], chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[list[TokenIds], set[int]]:
    """The second segment of each run, after the chosen ones have swapped two by two; and which have."""
    seconds = [run.second for run in runs]
    swapped: set[int] = set()
    waiting: list[int] = []
    for at in sorted(chosen.tolist(), key=lambda at: len(runs[at].second)):  # a stable sort: ties stay drawn
        if not waiting or runs[waiting[-1]].document == runs[at].document:
            waiting.append(at)  # all that wait are of one document
            continue
        partner = waiting.pop()
        seconds[at], seconds[partner] = runs[partner].second, runs[at].second
        swapped |= {at, partner}
    return seconds, swapped


def _pair(first: TokenIds, second: TokenIds, label: int, cls: int, sep: int) -> SentencePair:
    ids = np.concatenate([[cls], first, [sep], second, [sep]]).astype(np.int32)
    types = np.repeat(np.array([0, 1], np.int32), [len(first) + 2, len(second) + 1])
    return SentencePair(ids, types, label)
