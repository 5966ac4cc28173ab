"""brimful demo: it ends well, checks itself, fails loudly when a check fails, and replaces only its own output."""

import json
import shlex
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from brimful.checks import Check
from brimful.cli.corpus import Corpus
from tests.cli.conftest import FIGURES


@pytest.fixture
def small_corpus(monkeypatch):
    texts = [f"document {number} " * (1 + number % 7) for number in range(300)] + ["long " * 1000]
    corpus = Corpus([f"m.f{number}" for number in range(301)], texts, files=3, skipped=1)
    monkeypatch.setattr("brimful.cli.whole_path.standard_library_docstrings", lambda: corpus)
    return corpus


def test_whole_demo_on_the_real_library(tmp_path):
    words = [sys.executable, "-m", "brimful", "demo", "--json"]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)  # noqa: S603
    assert ended.stderr == b""
    value = json.loads(ended.stdout)
    assert set(value) >= FIGURES | {"ledger", "checks", "documents", "padding_fraction", "output"}
    assert all(check["passed"] for check in value["checks"])
    assert value["documents"] > 2000
    assert value["efficiency"] > 0.95
    assert value["gap"] < 0.01
    assert sorted(path.name for path in tmp_path.iterdir()) == ["brimful-demo"]


def test_prints_padding_picture_checks_and_what_to_type_next(run, small_corpus, tmp_path):
    said = run("demo", "-o", tmp_path / "demo", "--max-length", 512)
    assert said.status == 0
    assert said.err == ""
    for words in (
        "301 documents from 2 files",
        "Before",
        "After",
        "is padding",
        "lower bound",
        "gap",
        "speed-up limit",
        "read =",
    ):
        assert words in said.out
    assert said.out.count("✓") == 13
    assert "--overflow split" in said.out
    drawn = [line for line in said.out.splitlines() if "█" in line or "▊" in line]
    assert len(drawn) == 12
    assert len({len(line) for line in drawn}) == 1


def test_commands_that_it_prints_work_as_typed(run, small_corpus, tmp_path):
    said = run("demo", "-o", tmp_path / "my demo", "--max-length", 512)
    for label in ("To check it: ", "Next: "):
        line = next(line for line in said.out.splitlines() if line.startswith(label))
        assert run(*shlex.split(line.removeprefix(label))[1:]).status == 0


def test_whole_demo_folder_is_no_input(run, small_corpus, tmp_path):
    run("demo", "-o", tmp_path / "demo")
    error = run("analyze", tmp_path / "demo", "--max-length", 512).error
    assert "holds unpacked data (tokens.parquet) and packed data (packed)" in error
    assert f"give {tmp_path / 'demo' / 'tokens.parquet'}" in error


def test_packed_rows_still_say_what_they_hold(run, small_corpus, tmp_path):
    run("demo", "-o", tmp_path / "demo", "--max-length", 512)
    texts = dict(zip(small_corpus.names, small_corpus.texts, strict=True))
    n_whole = 0
    for row in pq.read_table(tmp_path / "demo" / "packed" / "data").to_pylist():
        start = 0
        for length, name in zip(row["seq_lengths"], row["document"], strict=True):
            text = bytes(row["input_ids"][start : start + length]).decode()
            assert text in texts[name]
            n_whole += text == texts[name]
            start += length
    assert n_whole == 300


def test_second_run_replaces_the_first(run, small_corpus, tmp_path):
    folder = tmp_path / "demo"
    assert run("demo", "-o", folder, "--max-length", 512).status == 0
    assert run("demo", "-o", folder, "--max-length", 256).status == 0
    assert json.loads((folder / "packed" / "brimful.json").read_text())["settings"]["max_length"] == 256
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


@pytest.mark.parametrize("addition", ["mine.txt", "packed/mine.txt", "packed/data/mine.parquet", "more/mine.txt"])
def test_what_the_demo_did_not_write_is_never_removed(run, small_corpus, tmp_path, addition):
    folder = tmp_path / "demo"
    run("demo", "-o", folder)
    mine = folder / addition
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert "not the output of an earlier demo alone" in run("demo", "-o", folder).error
    assert sorted(tmp_path.rglob("*")) == before
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "empty folder", "other folder", "link"])
def test_anything_else_in_the_way_is_an_error(run, small_corpus, tmp_path, kind):
    path = tmp_path / "demo"
    if kind == "file":
        path.write_text("mine")
    elif kind == "link":
        run("demo", "-o", tmp_path / "target")
        path.symlink_to(tmp_path / "target")
    else:
        path.mkdir()
        if kind == "other folder":
            (path / "packed").mkdir()
            (path / "packed" / "brimful.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    assert "exists already" in run("demo", "-o", path).error
    assert sorted(tmp_path.rglob("*")) == before


def test_failure_puts_the_earlier_demo_back(run, small_corpus, tmp_path, monkeypatch):
    folder = tmp_path / "demo"
    run("demo", "-o", folder)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("brimful.cli.whole_path.pack_to_folder", interrupted)
    said = run("demo", "-o", folder)
    assert (said.status, said.err) == (130, "error: interrupted\n")
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_failed_check_ends_with_one(run, small_corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("brimful.cli.whole_path.check_packed", lambda _: [Check("shards", False, "one is missing")])
    said = run("demo", "-o", tmp_path / "demo")
    assert said.status == 1
    assert "✗ FAILED shards: one is missing" in said.out
    assert run("demo", "-o", tmp_path / "demo", "--json").json["checks"][0]["passed"] is False


def test_tokenizer_file(run, small_corpus, tmp_path):
    import tokenizers

    vocabulary = {"[UNK]": 0, "document": 1, "long": 2}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    words = ("--tokenizer", tmp_path / "tokenizer.json", "--max-length", 64, "--json")
    value = run("demo", "-o", tmp_path / "demo", *words).json
    assert value["tokens"] == sum(len(text.split()) for text in small_corpus.texts)
    assert pq.read_table(tmp_path / "demo" / "tokens.parquet").schema.field("input_ids").type == pa.list_(pa.int32())
