"""Lengths, histograms and capacities: what is accepted, what is counted, and the text of every refusal."""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import BrimfulError, CapacityError, LengthError, LengthHistogram

WHOLE = "lengths are whole numbers, but item "
FLAT = "lengths are a flat list of whole numbers, "
LIST = "lengths are a list or an array of whole numbers, not "


def test_importing_brimful_imports_nothing_heavy():
    """In a fresh interpreter: numpy is all that planning needs."""
    heavy = ["pyarrow", "torch", "datasets", "tokenizers", "rich", "typer", "pandas", "highspy", "scipy"]
    code = f"import sys, brimful; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout == "[]\n"
    assert done.stderr == ""


# Counting


@settings(max_examples=200)
@given(st.lists(st.integers(1, 60) | st.integers(1, 2**40), max_size=80))
def test_a_histogram_counts_each_length(lengths):
    """Both small lengths, which are counted densely, and such as no dense table could hold."""
    histogram = LengthHistogram.from_lengths(lengths)
    assert dict(zip(histogram.lengths.tolist(), histogram.counts.tolist(), strict=True)) == Counter(lengths)
    assert histogram.lengths.tolist() == sorted(set(lengths))
    assert [histogram.lengths.dtype, histogram.counts.dtype] == [np.dtype("int64")] * 2
    assert histogram.n_sequences == len(lengths)
    assert histogram.n_tokens == sum(lengths)
    assert histogram.longest == max(lengths, default=0)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", ">u8", object])
def test_every_integer_array_is_accepted(dtype):
    histogram = LengthHistogram.from_lengths(np.array([7, 2, 120, 7], dtype))
    assert histogram == LengthHistogram(np.array([2, 7, 120]), np.array([1, 2, 1]))


@pytest.mark.parametrize(
    "lengths",
    [
        [3, 1, 2],
        (3, 1, 2),
        range(1, 4),
        [np.int8(3), 1, np.uint16(2)],
        np.array([3, 9, 1, 9, 2])[::2],
        deque([3, 1, 2]),
    ],
    ids=["list", "tuple", "range", "numpy scalars", "strided", "deque"],
)
def test_every_kind_of_sequence_of_whole_numbers_is_accepted(lengths):
    assert LengthHistogram.from_lengths(lengths) == LengthHistogram(np.array([1, 2, 3]), np.array([1, 1, 1]))


def test_what_numpy_can_view_is_accepted():
    import pyarrow as pa

    for lengths in (
        pa.array([3, 1, 2]),
        pa.array([3, 1, 2], pa.uint16()),
        pa.chunked_array([[3], [1, 2]]),
    ):
        assert LengthHistogram.from_lengths(lengths) == LengthHistogram.from_lengths([1, 2, 3])
    with pytest.raises(LengthError, match=r"^lengths are whole numbers, but some are null or masked"):
        LengthHistogram.from_lengths(pa.array([3, None, 2]))


@pytest.mark.parametrize("empty", [[], (), np.zeros(0, np.int32), np.zeros(0), range(0)])
def test_no_sequences_are_a_histogram_too(empty):
    histogram = LengthHistogram.from_lengths(empty)
    assert (histogram.n_sequences, histogram.n_tokens, histogram.longest) == (0, 0, 0)
    assert (histogram.padding_fraction(8), histogram.speedup_limit(8)) == (0.0, 1.0)
    assert repr(histogram) == "LengthHistogram(0 sequences)"


