"""Classification: which subject is this entry of, or which module is this docstring of?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from brimful.errors import DataError
from experiments.corpora.document import Document
from experiments.corpora.tokens import TokenIds


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """[CLS] title and text [SEP], not padded, and its class.

    Args:
        input_ids: (length,) int32.
        label: the class, from 0.
    """

    input_ids: TokenIds
    label: int


def frequent_labels(documents: Sequence[Document], most: int = 8) -> list[str]:
    """The labels that most documents have, the most frequent first; ties by name.

    Args:
        documents: those to train on, so that nothing of those held out decides what the classes are.
        most: how many labels.

    Raises:
        DataError: there are not two different labels.

    Example:
        >>> frequent_labels([Document("", "", label, "", "") for label in ("Bot.", "Law", "Bot.", "", "", "")])
        ['Bot.', 'Law']
    """
    counts = Counter(document.label for document in documents if document.label)
    if len(counts) < 2:
        raise DataError(f"classes need two labels or more; {len(documents)} documents have {sorted(counts) or 'none'}")
    return sorted(counts, key=lambda label: (-counts[label], label))[:most]


def labelled(
    documents: Sequence[Document], tokenizer: Tokenizer, labels: Sequence[str], max_length: int = 128
) -> list[Labelled]:
    """The documents of these labels, in order, one record each.

    The label is no part of the text: subjects and fields were marks in the dictionary, and are taken out of it.

    Args:
        documents: those to train on, or those held out.
        tokenizer: with [CLS] and [SEP], which it puts there.
        labels: such as `frequent_labels` gives; class k is the k-th.
        max_length: most tokens of a record; a longer document loses its end.

    Cost: tokenization; 3 s for the 20,000 entries of the dictionary's eight most frequent subjects.
    """
    classes = {label: number for number, label in enumerate(labels)}
    found = [document for document in documents if document.label in classes]
    encoded = tokenizer.encode_batch_fast([f"{document.title}\n{document.text}" for document in found])
    return [
        Labelled(_first(each.ids, max_length), classes[document.label])
        for document, each in zip(found, encoded, strict=True)
    ]


def _first(ids: list[int], most: int) -> TokenIds:
    """At most so many tokens, of which the last is [SEP]."""
    return np.array(ids if len(ids) <= most else [*ids[: most - 1], ids[-1]], np.int32)
