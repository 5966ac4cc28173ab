"""The comparison: every algorithm there is at every limit, and the best plan of all."""

import numpy as np

from brimful.cli.comparison import LIMITS, best, compare
from brimful.lengths import LengthHistogram
from brimful.planning import ALGORITHMS, DATA_ORDER, LEAST_SQUARES, plan

LENGTHS = np.array([9, 9, 4, 4, 3, 3, 2, 1, 1, 1])
HISTOGRAM = LengthHistogram.from_lengths(LENGTHS)

SHOWN = set(ALGORITHMS) - LEAST_SQUARES


def test_every_algorithm_is_compared_at_every_limit():
    plans = compare(HISTOGRAM, LENGTHS, 10).plans
    assert {figures["algorithm"] for figures in plans} == SHOWN
    for algorithm in SHOWN - DATA_ORDER - {"none"}:
        assert tuple(figures["max_sequences"] for figures in plans if figures["algorithm"] == algorithm) == LIMITS
    for figures in plans:
        data = LENGTHS if figures["algorithm"] in DATA_ORDER else HISTOGRAM
        expected = plan(data, 10, figures["max_sequences"], figures["algorithm"]).figures()
        not_shared = set(expected) - {"seconds", "lower_bound", "gap"}
        assert {name: figures[name] for name in not_shared} == {name: expected[name] for name in not_shared}


def test_plans_with_one_limit_share_the_best_bound():
    histogram = LengthHistogram.from_lengths([4] * 8 + [3] * 3)
    compared = compare(histogram, None, 10)
    best_bound = max(plan(histogram, 10, algorithm=name).lower_bound for name in SHOWN - DATA_ORDER)
    assert compared.bound.packs == best_bound
    without_limit = [figures for figures in compared.plans if figures["max_sequences"] is None]
    assert {figures["lower_bound"] for figures in without_limit} == {best_bound}
    assert all(figures["gap"] == (figures["packs"] - best_bound) / best_bound for figures in without_limit)


def test_what_needs_a_data_order_is_left_out_without_one():
    plans = compare(HISTOGRAM, None, 10).plans
    assert {figures["algorithm"] for figures in plans} == SHOWN - DATA_ORDER


def test_with_a_limit_only_that_limit_is_compared():
    plans = compare(HISTOGRAM, LENGTHS, 10, max_sequences=2).plans
    assert {figures["max_sequences"] for figures in plans} == {2}
    assert len(plans) == len(SHOWN)


def test_best_prefers_the_first_algorithm_without_limit():
    plans = compare(HISTOGRAM, LENGTHS, 10).plans
    assert (best(plans)["algorithm"], best(plans)["max_sequences"]) == (next(iter(ALGORITHMS)), None)
    better = {"algorithm": "spfhp", "max_sequences": None, "packs": 1}
    assert best([*plans, better]) is better
