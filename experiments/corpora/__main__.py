"""python -m experiments.corpora: fetch all corpora, and print what is in them and how hard the tasks are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from tokenizers import Tokenizer

from experiments.corpora.baselines import bag_of_words_accuracy, majority_accuracy, span_baselines
from experiments.corpora.document import Document, split
from experiments.corpora.readers import CORPORA, documents
from experiments.corpora.span_questions import questions
from experiments.corpora.subjects import frequent_labels, labelled
from experiments.corpora.tokens import TokenIds, tokenizer

_QUANTILES = (5, 25, 50, 75, 95, 100)
_ASKED = 2000


def lengths(found: list[Document], by: Tokenizer) -> TokenIds:
    """(documents,) tokens of each, with its title, and without [CLS] and [SEP]."""
    texts = [f"{document.title}\n{document.text}" for document in found]
    return np.array(
        [
            len(encoded.ids)
            for at in range(0, len(texts), 1000)
            for encoded in by.encode_batch_fast(texts[at : at + 1000], add_special_tokens=False)
        ],
        np.int32,
    )


def corpora_table(by_name: dict[str, list[Document]], by: Tokenizer) -> Iterator[str]:
    """Markdown: a row for each corpus."""
    yield "| corpus | source | documents | tokens | " + " | ".join(f"{part} %" for part in _QUANTILES) + " |"
    yield "|---|---|---:|---:|" + "---:|" * len(_QUANTILES)
    for name, found in by_name.items():
        counts = lengths(found, by)
        parts = " | ".join(f"{length:,.0f}" for length in np.percentile(counts, _QUANTILES))
        yield f"| {name} | {found[0].source} | {len(found):,} | {counts.sum():,} | {parts} |"


def tasks_table(name: str, found: list[Document], by: Tokenizer) -> Iterator[str]:
    """Markdown: what can be had on documents held out without a model."""
    train, held_out = split(found)
    asked = questions(held_out, by, most=_ASKED)
    classes = frequent_labels(train)
    known, unknown = labelled(train, by, classes), labelled(held_out, by, classes)
    yield f"| task on {name} | held out | baseline | figure |"
    yield "|---|---:|---|---|"
    for baseline, (exact, f1) in span_baselines(asked, by).items():
        yield f"| span question | {len(asked):,} | {baseline} | exact match {exact:.1%}, F1 {f1:.1%} |"
    figures = {
        f"majority ({classes[0]})": majority_accuracy(known, unknown),
        f"bag of words, {len(known):,} to learn from": bag_of_words_accuracy(known, unknown, by.get_vocab_size()),
    }
    for baseline, accuracy in figures.items():
        yield f"| {len(classes)} classes | {len(unknown):,} | {baseline} | accuracy {accuracy:.1%} |"


def main() -> None:
    """Fetch and print."""
    by_name = {name: documents(name) for name in CORPORA}
    by = tokenizer()
    print("Lengths in tokens, by share of the documents:\n")
    print("\n".join(corpora_table(by_name, by)), flush=True)
    for name in ("dictionary", "computing"):
        print()
        print("\n".join(tasks_table(name, by_name[name], by)), flush=True)


if __name__ == "__main__":
    main()
