"""Histograms of several resources: exact, validated with clear errors, and the same after a trip through a file."""

from __future__ import annotations

import copy
import pickle
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brimful import LengthError, LengthHistogram
from brimful.resources import ResourceHistogram
from tests.resources.strategies import columns, problems


def make(rows: dict[tuple[int, ...], int], names: tuple[str, ...] = ("tokens", "images")) -> ResourceHistogram:
    sizes = sorted(rows)
    return ResourceHistogram(
        names, np.array(sizes, np.int64).reshape(len(sizes), len(names)), np.array([rows[size] for size in sizes], int)
    )


# Counting


@given(problems())
def test_every_sequence_is_counted_by_its_size(problem):
    sizes, capacities = problem
    histogram = ResourceHistogram.from_sizes(columns(sizes, len(capacities)))
    counted = dict(zip(map(tuple, histogram.sizes.tolist()), histogram.counts.tolist(), strict=True))
    assert counted == Counter(sizes)
    assert list(counted) == sorted(counted)
    assert histogram.n_sequences == len(sizes)
    for at, (name, total) in enumerate(histogram.totals.items()):
        assert total == sum(size[at] for size in sizes)
        assert histogram.of(name) == LengthHistogram.from_lengths([size[at] for size in sizes if size[at]])


def test_totals_above_2_to_the_53_are_exact():
    histogram = make({(1, 0): 2**54 + 1, (3, 1): 2**53 + 1})
    assert histogram.n_sequences == 2**54 + 2**53 + 2
    assert histogram.totals == {"tokens": 2**54 + 1 + 3 * (2**53 + 1), "images": 2**53 + 1}


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({}, "a size has at least one resource, such as tokens; none is named"),
        ([3, 4], "sizes are given by resource, such as {'tokens': [7, 2]}, not as [3, 4]"),
        ({"count": [1]}, "a resource has a plain name, up to 100 letters, digits and . _ -, not 'count'"),
        ({"": [1]}, "a resource has a plain name, up to 100 letters, digits and . _ -, not ''"),
        ({"a=b": [1]}, "a resource has a plain name, up to 100 letters, digits and . _ -, not 'a=b'"),
        ({"2": [1]}, "a resource has a plain name, up to 100 letters, digits and . _ -, not '2'"),
        ({"x" * 101: [1]}, "a resource has a plain name, up to 100 letters, digits and . _ -, not 'xxx"),
        ({"tokens": [1, 2], "images": [0]}, "a sequence has a size in every resource, but there are 2 in tokens and 1"),
        ({"tokens": [1, -2]}, "the sizes in tokens are at least 0, but item 1 is -2"),
        ({"tokens": [1, 0], "images": [0, 0]}, "a sequence has a size above 0 in some resource, but item 1 has none"),
        ({"tokens": [1, 2.0]}, "the sizes in tokens are whole numbers, but item 1 is 2.0 (float)"),
        ({"tokens": [1], "images": [True]}, "the sizes in images are whole numbers, but item 0 is True (bool)"),
        ({"tokens": [2**63]}, "the sizes in tokens are below 2^63, but item 0 is 9223372036854775808"),
        ({"tokens": [1], "images": [2**62]}, "a histogram holds fewer than 2^62 images, not about 4.61e+18; check its"),
        ({"tokens": "12"}, "the sizes in tokens are a list or an array of whole numbers, not '12'"),
    ],
)
def test_what_is_no_size_is_refused_with_the_item_and_the_rule(sizes, text):
    with pytest.raises(LengthError, match=f"^{re.escape(text)}"):
        ResourceHistogram.from_sizes(sizes)


