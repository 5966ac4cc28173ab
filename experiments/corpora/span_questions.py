"""Span questions in SQuAD's manner, made of a dictionary: what is this headword, and where does the passage say so?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from brimful.errors import DataError
from experiments.corpora.document import Document, first_sentence
from experiments.corpora.tokens import TokenIds, special_id

ENTRIES = (2, 6)
"""Fewest and most entries in a passage."""

_OPENING = re.compile(
    r"(?!(?:see|same as)\b)(?:[\w'-]+ ){1,11}?[\w'-]+(?=[,;:.]| \(| (?:that|which|who|whose)\b)", re.IGNORECASE
)
_TRIES = 60


@dataclass(frozen=True, slots=True, eq=False)
class SpanQuestion:
    """[CLS] headword [SEP] passage [SEP], not padded, and where the answer stands.

    Args:
        input_ids: (length,) int32.
        token_type_ids: (length,) int32, 0 up to the first [SEP], 1 after it.
        start_position: index in input_ids of the answer's first token.
        end_position: index of its last token.
        question, passage, answer: the texts of which they were made.
    """

    input_ids: TokenIds
    token_type_ids: TokenIds
    start_position: int
    end_position: int
    question: str
    passage: str
    answer: str


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A headword and its definition, "Coal: A black mineral, used for fuel.", and where the answer is in its tokens."""

    key: str
    title: str
    text: str
    answer: str
    title_ids: TokenIds
    ids: TokenIds
    start: int
    end: int


def opening(definition: str) -> str:
    """The first words of a definition, two at least, up to a stop, comma, bracket or relative clause; "" if over 12.

    "" also where the definition only refers to another, and where it ends without any of these.

    Example:
        >>> opening("A device which bridges some packets.")
        'A device'
        >>> opening("One who hews coal, or sells it."), opening("See Ditto.")
        ('One who hews coal', '')
    """
    found = _OPENING.match(definition)
    return found[0] if found else ""


def questions(
    documents: Sequence[Document], tokenizer: Tokenizer, max_length: int = 128, most: int | None = None, seed: int = 0
) -> list[SpanQuestion]:
    """For each headword a passage of some entries in random order; the answer is how the definition of that one opens.

        question   Coal
        passage    Ditto: The aforesaid thing; the same. Coal: A black mineral, used for fuel. Auger: A tool that bores.
        answer                                                 ^^^^^^^^^^^^^^^

    The first sentence of each definition stands after its headword, two to six entries to a passage, the one in
    question at a random place. The answer is unambiguous: a headword stands once in its passage, and where the answer
    ends is a rule (`opening`). Neither half can be had without reading: not the place without finding the headword of
    the question among alike entries, not the end without the words that follow.

    Args:
        documents: dictionary entries or docstrings, those to train on or those held out; other entries of a passage
            are drawn among them too.
        tokenizer: with [CLS] and [SEP].
        max_length: most tokens of a question with its passage. A passage that would be longer is left out.
        most: the most questions to make; None for one of every document that can be asked about.
        seed: of other entries and of their order.

    Raises:
        DataError: fewer than two documents have a title and a definition that opens in such a way.

    Cost: tokenization of the titles and first sentences of all documents, whatever `most` is; 8 s for the dictionary.
    Source: the form is that of SQuAD, Rajpurkar et al. (2016); the questions are our own.
    """
    entries = _entries(documents, tokenizer)
    if len(entries) < ENTRIES[0]:
        raise DataError(
            f"only {len(entries)} of {len(documents)} documents can be asked about, and a passage needs {ENTRIES[0]}; "
            "use more documents of a dictionary"
        )
    rng = np.random.default_rng(seed)
    cls, sep = special_id(tokenizer, "[CLS]"), special_id(tokenizer, "[SEP]")
    made: list[SpanQuestion] = []
    for entry in entries:
        if most is not None and len(made) >= most:
            break
        if passage := _passage(entry, entries, max_length, rng):
            made.append(_question(entry, passage, cls, sep))
    return made


def span_f1(start: int, end: int, question: SpanQuestion) -> float:
    """How well a span of tokens covers the answer: the harmonic mean of precision and recall over positions.

    Args:
        start, end: indices in input_ids of the first and the last token that was guessed.

    Returns:
        1 for the answer itself, 0 for no common token, also where end is before start.
    """
    common = min(end, question.end_position) - max(start, question.start_position) + 1
    lengths = (end - start + 1) + (question.end_position - question.start_position + 1)
    return 2 * max(common, 0) / lengths if end >= start else 0.0


def _entries(documents: Sequence[Document], tokenizer: Tokenizer) -> list[_Entry]:
    found = []
    for document in documents:
        definition = first_sentence(document.text) if document.title else ""
        answer = opening(definition)
        if answer and not _stands_in(document.title, definition):
            found.append((document, f"{document.title}: {definition}", answer))
    titles = [document.title for document, _, _ in found]
    title_ids = tokenizer.encode_batch_fast(titles, add_special_tokens=False)
    entries = []
    for (document, text, answer), title, encoded in zip(
        found, title_ids, tokenizer.encode_batch([text for _, text, _ in found], add_special_tokens=False), strict=True
    ):
        at = len(document.title) + 2
        start, end = encoded.char_to_token(at), encoded.char_to_token(at + len(answer) - 1)
        if start is not None and end is not None and title.ids:
            ids, asked = np.array(encoded.ids, np.int32), np.array(title.ids, np.int32)
            entries.append(_Entry(document.key, document.title, text, answer, asked, ids, start, end))
    return entries


def _stands_in(title: str, text: str) -> bool:
    return title.casefold() in text.casefold() and bool(
        re.search(rf"(?<!\w){re.escape(title)}(?!\w)", text, re.IGNORECASE)
    )


def _passage(entry: _Entry, entries: list[_Entry], max_length: int, rng: np.random.Generator) -> list[_Entry]:
    """The entry among others that do not name it, in random order; nothing if they do not fit."""
    others: list[_Entry] = []
    wanted = int(rng.integers(ENTRIES[0], ENTRIES[1] + 1)) - 1
    room = max_length - 3 - len(entry.title_ids) - len(entry.ids)
    for at in rng.integers(len(entries), size=_TRIES).tolist():
        other = entries[at]
        if len(other.ids) > room or other in others or _stands_in(entry.title, other.text):
            continue
        others.append(other)
        room -= len(other.ids)
        if len(others) == wanted:
            others.insert(int(rng.integers(wanted + 1)), entry)
            return others
    return []


def _question(entry: _Entry, passage: list[_Entry], cls: int, sep: int) -> SpanQuestion:
    ids = np.concatenate([[cls], entry.title_ids, [sep], *(each.ids for each in passage), [sep]]).astype(np.int32)
    before = len(entry.title_ids) + 2
    types = np.repeat(np.array([0, 1], np.int32), [before, len(ids) - before])
    at = before + sum(len(each.ids) for each in passage[: passage.index(entry)])
    text = " ".join(each.text for each in passage)
    return SpanQuestion(ids, types, at + entry.start, at + entry.end, entry.title, text, entry.answer)