# Refusals


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ([4, 0], "a length is at least 1, but item 1 is 0; leave empty sequences out"),
        (np.array([4, 0], np.uint8), "a length is at least 1, but item 1 is 0; leave empty sequences out"),
        ([4, 5, -3, -7], "a length is at least 1, but item 2 is -3"),
        (np.array([-(2**63)]), "a length is at least 1, but item 0 is -9223372036854775808"),
        ([4, 1.5], WHOLE + "1 is 1.5 (float)"),
        (np.array([1.5, 2.0]), WHOLE + "0 is 1.5 (float)"),
        ([2, 3.0], WHOLE + "1 is 3.0 (float)"),
        (np.array([4.0]), WHOLE + "0 is 4.0 (float)"),
        ([True, 2], WHOLE + "0 is True (bool)"),
        ([2, np.False_], WHOLE + "1 is np.False_ (bool)"),
        (np.array([True, False]), WHOLE + "0 is True (bool)"),
        (np.array([2, True], object), WHOLE + "1 is True (bool)"),
        ([float("nan")], WHOLE + "0 is nan (float)"),
        (np.array([1.0, np.nan]), WHOLE + "0 is 1.0 (float)"),
        ([1, "2"], WHOLE + "1 is '2' (str)"),
        (np.array(["12"]), WHOLE + "0 is '12' (str)"),
        ([1, None], WHOLE + "1 is None (NoneType)"),
        ([1, dt.timedelta(1)], WHOLE + "1 is datetime.timedelta(days=1) (timedelta)"),
        (None, LIST + "None"),
        (5, LIST + "5"),
        ("512", LIST + "'512'"),
        (b"512", LIST + "b'512'"),
        ({1, 2}, LIST + "{1, 2}"),
        (np.array(5), FLAT + "not an array of 0 dimensions"),
        ([[1, 2], [3]], FLAT + "but item 0 is [1, 2]"),
        ([1, (3, 4)], FLAT + "but item 1 is (3, 4)"),
        (np.ones((2, 2), int), FLAT + "not an array of 2 dimensions"),
        (np.zeros((0, 2), int), FLAT + "not an array of 2 dimensions"),
        (np.array([3, 2**63], np.uint64), "lengths are below 2^63, but item 1 is 9223372036854775808"),
        ([3, 2**63], "lengths are below 2^63, but item 1 is 9223372036854775808"),
        ([2**64, 3], "lengths are below 2^63, but item 0 is 18446744073709551616"),
        ([2**62], "a histogram holds fewer than 2^62 tokens, not about 4.61e+18; check its counts"),
        ([2**61] * 4, "a histogram holds fewer than 2^62 tokens, not about 9.22e+18; check its counts"),
    ],
)
def test_what_is_no_length_is_refused_with_the_item_and_the_rule(lengths, text):
    with pytest.raises(LengthError, match=f"^{re.escape(text)}$"):
        LengthHistogram.from_lengths(lengths)


@pytest.mark.parametrize(
    "lengths",
    [[-(2**63) - 1], [-(2**70), 1], [10**5000], [-(10**5000)], [1, 10**5000]],
    ids=["below int64", "far below int64", "5000 digits", "minus 5000 digits", "1 and 5000 digits"],
)
def test_numbers_beyond_every_machine_are_refused_like_others(lengths):
    """A BrimfulError as for any other bad length, not an error of Python's or NumPy's about its own limits."""
    with pytest.raises(LengthError) as caught:
        LengthHistogram.from_lengths(lengths)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "lengths",
    [deque([True, 2]), np.array([5], "m8[ns]"), np.array([5], "M8[ns]")],
    ids=["deque with a bool", "timedelta64[ns]", "datetime64[ns]"],
)
def test_booleans_and_times_are_no_lengths_in_any_container(lengths):
    with pytest.raises(LengthError, match=WHOLE):
        LengthHistogram.from_lengths(lengths)


def test_a_masked_length_is_not_counted_silently():
    """NumPy hides what lies under a mask; counting it would pack sequences that the caller has taken out."""
    with pytest.raises(LengthError):
        LengthHistogram.from_lengths(np.ma.array([1, 2, 3], mask=[False, True, False]))


def test_an_error_stays_readable_however_large_the_bad_item_is():
    with pytest.raises(LengthError) as caught:
        LengthHistogram.from_lengths(["x" * 100_000])  # type: ignore[list-item]
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("lengths", "counts", "text"),
    [
        ([1, 2], [1], "a histogram has one count per length, not 1 for 2 lengths"),
        ([0, 2], [1, 1], "a length is at least 1, but item 0 is 0; leave empty sequences out"),
        ([1, 2], [1, 0], "a count is at least 1, but item 1 is 0"),
        ([1, 2], [-1, 1], "a count is at least 1, but item 0 is -1"),
        ([1, 2], [1.0, 1.0], "counts are whole numbers, but item 0 is 1.0 (float)"),
        ([True, 2], [1, 1], "lengths are whole numbers, but item 0 is True (bool)"),
        ([2, 1], [1, 1], "the lengths of a histogram increase strictly, but 2 is followed by 1; sort them and add up"),
        ([1, 2, 2], [1, 1, 1], "the lengths of a histogram increase strictly, but 2 is followed by 2; sort them and"),
        ([1], [2**62], "a histogram holds fewer than 2^62 tokens, not about 4.61e+18; check its counts"),
        ([2**31], [2**31], "a histogram holds fewer than 2^62 tokens, not about 4.61e+18; check its counts"),
        ([2**62 - 1, 2**62 + 1], [3, 2**61], "a histogram holds fewer than 2^62 tokens, not about 1.06e+37"),
    ],
)
def test_a_histogram_that_is_none_is_refused(lengths, counts, text):
    with pytest.raises(LengthError, match=f"^{re.escape(text)}"):
        LengthHistogram(lengths, counts)


