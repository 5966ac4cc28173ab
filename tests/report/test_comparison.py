"""The table of a comparison: the best plan marked, equal plans in one line, and what is said about it."""

import pytest

from brimful import plan
from brimful.lengths import LengthHistogram
from brimful.lower_bounds import LowerBound
from brimful.report.comparison import comparison_table, explain_bound, explain_collapse
from tests.report.drawing import draw

LIMITS = (2, 3, 4, 8, None)


def plans(lengths, max_length, limits=LIMITS):
    made = [plan(lengths, max_length, limit, name) for name in ("spfhp", "lpfhp") for limit in limits]
    return [plan(lengths, max_length, algorithm="none").figures(), *(each.figures() for each in made)]


def test_equal_plans_share_a_line_and_lines_fit():
    compared = plans([9, 9, 4, 4, 3, 3, 2, 1, 1, 1], 10)
    lines = draw(comparison_table(compared, best=compared[-1], left_out=["next_fit"]))
    assert max(map(len, lines)) <= 80
    lpfhp = [line for line in lines if line.startswith("lpfhp")]
    assert len(lpfhp) < len(LIMITS)
    assert "or more" in lpfhp[-1]
    assert [line.split()[0] for line in lines if line.endswith("*")] == ["lpfhp"]
    assert "no data order" in next(line for line in lines if line.startswith("next_fit"))


def test_collapse_is_explained_only_where_it_happens():
    short = LengthHistogram.from_lengths([5] * 50)
    assert "20 times the longest" in str(explain_collapse(plans(short, 100, [None]), short, 100))
    assert explain_collapse(plans(short, 5, [None]), short, 5) is None


@pytest.mark.parametrize("kind", ["tokens", "martello-toth", "max_sequences", "linear-programme", "a later one"])
def test_bounds_of_every_kind_are_told(kind):
    assert explain_bound(LowerBound(1234, kind)).startswith("Proven: no packing needs fewer than 1,234 packs (")
