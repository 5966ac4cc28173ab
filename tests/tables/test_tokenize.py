"""Text becomes ids without a token lost, cut or added that the tokenizer did not add."""

import sys
from itertools import pairwise

import pyarrow as pa
import pytest
import tokenizers

from brimful.errors import DataError
from brimful.tables.sources import table_source
from brimful.tables.tokenize import load_tokenizer, tokenized

TEXTS = ["a b", "", "é c 😀 a", "b " * 50]
KINDS = [pa.string(), pa.large_string(), pa.string_view()]


@pytest.fixture
def tokenizer_json(tmp_path):
    """A word tokenizer with [BOS] in front, which asks for truncation and padding to three tokens."""
    words = {"[PAD]": 0, "[BOS]": 1, "[UNK]": 2, "a": 3, "b": 4, "c": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("[BOS] $A", special_tokens=[("[BOS]", 1)])
    tokenizer.enable_truncation(3)
    tokenizer.enable_padding(length=3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def lists(ragged):
    ids, offsets = ragged
    return [ids[start:stop].tolist() for start, stop in pairwise(offsets)]


def test_bytes_are_those_of_utf8_in_any_slice():
    texts = pa.array([None, *TEXTS, "tail"], pa.large_string())
    for start, stop in [(1, 5), (2, 4), (3, 3), (1, 6)]:
        part = texts.slice(start, stop - start)
        assert lists(load_tokenizer("bytes")(part)) == [list(text.encode()) for text in part.to_pylist()]


def test_a_file_neither_truncates_nor_pads_and_adds_its_special_tokens(tokenizer_json):
    words = {"a": 3, "b": 4, "c": 5}
    expected = [[1, *(words.get(word, 2) for word in text.split())] for text in TEXTS]
    assert max(map(len, expected)) > 3 > min(map(len, expected))
    for spec in (tokenizer_json, tokenizer_json.parent):
        assert lists(load_tokenizer(str(spec))(pa.array(TEXTS, pa.large_string()))) == expected


def test_many_texts_are_encoded_in_order_in_several_parts(tokenizer_json, monkeypatch):
    monkeypatch.setattr("brimful.tables.tokenize._ENCODE_BYTES", 10)
    texts = ["a " * (i % 7) for i in range(100)]
    ragged = load_tokenizer(str(tokenizer_json))(pa.array(texts, pa.large_string()))
    assert list(map(len, lists(ragged))) == [1 + i % 7 for i in range(100)]


def test_a_tokenizer_that_is_missing_or_broken_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match=r"'bytes' or the path of a tokenizer\.json, but there is no such file"):
        load_tokenizer("gpt2")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="is not a tokenizer that can be read"):
        load_tokenizer(str(tmp_path))
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(DataError, match=r"pip install 'brimful\[text\]'"):
        load_tokenizer(str(tmp_path))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_input_ids_stand_in_the_place_of_the_text(kind):
    table = pa.table({"id": [7, 8, 9, 10], "text": pa.array(TEXTS, kind), "x": [1.0, 2.0, 3.0, 4.0]})
    source = tokenized(table_source(table), "text", load_tokenizer("bytes"))
    assert source.schema == pa.schema({"id": pa.int64(), "input_ids": pa.list_(pa.int32()), "x": pa.float64()})
    assert source.n_rows == 4
    whole = pa.Table.from_batches(source.read(None)).to_pydict()
    assert whole == {
        "id": [7, 8, 9, 10],
        "input_ids": [list(text.encode()) for text in TEXTS],
        "x": [1.0, 2.0, 3.0, 4.0],
    }
    part = pa.Table.from_batches(source.read(["x", "input_ids"])).to_pydict()
    assert list(part.items()) == [("x", whole["x"]), ("input_ids", whole["input_ids"])]


def test_reading_other_columns_does_not_tokenize():
    def refuse(texts):
        raise AssertionError

    source = tokenized(table_source(pa.table({"id": [7], "text": ["a"]})), "text", refuse)
    assert next(source.read(["id"])).to_pydict() == {"id": [7]}


def test_a_null_text_is_refused_with_its_row():
    table = pa.concat_tables([pa.table({"text": ["a", "b"]}), pa.table({"text": ["c", None]})])
    source = tokenized(table_source(table), "text", load_tokenizer("bytes"))
    with pytest.raises(DataError, match=r"'text' is in row 3 \(the first is row 0\)"):
        list(source.read(None))


def test_columns_that_cannot_be_tokenized_are_refused():
    source = table_source(pa.table({"text": ["a"], "input_ids": [[1]], "n": [1]}))
    for column, message in {
        "texts": "did you mean 'text'",
        "n": "must be text, but 'n' is int64",
        "text": "'input_ids', but there is one already",
    }.items():
        with pytest.raises(DataError, match=message):
            tokenized(source, column, load_tokenizer("bytes"))
    with pytest.raises(DataError, match="there is no column 'text'; its columns are: 'input_ids'"):
        tokenized(table_source(pa.table({"text": ["a"]})), "text", load_tokenizer("bytes")).read(["text"])