@pytest.mark.parametrize("bad", [0, -1, True, np.True_, 1.5, 512.0, "512", 2**31, [512], np.array([512]), float("nan")])
@pytest.mark.parametrize("name", ["max_length", "max_sequences"])
def test_capacities_are_whole_numbers_in_range(bad, name):
    capacities: dict[str, Any] = {"max_length": 8, "max_sequences": 8, name: bad}
    text = f"{name} is a whole number from 1 to 2147483647, not {bad!r}"
    with pytest.raises(LengthError, match=f"^{re.escape(text)}$"):
        brimful.plan([1], **capacities)


def test_max_length_is_needed():
    with pytest.raises(LengthError, match=r"^max_length is a whole number from 1 to 2147483647, not None$"):
        brimful.plan([1], None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["max_length", "max_sequences"])
def test_a_capacity_of_5000_digits_is_refused_like_others(name):
    capacities: dict[str, Any] = {"max_length": 8, name: 10**5000}
    with pytest.raises(LengthError, match=f"^{name} is a whole number from 1 to 2147483647") as caught:
        brimful.plan([1], **capacities)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("good", [1, 512, 2**31 - 1, np.int64(512), np.uint8(200)])
def test_whole_numbers_of_every_kind_are_capacities(good):
    plan = brimful.plan([1], good, good)
    assert (plan.max_length, plan.max_sequences) == (int(good), int(good))
    assert (type(plan.max_length), type(plan.max_sequences)) == (int, int)


def test_unknown_algorithms_are_answered_with_those_there_are():
    text = "there is no algorithm 'ffd'; there are auto, " + ", ".join(brimful.planning.ALGORITHMS)
    with pytest.raises(brimful.SettingError, match=f"^{re.escape(text)}$"):
        brimful.plan([1], 8, algorithm="ffd")


@pytest.mark.parametrize("nameless", [None, 3, ["lpfhp"]])
def test_what_is_no_name_is_no_algorithm(nameless):
    with pytest.raises(brimful.SettingError, match=r"^there is no algorithm .*; there are auto, lpfhp, "):
        brimful.plan([1], 8, algorithm=nameless)


def test_too_long_sequences_are_counted_and_the_ways_out_are_named():
    histogram = LengthHistogram(np.array([5, 9, 4000]), np.array([2000, 3, 1500]))
    text = (
        "1,503 of 3,503 sequences are longer than max_length 8 (the longest has 4,000 tokens); "
        "raise max_length, or choose an overflow policy: drop, truncate or split"
    )
    for use in (
        lambda: brimful.plan(histogram, 8),
        lambda: histogram.padding_fraction(8),
        lambda: histogram.speedup_limit(8),
    ):
        with pytest.raises(CapacityError, match=f"^{re.escape(text)}$"):
            use()
    brimful.plan(histogram, 4000)


# Figures


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(50, 70))
def test_padding_and_speedup_are_their_definitions(lengths, max_length):
    histogram = LengthHistogram.from_lengths(lengths)
    padding = sum(max_length - length for length in lengths)
    assert histogram.padding_fraction(max_length) == pytest.approx(padding / (len(lengths) * max_length))
    assert histogram.speedup_limit(max_length) == pytest.approx(len(lengths) * max_length / sum(lengths))


@given(st.lists(st.integers(1, 20)), st.lists(st.integers(1, 20)))
def test_histograms_of_two_datasets_add_up(left, right):
    both = LengthHistogram.from_lengths(left) + LengthHistogram.from_lengths(right)
    assert both == LengthHistogram.from_lengths(left + right)


