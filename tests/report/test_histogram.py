"""Bins hold every sequence once; quantiles are those of the sorted lengths; bars fit."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from brimful.lengths import LengthHistogram
from brimful.report.histogram import HistogramChart, bins, quantiles, summary
from tests.report.drawing import draw

sequences = st.lists(st.integers(1, 50) | st.integers(1, 10**6), min_size=1, max_size=60)


@given(sequences)
def test_bins_follow_each_other_and_hold_every_sequence(lengths):
    parts = bins(LengthHistogram.from_lengths(lengths))
    assert all(a.last + 1 == b.first for a, b in pairwise(parts))
    assert [part.count for part in parts] == [sum(part.first <= x <= part.last for x in lengths) for part in parts]
    assert sum(part.count for part in parts) == len(lengths)
    assert parts[0].count
    assert parts[-1].count
    assert len(parts) <= 21


@given(sequences, st.floats(0.01, 1))
def test_quantiles_are_those_of_the_sorted_lengths(lengths, share):
    expected = np.quantile(lengths, share, method="inverted_cdf")
    assert quantiles(LengthHistogram.from_lengths(lengths), [share]) == [expected]


@given(sequences, st.sampled_from([40, 80, 200]), st.booleans())
def test_chart_fits_and_no_bar_is_lost(lengths, width, colour):
    lines = draw(HistogramChart(LengthHistogram.from_lengths(lengths)), width, colour)
    parts = bins(LengthHistogram.from_lengths(lengths))
    assert colour or all(len(line) <= max(width, 50) for line in lines[:-1])
    for part, line in zip(parts, lines[: len(parts)], strict=True):
        assert bool(set("▏▎▍▌▋▊▉█") & set(line)) == bool(part.count)


def test_short_lengths_get_a_bin_each_and_skewed_ones_doubling_bins():
    assert [(b.first, b.last) for b in bins(LengthHistogram.from_lengths([3, 5]))] == [(3, 3), (4, 4), (5, 5)]
    skewed = LengthHistogram.from_lengths([3] * 100 + [1000])
    assert [(b.first, b.last) for b in bins(skewed)][:2] == [(3, 4), (5, 8)]


def test_nothing_is_nothing():
    empty = LengthHistogram.from_lengths([])
    assert bins(empty) == []
    assert summary(empty)["mean"] == 0.0
    assert draw(HistogramChart(empty)) == []
