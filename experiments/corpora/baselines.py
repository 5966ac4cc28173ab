"""How hard the tasks are: what can be had without a model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from experiments.corpora.document import first_sentence
from experiments.corpora.span_questions import SpanQuestion, opening, span_f1
from experiments.corpora.subjects import Labelled


def majority_accuracy(train: Sequence[Labelled], held_out: Sequence[Labelled]) -> float:
    """The share of held-out records that have the class which is the most frequent to train on."""
    guess = np.bincount([record.label for record in train]).argmax()
    return float(np.mean([record.label == guess for record in held_out]))


def bag_of_words_accuracy(train: Sequence[Labelled], held_out: Sequence[Labelled], vocabulary: int) -> float:
    """The accuracy of naive Bayes on which tokens a record has, in whatever order.

    Source: multinomial with add-one smoothing, such as in Manning, Raghavan and Schütze (2008), section 13.2.
    """
    counts = np.ones((max(record.label for record in train) + 1, vocabulary))
    for record in train:
        np.add.at(counts[record.label], record.input_ids, 1)
    log_words = np.log(counts / counts.sum(axis=1, keepdims=True))
    log_classes = np.log(np.bincount([record.label for record in train], minlength=len(counts)) / len(train))
    guesses = [(log_words[:, record.input_ids].sum(axis=1) + log_classes).argmax() for record in held_out]
    return float(np.mean([guess == record.label for guess, record in zip(guesses, held_out, strict=True)]))


def span_baselines(asked: Sequence[SpanQuestion], tokenizer: Tokenizer) -> dict[str, tuple[float, float]]:
    """Exact match and F1 of two ways to answer that read less than the question asks for.

    "first opening" knows where answers end, and takes the first entry for the one that is asked about; "whole sentence"
    finds the headword of the question, and takes all that its definition says for the answer.
    """
    scores: dict[str, list[tuple[bool, float]]] = {"first opening": [], "whole sentence": []}
    for question in asked:
        encoded = tokenizer.encode(question.question, question.passage)
        first = question.passage.index(": ") + 2
        found = question.passage.index(f"{question.question}: ") + len(question.question) + 2
        for name, at, guess in (
            ("first opening", first, opening(question.passage[first:])),
            ("whole sentence", found, first_sentence(question.passage[found:])),
        ):
            start, end = encoded.char_to_token(at, 1), encoded.char_to_token(at + len(guess) - 1, 1)
            exact = (start, end) == (question.start_position, question.end_position)
            scores[name].append((exact, span_f1(start or 0, end or 0, question)))
    return {
        name: (float(np.mean([exact for exact, _ in each])), float(np.mean([f1 for _, f1 in each])))
        for name, each in scores.items()
    }
