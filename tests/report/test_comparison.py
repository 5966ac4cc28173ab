"""The comparison: every algorithm there is, the best one marked, equal plans in one line."""

import numpy as np
import pytest

from brimful.lengths import LengthHistogram
from brimful.lower_bounds import LowerBound
from brimful.planning import ALGORITHMS, plan
from brimful.report.comparison import DEPTHS, Method, best, compare, explain_bound, explain_gap, methods_table
from tests.report.drawing import draw

HISTOGRAM = LengthHistogram.from_lengths([9, 9, 4, 4, 3, 3, 2, 1, 1, 1])


def test_every_algorithm_is_compared_at_every_depth():
    methods = compare(HISTOGRAM, None, 10)
    assert {method.algorithm for method in methods} == set(ALGORITHMS)
    for algorithm in ("spfhp", "lpfhp"):
        assert tuple(method.max_sequences for method in methods if method.algorithm == algorithm) == DEPTHS
    for method in methods:
        if method.figures:
            expected = plan(HISTOGRAM, 10, method.max_sequences, method.algorithm).figures()
            assert method.figures | {"seconds": 0} == expected | {"seconds": 0}


def test_with_a_limit_only_that_limit_is_compared():
    methods = compare(HISTOGRAM, None, 10, max_sequences=2)
    assert {method.max_sequences for method in methods} == {2}
    assert len(methods) == len(ALGORITHMS)


def test_equal_plans_share_a_line_and_lines_fit():
    lines = draw(methods_table(compare(HISTOGRAM, None, 10)))
    assert max(map(len, lines)) <= 80
    lpfhp = [line for line in lines if line.startswith("lpfhp")]
    assert len(lpfhp) < len(DEPTHS)
    assert "or more" in lpfhp[-1]
    assert sum(line.endswith("*") for line in lines) == 1


def test_best_prefers_the_default_algorithm_without_limit():
    methods = compare(HISTOGRAM, np.array([9, 9, 4, 4, 3, 3, 2, 1, 1, 1]), 10)
    assert (best(methods).algorithm, best(methods).max_sequences) == ("lpfhp", None)
    better = Method("spfhp", None, {"packs": 1})
    assert best([*methods, better]) is better


def test_collapse_is_explained_only_where_it_happens():
    short = LengthHistogram.from_lengths([5] * 50)
    assert "20 times the longest" in str(explain_gap(compare(short, None, 100), short, 100))
    assert explain_gap(compare(short, None, 5), short, 5) is None


@pytest.mark.parametrize("kind", ["tokens", "martello-toth", "max_sequences", "a later one"])
def test_bounds_of_every_kind_are_told(kind):
    assert explain_bound(LowerBound(1234, kind)).startswith("Proven: no packing needs fewer than 1,234 packs (")
