"""JSON lines: what Python's json module reads line by line, or an error that names the line."""

import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import brimful.tables.jsonl
from brimful.errors import DataError
from brimful.tables.sources import open_source


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.jsonl"):
        data = text if isinstance(text, bytes) else text.encode()
        (tmp_path / name).write_bytes(data)
        return [tmp_path / name]

    return write


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(brimful.tables.jsonl, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(brimful.tables.jsonl, "_PARALLEL_BYTES", 32)


def rows(source, columns=None):
    return [row for batch in source.read(columns) for row in batch.to_pylist()]


@given(
    records=st.lists(
        st.fixed_dictionaries(
            {"ids": st.lists(st.integers(-(2**63), 2**63 - 1)), "text": st.text(), "ok": st.booleans() | st.none()}
        ),
        min_size=1,
    ),
    block=st.integers(1, 300),
    blank=st.sampled_from(["", "\n", " \t\n"]),
    end=st.sampled_from(["\n", "\r\n"]),
    ascii_only=st.booleans(),
)
def test_rows_are_those_of_the_json_module_wherever_blocks_end(
    tmp_path_factory, records, block, blank, end, ascii_only
):
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    first = {"ids": [1], "text": "", "ok": True}  # the first block tells the types
    lines = [json.dumps(record, ensure_ascii=ascii_only) for record in [first, *records]]
    path.write_bytes((blank + (end + blank).join(lines)).encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(brimful.tables.jsonl, "_BLOCK_BYTES", block)
        patch.setattr(brimful.tables.jsonl, "_PARALLEL_BYTES", max(1, block // 2))
        source = open_source([path])
        assert rows(source) == [first, *records]
        assert rows(source, ["text"]) == [{"text": row["text"]} for row in [first, *records]]


def test_texts_that_look_like_dates_stay_texts(write, small_blocks):
    lines = [{"t": "2024-01-31", "l": ["2024-01-31T00:00:00Z"], "s": {"t": "2024-01-31 10:00"}}, {"t": "x"}]
    source = open_source(write("".join(json.dumps(line) + "\n" for line in lines)))
    assert source.schema.types == [pa.string(), pa.list_(pa.string()), pa.struct({"t": pa.string()})]
    assert rows(source) == [lines[0], {"t": "x", "l": None, "s": None}]


def test_types_are_those_of_the_first_block_and_an_empty_list_is_one_of_ids(write):
    source = open_source(write('{"a": null, "b": [], "c": 1, "d": {"e": [[]]}, "n": null}\n{"a": 1, "c": 1.5}\n'))
    expected = {"a": pa.int64(), "b": pa.list_(pa.int64()), "c": pa.float64()}
    expected |= {"d": pa.struct({"e": pa.list_(pa.list_(pa.int64()))}), "n": pa.null()}
    assert source.schema == pa.schema(expected)
    assert source.n_rows is None


def test_a_field_missing_in_a_line_is_null(write, small_blocks):
    source = open_source(write('{"a": 1, "b": [1]}\n' * 5 + "{}\n" + '{"b": null}\n' * 5 + '{"a": 2}\n'))
    assert rows(source) == [{"a": 1, "b": [1]}] * 5 + [{"a": None, "b": None}] * 6 + [{"a": 2, "b": None}]


def test_a_line_longer_than_a_block_is_read(write, small_blocks):
    long = {"ids": list(range(1000))}
    text = '{"ids": []}\n' + json.dumps(long) + "\n" + '{"ids": [1]}\n'
    assert rows(open_source(write(text))) == [{"ids": []}, long, {"ids": [1]}]


def test_a_byte_order_mark_and_a_missing_last_newline_are_fine(write):
    assert rows(open_source(write(b'\xef\xbb\xbf{"a": 1}\n{"a": 2}'))) == [{"a": 1}, {"a": 2}]


def test_not_a_number_is_read_as_a_float(write):
    source = open_source(write('{"a": NaN}\n{"a": -Infinity}\n{"a": 1}\n'))
    assert [str(row["a"]) for row in rows(source)] == ["nan", "-inf", "1.0"]


LATER = [
    (
        '{"a": 1.5}',
        r"field 'a' is the number 1\.5 here but int64 by the first 16 MiB, which tell the columns; put such",
    ),
    ('{"a": 9223372036854775808}', "field 'a' is 9223372036854775808, beyond int64; write such numbers as text"),
    ('{"a": true}', "field 'a' is true or false here but int64"),
    ('{"a": "x"}', "field 'a' is text here but int64"),
    ('{"a": [1]}', "field 'a' is a list here but int64"),
    ('{"a": 1, "z": 2}', "field 'z' is new: .* put such a line at the top"),
    ('{"s": {"b": 1, "z": 2}}', r"field 's\.z' is new"),
    ('{"l": [[1], ["x"]]}', r"field 'l\[1\]\[0\]' is text here but int64"),
    ('{"n": 1}', "field 'n' is the number 1 here but null in all of the first 16 MiB"),
]
ANYWHERE = [
    ('{"a": 1', "this one is not JSON: Expecting ',' delimiter at character 8"),
    ('{"a": 1,}', "not JSON: Expecting property name"),
    ("null", "each line must be one JSON object, but this one is null"),
    ("[1]", "this one is a list"),
    ("3", "this one is the number 3"),
    ('"x"', "this one is text"),
    ('{"a": 1}{"a": 2}', "not JSON: Extra data"),
    ('{"a": 1} null', "not JSON: Extra data"),
    ('{"a":\n1}', "not JSON: Expecting value"),
    ('{"a": 1, "a": 2}', "a key must be unique in its object, but 'a' stands twice"),
    ('{"a": "x\ty"}', "not JSON: Invalid control character"),
    ('{"t": "\\ud800"}', "surrogate pair"),
    ('{"a": -1e400}', "a number must be one that a double can hold, but '-1e400' is beyond them all; write such"),
]


@pytest.mark.parametrize("columns", [None, ["a", "s", "l", "n"]], ids=["all", "some"])
@pytest.mark.parametrize(("line", "message"), LATER + ANYWHERE)
def test_a_later_line_that_does_not_follow_is_named(write, small_blocks, line, message, columns):
    good = '{"a": 1, "s": {"b": 1}, "l": [[1]], "n": null, "t": "x"}\n'
    path = write(good * 3 + "\n \n" + good * 2 + line + "\n" + good)
    source = open_source(path)
    with pytest.raises(DataError, match=rf"^{path[0]}:8: .*{message}"):
        rows(source, columns)


@pytest.mark.parametrize(("line", "message"), ANYWHERE)
def test_a_bad_first_line_is_named(write, line, message):
    with pytest.raises(DataError, match=rf"a\.jsonl:1: .*{message}"):
        open_source(write(line + "\n"))


@pytest.mark.parametrize(
    ("one", "other"), [("1", '"x"'), ("true", "1"), ('"2024-01-31"', "3"), ("[1]", '["x"]'), ("{}", "1")]
)
def test_types_that_disagree_within_the_first_block_are_named(write, one, other):
    with pytest.raises(DataError, match=r"a\.jsonl:3: field 'a(\[0\])?' is .* here but .* in the lines before"):
        open_source(write(f'{{"a": {one}}}\n\n{{"a": {other}}}\n'))


WHOLE = st.integers(-(2**66), 2**66) | st.integers(2**53 - 3, 2**53 + 3) | st.integers(-(2**63) - 2, -(2**63) + 2)


@given(st.lists(st.tuples(WHOLE | st.floats(-1e20, 1e20), st.lists(WHOLE)), min_size=1))
def test_a_whole_number_is_read_exactly_or_its_line_is_named(tmp_path_factory, pairs):
    def fits(x):
        return isinstance(x, float) or -(2**63) <= x < 2**63

    def first_inexact(numbers):
        """The first line of a column (a list of numbers for each line) with a whole number that it cannot hold."""
        double = any(isinstance(x, float) or not fits(x) for line in numbers for x in line)
        bad = [any(not fits(x) or (double and x != float(x)) for x in line) for line in numbers]
        return bad.index(True) + 1 if True in bad else None

    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    lines = [{"a": a, "s": {"b": b}, "t": str(a)} for a, b in pairs]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = open_source([path])
    inexact = {"a": first_inexact([[a] for a, _ in pairs]), "s": first_inexact([b for _, b in pairs]), "t": None}
    for column, line in inexact.items():
        if line is None:
            assert rows(source, [column]) == [{column: row[column]} for row in lines]
        else:
            with pytest.raises(DataError, match=rf"a\.jsonl:{line}: a whole number must be kept exactly, but field"):
                rows(source, [column])


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (
            "1",
            "18446744073709551615",
            "'a' is 18446744073709551615, beyond int64; write such numbers as text, on every",
        ),
        ("[2]", "[1, -9223372036854775809]", r"'a\[1\]' is -9223372036854775809, beyond int64"),
        ("1", "9" * 400, "'a' is 9{80}…, beyond int64"),
        ("0.5", "9007199254740993", "'a' is 9007199254740993, to which no double is equal, .*, or drop the column$"),
        ('{"b": [{"c": 0.5}]}', '{"b": [{}, {"c": 12345678901234567}]}', r"'a\.b\[1\]\.c' is 12345678901234567, to"),
    ],
)
def test_a_rounded_whole_number_is_refused_where_its_column_is_read(write, one, other, message):
    good = f'{{"ids": [1], "a": {one}, "text": "12345678901234567", "x": 1e300}}\n'
    source = open_source(write(good * 3 + "\n" + f'{{"ids": [2], "a": {other}}}\n' + good))
    assert rows(source, ["ids"]) == [{"ids": [1]}] * 3 + [{"ids": [2]}, {"ids": [1]}]
    with pytest.raises(DataError, match=rf"a\.jsonl:5: a whole number must be kept exactly, but field {message}"):
        rows(source)


def test_a_number_of_thousands_of_digits_is_refused(write):
    source = open_source(write('{"a": 1}\n{"a": ' + "9" * 5000 + "}\n"))
    with pytest.raises(DataError, match=r"a\.jsonl:2: a number must be one that a double can hold, but '9{79}… is bey"):
        rows(source)


def test_large_doubles_beside_long_digits_are_no_whole_numbers(write):
    lines = [
        {"a": 9007199254740992.0, "n": 9007199254740993, "t": "9007199254740993"},
        {"a": 1e300, "n": 1, "t": ""},
        {"a": 0.12345678901234567, "n": 2, "t": "x"},
        {"a": 9007199254740992, "n": 3, "t": "9007199254740993"},
    ]
    source = open_source(write("".join(json.dumps(line) + "\n" for line in lines)))
    assert rows(source) == lines


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        (
            "1",
            "1.5",
            "the number 1.5 here but int64 by the first 16 MiB, which tell the columns; put such",
        ),
        (
            "1",
            '"x"',
            "text here but int64 by the first 16 MiB, which tell the columns; write it alike on every line, or",
        ),
        ("null", "1", "the number 1 here but null in all of the first 16 MiB, .*; put such a line at the top"),
    ],
)
def test_a_type_that_changes_after_the_first_block_is_refused(write, first, later, message):
    line = f'{{"a": {first}, "text": "{"x" * (1 << 20)}"}}\n'
    source = open_source(write(line * 17 + f'{{"a": {later}}}\n'))
    assert source.schema.field("a").type in (pa.int64(), pa.null())
    with pytest.raises(DataError, match=rf"a\.jsonl:18: field 'a' is {message}"):
        rows(source)