@pytest.mark.parametrize(
    ("names", "sizes", "counts", "text"),
    [
        (("a", "a"), [[1, 1]], [1], "a resource is named once, but 'a' stands twice"),
        (("a", "b"), [[1, 1], [1, 1]], [1, 1], "the sizes of a histogram increase strictly, but (1, 1) is followed by"),
        (("a", "b"), [[1, 2], [1, 1]], [1, 1], "the sizes of a histogram increase strictly, but (1, 2) is followed by"),
        (("a", "b"), [[2, 0], [1, 1]], [1, 1], "the sizes of a histogram increase strictly, but (2, 0) is followed by"),
        (("a", "b"), [[1, 1]], [0], "a count is at least 1, but item 0 is 0"),
        (("a", "b"), [[1, 1]], [1, 1], "sizes are an array with a row for each of 2 counts and a column for each of 2"),
        (("a",), [[1, 1]], [1], "sizes are an array with a row for each of 1 counts and a column for each of 1 resou"),
        (("a", "b"), [[0, 0]], [1], "a sequence has a size above 0 in some resource, but item 0 has none; leave it"),
        (("a", "b"), [[1.0, 1.0]], [1], "the sizes in a are whole numbers, but item 0 is 1.0 (float)"),
        (("a", "b"), [[2**32, 0]], [2**31], "a histogram holds fewer than 2^62 a, not about 9.22e+18; check its co"),
        (("a",), [[1], [2]], [2**60, 2**60], "a histogram of 2 sizes holds fewer than 2^62 / 2 sequences, not about"),
    ],
)
def test_a_histogram_that_is_none_is_refused(names, sizes, counts, text):
    with pytest.raises(LengthError, match=f"^{re.escape(text)}"):
        ResourceHistogram(names, np.array(sizes), np.array(counts))


@pytest.mark.parametrize("sizes", [[[1, 1]], None, [[1], [2, 3]], "ab"])
def test_sizes_are_an_array(sizes):
    with pytest.raises(LengthError, match=r"^sizes are an array with a row for each of 1 counts and a column for each"):
        ResourceHistogram(("a", "b"), sizes, np.array([1]))


def test_a_masked_size_is_not_counted_silently():
    with pytest.raises(LengthError, match="some are null or masked"):
        ResourceHistogram(("a",), np.ma.array([[1], [2]], mask=[[False], [True]]), np.array([1, 1]))


# Values


def test_histograms_are_values():
    first, second = make({(7, 1): 2, (2, 0): 1}), make({(2, 0): 1, (7, 1): 2})
    assert first == second
    assert hash(first) == hash(second)
    assert first != make({(7, 1): 2, (2, 0): 2})
    assert first != make({(7, 1): 2, (2, 1): 1})
    assert first != make({(7, 1): 2, (2, 0): 1}, ("tokens", "pictures"))
    assert first != 3
    for again in (copy.deepcopy(first), pickle.loads(pickle.dumps(first))):  # noqa: S301
        assert again == first
        for array in (again.sizes, again.counts):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({(7, 1): 2, (2, 0): 1}, "none"),
        ({(7, 1): 3, (2, 0): 1}, "of size 7,1 there are 2 in the one and 3 in the other"),
        ({(7, 1): 2, (2, 1): 1}, "of size 2,0 there are 1 in the one and 0 in the other"),
    ],
)
def test_differences_are_named(other, text):
    assert make({(7, 1): 2, (2, 0): 1}).difference(make(other)) == text


def test_other_names_are_a_difference():
    difference = make({(7, 1): 2}).difference(make({(7, 1): 2}, ("tokens", "pictures")))
    assert difference == "resources tokens, images in the one and tokens, pictures in the other"


# Files