def test_a_sum_beyond_the_limit_is_refused():
    half = LengthHistogram(np.array([1]), np.array([2**61]))
    with pytest.raises(LengthError, match=r"^a histogram holds fewer than 2\^62 tokens"):
        half + half
    with pytest.raises(TypeError):
        half + 1  # type: ignore[operator]


# Values


def test_histograms_are_values():
    first, second = LengthHistogram.from_lengths([7, 2, 7]), LengthHistogram.from_lengths([2, 7, 7])
    assert first == second
    assert hash(first) == hash(second)
    assert first != LengthHistogram.from_lengths([2, 7])
    assert first != LengthHistogram.from_lengths([2, 8, 8])
    assert first != 3
    assert repr(first) == "LengthHistogram(3 sequences, 16 tokens, lengths 2 to 7)"


def test_a_histogram_is_read_only_and_apart_from_the_arrays_it_was_made_of():
    lengths, counts = np.array([2, 7]), np.array([1, 2])
    histogram = LengthHistogram(lengths, counts)
    lengths[0], counts[0] = 3, 50
    assert histogram == LengthHistogram.from_lengths([2, 7, 7])
    for array in (histogram.lengths, histogram.counts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(AttributeError):
        histogram.lengths = lengths  # type: ignore[misc]


def test_planning_leaves_the_lengths_as_they_were():
    lengths = np.array([3, 9, 2, 9, 5])
    for algorithm in brimful.planning.ALGORITHMS:
        brimful.assign(brimful.plan(lengths, 12, algorithm=algorithm), lengths)
    assert lengths.tolist() == [3, 9, 2, 9, 5]
    assert lengths.flags.writeable


# Files


@given(st.dictionaries(st.integers(1, 2**31), st.integers(1, 2**20), max_size=20))
def test_a_histogram_file_is_read_back_equal(tmp_path_factory, counts):
    path = tmp_path_factory.mktemp("csv") / "lengths.csv"
    histogram = LengthHistogram(np.array(sorted(counts), int), np.array([counts[key] for key in sorted(counts)], int))
    histogram.to_csv(path)
    assert LengthHistogram.from_csv(path) == histogram
    assert LengthHistogram.from_csv(str(path)) == histogram
    rows = [f"{length},{counts[length]}\n" for length in sorted(counts)]
    assert path.read_bytes().decode() == "length,count\n" + "".join(rows)


@pytest.mark.parametrize(
    "content",
    [
        b"length,count\n2,1\n7,2\n",
        b"length,count\n7,2\n2,1\n",
        b"length,count\r\n2,1\r\n7,2\r\n",
        b"\xef\xbb\xbflength,count\n2,1\n7,2\n",
        b"length,count\n\n2,1\n\n\n7,2\n\n",
        b"length,count\n2,1\n7,2",
        b"length, count\n2, 1\n 7 ,2 \n",
        b'"length","count"\n"2","1"\n7,2\n',
    ],
    ids=["plain", "unsorted", "CRLF", "BOM", "blank lines", "no last newline", "spaces", "quotes"],
)
def test_what_programs_make_of_a_csv_file_is_read(tmp_path, content):
    path = tmp_path / "lengths.csv"
    path.write_bytes(content)
    assert LengthHistogram.from_csv(path) == LengthHistogram.from_lengths([2, 7, 7])


def test_a_header_alone_is_an_empty_histogram(tmp_path):
    path = tmp_path / "lengths.csv"
    path.write_text("length,count\n")
    assert LengthHistogram.from_csv(path).n_sequences == 0


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        ("", 1, "a histogram starts with the header length,count, not ''"),
        ("2,1\n", 1, "a histogram starts with the header length,count, not '2,1'"),
        ("count,length\n2,1\n", 1, "a histogram starts with the header length,count, not 'count,length'"),
        ("length\n2\n", 1, "a histogram starts with the header length,count, not 'length'"),
        ("length,count,share\n2,1,1\n", 1, "a histogram starts with the header length,count, not 'length,count,share'"),
        ("length;count\n2;1\n", 1, "a histogram starts with the header length,count, not 'length;count'"),
        ("length,count\n2\n", 2, "a row is two whole numbers, length,count, not '2'"),
        ("length,count\n2,1,0\n", 2, "a row is two whole numbers, length,count, not '2,1,0'"),
        ("length,count\n2,1\n\n3.0,1\n", 4, "a row is two whole numbers, length,count, not '3.0,1'"),
        ("length,count\n2,many\n", 2, "a row is two whole numbers, length,count, not '2,many'"),
        ("length,count\n2,\n", 2, "a row is two whole numbers, length,count, not '2,'"),
        ("length,count\n2,nan\n", 2, "a row is two whole numbers, length,count, not '2,nan'"),
        ("length,count\n2,1e3\n", 2, "a row is two whole numbers, length,count, not '2,1e3'"),
        ("length,count\n0x10,1\n", 2, "a row is two whole numbers, length,count, not '0x10,1'"),
        ("length,count\n2,1\0\n", 2, "a row is two whole numbers, length,count, not '2,1\\x00'"),
        ("length,count\n0,1\n", 2, "length and count are at least 1, not 0,1"),
        ("length,count\n2,1\n-3,1\n", 3, "length and count are at least 1, not -3,1"),
        ("length,count\n2,0\n", 2, "length and count are at least 1, not 2,0"),
        ("length,count\n2,-1\n", 2, "length and count are at least 1, not 2,-1"),
        ("length,count\n2,1\n3,1\n2,5\n", 4, "length 2 stands twice; add up its counts in one row"),
        (
            "length,count\n4,2000000000000000000\n",
            2,
            "a histogram holds fewer than 2^62 tokens; check the counts up to here",
        ),
        ("length,count\n99999999999999999999,1\n", 2, "a histogram holds fewer than 2^62 tokens"),
    ],
)
def test_a_bad_row_is_named_with_file_and_line(tmp_path, content, line, text):
    path = tmp_path / "lengths.csv"
    path.write_text(content)
    with pytest.raises(LengthError, match=f"^{re.escape(f'{path}:{line}: {text}')}"):
        LengthHistogram.from_csv(path)