def test_a_column_that_is_not_read_may_vary(write, small_blocks):
    source = open_source(write('{"ids": [1], "score": 1}\n' * 9 + '{"ids": [2], "score": 0.5, "url": "x"}\n'))
    assert rows(source, ["ids"]) == [{"ids": [1]}] * 9 + [{"ids": [2]}]


def test_what_is_not_utf8_is_refused_with_its_line(write):
    with pytest.raises(DataError, match=r"a\.jsonl:3: JSON lines must be UTF-8, but byte 0xe9 is not"):
        open_source(write('{"a": "e"}\n\n{"a": "é"}\n'.encode("latin1")))
    with pytest.raises(DataError, match=r"a\.jsonl:1: JSON lines must be UTF-8, but byte 0xff is not"):
        open_source(write('{"a": "e"}\n'.encode("utf-16")))


def test_a_file_without_an_object_is_refused(write):
    with pytest.raises(DataError, match=r"a\.jsonl: holds no rows"):
        open_source(write("\n  \n"))


def compress_zstd(data):
    return pa.compress(data, codec="zstd", asbytes=True)


PACKERS = {"a.jsonl.gz": gzip.compress, "a.ndjson.zst": compress_zstd}


@pytest.mark.parametrize("name", PACKERS)
def test_a_compressed_file_is_read_to_its_last_member(write, name):
    members = [f'{{"a": {i}}}\n'.encode() * 1000 for i in range(3)]
    source = open_source(write(b"".join(PACKERS[name](member) for member in members), name))
    assert [row["a"] for row in rows(source)] == [0] * 1000 + [1] * 1000 + [2] * 1000