@given(st.dictionaries(st.tuples(st.integers(0, 2**31), st.integers(0, 9)).filter(any), st.integers(1, 2**20)))
def test_a_histogram_file_is_read_back_equal(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "sizes.csv"
    histogram = make(rows)
    histogram.to_csv(path)
    assert ResourceHistogram.from_csv(path) == histogram
    assert ResourceHistogram.from_csv(str(path)) == histogram
    lines = [f"{tokens},{images},{rows[tokens, images]}\n" for tokens, images in sorted(rows)]
    assert path.read_text() == "tokens,images,count\n" + "".join(lines)


@pytest.mark.parametrize(
    "content",
    [
        b"tokens,images,count\n2,0,1\n7,1,2\n",
        b"tokens,images,count\r\n7,1,2\r\n2,0,1\r\n",
        b"\xef\xbb\xbftokens, images ,count\n\n2,0,1\n\n7, 1,2",
        b"count,tokens,images\n1,2,0\n2,7,1\n",
        b"tokens,count,images\n2,1,0\n7,2,1\n",
    ],
    ids=["plain", "unsorted, CRLF", "BOM, spaces, blank lines", "count first", "count between"],
)
def test_what_programs_make_of_a_csv_file_is_read(tmp_path, content):
    path = tmp_path / "sizes.csv"
    path.write_bytes(content)
    assert ResourceHistogram.from_csv(path) == make({(2, 0): 1, (7, 1): 2})


def test_a_header_alone_is_an_empty_histogram(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("nodes,edges,count\n")
    histogram = ResourceHistogram.from_csv(path)
    assert (histogram.names, histogram.n_sequences, histogram.totals) == (
        ("nodes", "edges"),
        0,
        {"nodes": 0, "edges": 0},
    )


def test_a_histogram_of_lengths_is_one_of_one_resource(histograms):
    path = histograms / "squad_1_1_bert_384.csv"
    assert ResourceHistogram.from_csv(path).of("length") == LengthHistogram.from_csv(path)


@pytest.mark.parametrize(
    ("content", "where", "text"),
    [
        ("", ":1", "a histogram starts with a header that names the resources and count, such as tokens,images,count"),
        ("2,1,1\n", ":1", "a histogram starts with a header that names the resources and count"),
        ("tokens,images\n", ":1", "a histogram starts with a header that names the resources and count"),
        ("count,tokens,count\n", ":1", "a histogram starts with a header that names the resources and count"),
        ("count\n3\n", ":1", "a size has at least one resource, such as tokens; none is named"),
        ("tokens,tokens,count\n", ":1", "a resource is named once, but 'tokens' stands twice"),
        ("tokens,2,count\n", ":1", "a resource has a plain name, up to 100 letters, digits and . _ -, not '2'"),
        ("a,b,count\n1,2\n", ":2", "a row is 3 whole numbers, a,b,count, not '1,2'"),
        ("a,b,count\n1,2,3,4\n", ":2", "a row is 3 whole numbers, a,b,count, not '1,2,3,4'"),
        ("a,b,count\n1,2,3\n\n1,2.0,3\n", ":4", "a row is 3 whole numbers, a,b,count, not '1,2.0,3'"),
        ("a,b,count\n1,1_0,3\n", ":2", "a row is 3 whole numbers, a,b,count, not '1,1_0,3'"),
        ("a,b,count\n1,٣,3\n", ":2", "a row is 3 whole numbers, a,b,count, not '1,٣,3'"),
        ("a,b,count\n1,2,0\n", ":2", "a count is at least 1, a size at least 0 and above 0 in some resource, not 1,2"),
        ("a,b,count\n0,0,3\n", ":2", "a count is at least 1, a size at least 0 and above 0 in some resource, not 0,0"),
        ("a,b,count\n1,-2,3\n", ":2", "a count is at least 1, a size at least 0 and above 0 in some resource, not 1,"),
        ("a,b,count\n1,2,3\n5,6,7\n1,2,4\n", ":4", "the size 1,2 stands twice; add up its counts"),
        ("a,b,count\n1,2,4611686018427387904\n", ":2", "a histogram holds fewer than 2^62 of a resource, not 1,2,46"),
        ("a,b,count\n1," + "9" * 40 + ",1\n", ":2", "a histogram holds fewer than 2^62 of a resource, not 1,999"),
        ("a,b,count\n1,2,4611686018427387\n2,999,4611686018427387\n", "", "a histogram holds fewer than 2^62 b, not"),
        ("a,b,count\n1,2,\0\n", ":2", "a row is 3 whole numbers, a,b,count, not '1,2,\\x00'"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(tmp_path, content, where, text):
    path = tmp_path / "sizes.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(LengthError, match=f"^{re.escape(f'{path}{where}: {text}')}") as caught:
        ResourceHistogram.from_csv(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 300


@pytest.mark.parametrize("content", [b"\x00\xff\xfe\x80 no", "a,count\n2,1\n".encode("utf-16"), b"a,count\n\xff\n"])
def test_a_file_that_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "sizes.csv"
    path.write_bytes(content)
    with pytest.raises(LengthError, match=f"^{re.escape(str(path))}:"):
        ResourceHistogram.from_csv(path)


def test_what_is_no_file_of_a_histogram_is_not_read(tmp_path, monkeypatch):
    with pytest.raises(LengthError, match="not a regular file; name a CSV file with a header that names the resources"):
        ResourceHistogram.from_csv(tmp_path)
    with pytest.raises(FileNotFoundError):
        ResourceHistogram.from_csv(tmp_path / "none.csv")
    monkeypatch.setattr("brimful.untrusted._MAX_CSV_BYTES", 2**20)
    path = tmp_path / "sizes.csv"
    path.write_bytes(b"a,count\n" + b"\n" * 2**20)
    with pytest.raises(LengthError, match=r"larger than 1 MiB; is this a histogram\?$"):
        ResourceHistogram.from_csv(path)
