"""Entries of dictionaries in dictd's format, as documents: the headword is the title, the subject the label."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from brimful.errors import DataError
from experiments.corpora.archives import member
from experiments.corpora.document import Document

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_FOLDER = "usr/share/dictd"

_ACCENTS = re.compile(r"\[(?:[-=^~`'\".,*]+([A-Za-z]{1,2})|([A-Za-z]{1,2})[\^']|(ae|oe|AE|OE))\]")
_BRACKETS = re.compile(r"\[[^][]*\]")
_BRACES = re.compile(r"[{}]")
_SENSE = re.compile(r"^(?:(?:\d{1,2}\.|\([a-z]\))(?: |$))+")
_SUBJECT = re.compile(r"\s*\(([A-Z][\w.&]*(?:[ ,]+[A-Z&][\w.]*)*)\)")
_PRONOUNCED = re.compile(r"^(.+?)\s+\\")
_WORD = re.compile(r"\w")
_FIELDS = re.compile(r"<([a-z][^<>@/.]*)>")
_DATE = re.compile(r"^\(\d{4}-\d\d-\d\d\)$")
_ADDRESS = re.compile(r"\s*\(\S*://\S*\)")


def entries(archive: Path, name: str) -> Iterator[str]:
    """The entries of a dictionary in a Debian package, in the order in which they lie there; each once.

    A dictd dictionary is NAME.dict.dz, a gzip file, and NAME.index with lines of headword, offset and size, both in
    base 64 with A for 0. Several headwords may point to one entry; what begins with 00-database is no entry.

    Raises:
        DataError: the package has no such dictionary, or it is not in this format.
    """
    packed, index = (member(archive, f"{_FOLDER}/{name}.{part}") for part in ("dict.dz", "index"))
    try:
        contents = gzip.decompress(packed)
        columns = [line.split("\t") for line in index.decode().split("\n") if line and not line.startswith("00-")]
        places = sorted({(_number(offset), _number(size)) for _, offset, size in columns})
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as fault:
        raise DataError(f"{archive.name}: {name} is no dictionary in dictd's format ({fault})") from None
    for offset, size in places:
        # Three bytes of gcide are no UTF-8.
        yield contents[offset : offset + size].decode(errors="replace")


def _number(digits: str) -> int:
    number = 0
    for digit in digits:
        number = 64 * number + _DIGITS.index(digit)
    return number


def gcide_document(entry: str, source: str) -> Document | None:
    r"""An entry of the Collaborative International Dictionary of English; nothing if it is a fragment or empty.

    Etymology, pronunciation, marks of usage and source, and subjects are left out of the text.

    Example:
        >>> entry = 'Coalfish \\Coal"fish`\\, n. (Zool.)\n   (a) The pollock; -- called also, {coalsey}.\n'
        >>> entry += "       [1913 Webster]\n   (b) The beshow of\n       Alaska.\n"
        >>> gcide_document(entry, "by hand").text
        'The pollock; -- called also, coalsey.\nThe beshow of Alaska.'
    """
    entry = _plain(entry)
    indented = re.search(r"^ ", entry, re.MULTILINE)
    at = indented.start() if indented else len(entry)
    if not (spelled := _PRONOUNCED.match(entry[:at].replace("\n", " "))):
        return None
    subjects = {" ".join(subject.split()) for subject in _SUBJECT.findall(entry)}
    return _document(spelled[1], _paragraphs(_SUBJECT.sub("", entry[at:])), subjects, source)


def foldoc_document(entry: str, source: str) -> Document | None:
    """An entry of the Free On-line Dictionary of Computing; nothing if it is empty. Further headwords are left out.

    Example:
        >>> entry = "brouter\\n\\n   <networking, hardware> A {device}.\\n\\n   (1999-01-31)\\n"
        >>> document = foldoc_document(entry, "by hand")
        >>> document.title, document.text, document.label
        ('brouter', 'A device.', 'networking')
    """
    head, _, below = _plain(entry).partition("\n\n")
    title = head.partition("\n")[0].partition("%%%")[0]
    body = [_ADDRESS.sub("", line) for line in _paragraphs(below) if not _DATE.match(line)]
    fields = [found[1].partition(",")[0].strip() for line in body if (found := _FIELDS.match(line))][:1]
    return _document(title, [_FIELDS.sub("", line) for line in body], set(fields), source)


def _paragraphs(text: str) -> list[str]:
    """One line for each paragraph or numbered sense."""
    text = re.sub(r"\n\s*(?=\(?[a-z0-9]{1,2}(?:\.|\)) )", "\n\n", text)
    return [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]


def _document(title: str, body: list[str], subjects: set[str], source: str) -> Document | None:
    title = " ".join(title.split())
    lines = [" ".join(line.split()) for each in body if _WORD.search(line := _SENSE.sub("", each.strip()))]
    if not title or not lines:
        return None
    label = subjects.pop() if len(subjects) == 1 else ""
    return Document(title, "\n".join(lines), label, title.casefold(), source)


def _plain(text: str) -> str:
    """Accented letters without their accents; no braces around what is referred to, nothing in brackets."""
    text = _ACCENTS.sub(lambda found: found[found.lastindex or 0], text)
    return _BRACES.sub("", _BRACKETS.sub("", _BRACKETS.sub("", text)))  # brackets stand inside brackets