@pytest.mark.parametrize("name", PACKERS)
def test_a_compressed_file_that_was_cut_short_is_refused(write, name):
    member = PACKERS[name](b"".join(b'{"a": %d}\n' % (i * i) for i in range(40)))
    for data in (member, member + member):
        for size in range(len(data) - len(member) + 1, len(data)):
            with pytest.raises(DataError, match=rf"{name}: cannot be read: \S[^\n]*$"):
                rows(open_source(write(data[:size], name)))
    with pytest.raises(DataError, match="cannot be read"):
        open_source(write('{"a": 1}', name))


@pytest.mark.parametrize("depth", [201, 1500, 20_000, 300_000])
@pytest.mark.parametrize("brackets", ["[]", ('{"a":', "}")], ids=["lists", "objects"])
@pytest.mark.parametrize("before", ["", '{"ids": [1]}\n'], ids=["first line", "second line"])
def test_nesting_that_would_exhaust_the_stack_is_refused_by_line(tmp_path, depth, brackets, before):
    opening, closing = brackets
    path = tmp_path / "deep.jsonl"
    path.write_text(before + '{"ids": [1], "x": ' + opening * depth + "1" + closing * depth + "}\n")
    with pytest.raises(DataError, match=rf"deep.jsonl:{2 if before else 1}: .*(nested|field 'x')"):
        list(open_source([path]).read(None))


def test_brackets_in_texts_are_not_nesting(tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_text('{"ids": [1], "text": "' + "[{" * 5000 + '\\"["}\n')
    assert [batch.num_rows for batch in open_source([path]).read(None)] == [1]