@pytest.mark.parametrize(
    "row", ["१,2", "٣,1", "1_000,2", "2,1_0", "２,1"], ids=["devanagari", "arabic", "1_000", "1_0", "full width"]
)
def test_numbers_that_only_python_reads_are_no_numbers(tmp_path, row):
    """A file that another program reads otherwise, or not at all, is refused rather than guessed at."""
    path = tmp_path / "lengths.csv"
    path.write_text(f"length,count\n{row}\n", encoding="utf-8")
    with pytest.raises(LengthError, match=f"^{re.escape(str(path))}:2: a row is two whole numbers"):
        LengthHistogram.from_csv(path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff\xfe\x80 no text",
        "length,count\n2,1\n".encode("utf-16"),
        b"length,count\n2,\xff\n",
        b"length,count\n2," + b"9" * 200_000 + b"\n",
    ],
    ids=["binary", "UTF-16", "Latin-1", "endless field"],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, content):
    path = tmp_path / "lengths.csv"
    path.write_bytes(content)
    with pytest.raises(LengthError, match=f"^{re.escape(str(path))}:?") as caught:
        LengthHistogram.from_csv(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    ["length,count\n2," + "9" * 5000 + "\n", "length,count\n4611686018427387903,1\n3,1\n"],
    ids=["5000 digits", "too many tokens in all"],
)
def test_numbers_too_large_are_refused_in_one_short_line_that_names_the_file(tmp_path, content):
    path = tmp_path / "lengths.csv"
    path.write_text(content)
    with pytest.raises(LengthError, match=f"^{re.escape(str(path))}:") as caught:
        LengthHistogram.from_csv(path)
    assert len(str(caught.value)) < len(str(path)) + 300


def test_a_file_too_large_for_a_histogram_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("brimful.untrusted._MAX_CSV_BYTES", 2**20)
    path = tmp_path / "lengths.csv"
    path.write_bytes(b"length,count\n" + b"\n" * 2**20)
    with pytest.raises(LengthError, match=f"^{re.escape(str(path))}: larger than 1 MiB; is this a histogram\\?$"):
        LengthHistogram.from_csv(path)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        LengthHistogram.from_csv(tmp_path / "none.csv")


def test_every_error_is_a_brimful_error_and_a_value_error():
    assert issubclass(BrimfulError, ValueError)
    for name in ("CapacityError", "DataError", "LengthError", "OutputError", "PlanError"):
        assert issubclass(getattr(brimful, name), BrimfulError)
