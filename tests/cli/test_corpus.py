"""The corpus: the docstrings that are there, in a fixed order, without running anything."""

import ast
import inspect
import textwrap

import pytest

from brimful.cli.corpus import standard_library_docstrings
from brimful.errors import DataError


@pytest.fixture
def library(tmp_path):
    """A small standard library, with all that must be left out."""

    def write(name: str, text: str | bytes) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())

    write("b.py", '"""Module b."""\nraise SystemExit("nobody runs this")')
    write("a/__init__.py", '"""Package a."""')
    write(
        "a/inner.py",
        '''
        class Outer:
            """Outer."""
            def method(self):
                """Method,
                   indented."""
            class Inner:
                "Inner."
        try:
            async def found():
                "Found in try."
        except ImportError:
            def found():
                "Found in except."
        def bare(): pass
        def empty():
            "  "
        def half_a_pair():
            "\\ud800"
        def escaped():
            "An invalid \\\\d escape, and one that is: \\d."
        ''',
    )
    write("a/latin.py", b'# -*- coding: latin-1 -*-\n"""caf\xe9"""')
    write("broken.py", "def (")
    write("undecodable.py", b'"""\xff"""')
    for skipped in ("test/t.py", "site-packages/s.py", "a/tests/t.py", "idlelib/idle_test/i.py"):
        write(skipped, '"""Not this."""')
    write("notes.txt", '"""Nor this."""')
    return tmp_path


def test_names_and_texts_in_order(library):
    corpus = standard_library_docstrings(library)
    assert list(zip(corpus.names, corpus.texts, strict=True)) == [
        ("b", "Module b."),
        ("a", "Package a."),
        ("a.inner.Outer", "Outer."),
        ("a.inner.Outer.method", "Method,\nindented."),
        ("a.inner.Outer.Inner", "Inner."),
        ("a.inner.found", "Found in try."),
        ("a.inner.found", "Found in except."),
        ("a.inner.escaped", "An invalid \\d escape, and one that is: \\d."),
        ("a.latin", "café"),
    ]
    assert (corpus.files, corpus.skipped) == (6, 2)
    assert standard_library_docstrings(library) == corpus


def test_no_sources_is_said(tmp_path):
    with pytest.raises(DataError, match=r"no docstrings in any \.py file"):
        standard_library_docstrings(tmp_path)


def test_real_library_has_thousands():
    corpus = standard_library_docstrings()
    assert len(corpus.texts) > 2000
    assert "json.decoder.JSONDecoder.decode" in corpus.names
    assert corpus.texts[corpus.names.index("ast.dump")] == inspect.getdoc(ast.dump)
    assert not any(name.startswith("test.") for name in corpus.names)
