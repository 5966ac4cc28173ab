"""What a document is, and how documents are divided into those to train on and those held out."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from brimful.errors import SettingError, shown

_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"')\]]))\s+(?=[\"'(\[]*[A-Z0-9])")


@dataclass(frozen=True, slots=True)
class Document:
    """A text, and what is known about it.

    Args:
        title: the headword of an entry, the opening question of a conversation, president and year of a speech; one
            line, "" if there is none. It is no part of the text.
        text: paragraphs or utterances, one a line.
        label: the subject of an entry, the party of a president, the package of a docstring; "" if there is none.
        key: what makes it this document and no other; documents of one key are never divided.
        source: registry, package and version.
    """

    title: str
    text: str
    label: str
    key: str
    source: str


def split(documents: Sequence[Document], held_out: float = 0.1, seed: int = 0) -> tuple[list[Document], list[Document]]:
    """Documents to train on, and documents held out.

    On which side a document falls depends on its key and the seed alone: not on which other documents there are, so it
    stays there if the corpus grows, is cut short or is read in another order; and two dictionaries hold out the same
    headwords. Both sides come in an order that the keys and the seed draw, so their beginnings are fair samples.

    Args:
        documents: in any order.
        held_out: the share of the keys that is held out, from 0 to 1.
        seed: ≥ 0; another seed holds out others.

    Raises:
        SettingError: held_out is not from 0 to 1.

    Example:
        >>> two = [Document("Coal", text, "", "coal", "by hand") for text in ("A black mineral.", "To mark with coal.")]
        >>> [len(side) for side in split(two, held_out=0.5)]  # one key: on one side
        [2, 0]

    Cost: a SHA-256 and a sort of the keys; half a second for 126,000 documents.
    """
    if not 0 <= held_out <= 1:
        raise SettingError(f"held_out is a share from 0 to 1, not {shown(held_out)}")
    drawn = sorted(((_draw(document.key, seed), document) for document in documents), key=lambda pair: pair[0])
    return (
        [document for place, document in drawn if place >= held_out],
        [document for place, document in drawn if place < held_out],
    )


def unseen(held_out: Sequence[Document], train: Sequence[Document]) -> list[Document]:
    """The held-out documents whose text, under whatever title, is not trained on.

    Example:
        >>> train, test = ([Document(title, "A game.", "", title, "by hand")] for title in ("Loo", "Lanterloo"))
        >>> unseen(test, train)
        []
    """
    seen = {document.text for document in train}
    return [document for document in held_out if document.text not in seen]


def _draw(key: str, seed: int) -> float:
    """A number from 0 to below 1, the same for the same key on every machine."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{key}".encode()).digest()[:6], "big") / 2**48


def sentences(document: Document) -> list[str]:
    """The title, if there is one, and the sentences of the text; a line ends a sentence.

    Example:
        >>> sentences(Document("Coal", "A mineral. It burns.\\nTo mark.", "", "coal", "by hand"))
        ['Coal', 'A mineral.', 'It burns.', 'To mark.']
    """
    lines = [document.title, *document.text.splitlines()]
    return [sentence for line in lines for part in _SENTENCE_END.split(line) if (sentence := part.strip())]


def first_sentence(text: str) -> str:
    """What stands before the first end of a sentence or line.

    Example:
        >>> first_sentence("A mineral. It burns.")
        'A mineral.'
    """
    return _SENTENCE_END.split(text.partition("\n")[0])[0].strip()
