"""optimal: near the optimum, never worse than best fit, and with a proof that anyone can check."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import brimful
from brimful import LengthHistogram, PackPlan, PlanError, SettingError
from brimful.lower_bounds import PRICE_UNIT, DualPrices, dual_price_bound, lower_bound
from brimful.planning import column_generation, cutting_stock
from tests.planning.strategies import LIMITS, problems
from tests.reference import packing

# Proofs


@pytest.mark.parametrize("max_sequences", LIMITS)
@given(problem=problems(max_size=8), grid=st.integers(1, 6), data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_prices_whatever_prove_more_than_exhaustive_search_allows(max_sequences, problem, grid, data):
    lengths, max_length = problem
    histogram = LengthHistogram.from_lengths(lengths)
    n_classes = len(np.unique(histogram.lengths // grid))
    price = st.sampled_from([0, 1, PRICE_UNIT // 3, PRICE_UNIT // 2, PRICE_UNIT]) | st.integers(0, PRICE_UNIT)
    prices = data.draw(st.lists(price, min_size=n_classes, max_size=n_classes))
    bound = dual_price_bound(histogram, max_length, max_sequences, DualPrices(grid, np.array(prices, np.int64)))
    assert bound.packs <= packing.fewest_packs(lengths, max_length, max_sequences)


@pytest.mark.parametrize("max_sequences", LIMITS)
@given(problem=problems(max_size=8))
@settings(max_examples=40, deadline=None)
def test_bound_optimum_plan_and_best_fit_stand_in_this_order(max_sequences, problem):
    lengths, max_length = problem
    plan = brimful.plan(lengths, max_length, max_sequences, "optimal")
    fewest = packing.fewest_packs(lengths, max_length, max_sequences)
    assert plan.lower_bound <= fewest <= plan.packs
    assert plan.packs <= brimful.plan(lengths, max_length, max_sequences, "lpfhp").packs


def test_a_plan_carries_its_proof_through_a_file_and_an_altered_proof_proves_less(tmp_path, histograms):
    histogram = LengthHistogram.from_csv(histograms / "squad_1_1_bert_384.csv")
    plan = brimful.plan(histogram, 384, algorithm="optimal")
    assert (plan.packs, plan.lower_bound, plan.bound.kind) == (40_195, 40_195, "linear-programme")
    plan.save(tmp_path / "plan.json")
    assert PackPlan.load(tmp_path / "plan.json").bound == plan.bound
    value = plan.to_json()
    value["prices"]["values"] = [PRICE_UNIT] * len(value["prices"]["values"])
    assert PackPlan.from_json(value).lower_bound < plan.lower_bound


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({"grid": 1, "values": [1]}, "prices are one for each of 3 classes"),
        ({"grid": 0, "values": [1, 1, 1]}, "the grid of prices is a whole number from 1"),
        ({"grid": 1, "values": [-1, 0, 0]}, "prices are whole numbers from 0 to"),
        ({"grid": 1, "values": [2**41, 0, 0]}, "prices are whole numbers from 0 to"),
        ([1, 2, 3], "the grid of prices"),
        ({"grid": 1}, "prices.values of a plan is a list"),
    ],
)
def test_prices_in_a_file_are_not_trusted(prices, message):
    value = brimful.plan([2, 3, 7], 10).to_json() | {"prices": prices}
    with pytest.raises(PlanError, match=message):
        _ = PackPlan.from_json(value).lower_bound


# Real data: (histogram, max_length, max_sequences, most packs allowed)

CASES = [
    ("wikipedia_bert_512", 512, None, 8_135_728),
    ("wikipedia_bert_512", 512, 3, 8_143_839),
    ("wikipedia_bert_512", 512, 4, 8_135_742),
    ("wikipedia_bert_512", 512, 2, 10_099_081),
    ("squad_1_1_bert_384", 384, None, 40_195),
    ("squad_1_1_bert_384", 384, 3, 40_195),
    ("squad_1_1_bert_384", 512, None, 29_785),
    ("gsm8k_train_bert", 512, None, 2_311),
    ("moses_zinc_train_smiles_chars", 512, None, 110_986),
    ("moses_zinc_train_smiles_chars", 64, None, 1_244_572),
]


@pytest.mark.parametrize(("name", "max_length", "max_sequences", "most"), CASES)
def test_real_data_within_a_few_packs_of_the_proof(histograms, name, max_length, max_sequences, most):
    histogram = LengthHistogram.from_csv(histograms / f"{name}.csv")
    plan = brimful.plan(histogram, max_length, max_sequences, "optimal")
    assert plan.packs <= most
    assert plan.packs - plan.lower_bound <= 10


def test_a_large_max_length_is_planned_on_grids_within_the_target():
    lengths = np.clip(np.random.default_rng(0).normal(1400, 350, 10**5).astype(int), 1, 4096)
    plan = brimful.plan(lengths, 4096, algorithm="optimal", target_gap=0.002)
    assert plan.gap <= 0.002
    assert brimful.plan(lengths, 4096, algorithm="lpfhp").gap > 0.02


@given(problem=problems(), grid_work=st.sampled_from([1, 20, 300]))
@settings(max_examples=60, deadline=None)
def test_grids_of_any_size_give_plans_that_cover_exactly(problem, grid_work):
    """With hardly any work allowed at once, even small problems go through several grids; PackPlan checks the cover."""
    lengths, max_length = problem
    before = cutting_stock._WORK_AT_ONCE
    cutting_stock._WORK_AT_ONCE = grid_work
    try:
        plan = brimful.plan(lengths, max_length, algorithm="optimal", target_gap=0.0)
    finally:
        cutting_stock._WORK_AT_ONCE = before
    assert plan.packs <= brimful.plan(lengths, max_length, algorithm="lpfhp").packs
    assert plan.lower_bound >= lower_bound(plan.histogram, max_length).packs


# Limits and failures


def test_the_same_input_gives_the_same_plan(histograms):
    histogram = LengthHistogram.from_csv(histograms / "gsm8k_train_bert.csv")
    assert brimful.plan(histogram, 512, 4, "optimal") == brimful.plan(histogram, 512, 4, "optimal")


def test_hardly_any_time_still_gives_a_plan_no_worse_than_best_fit(histograms):
    histogram = LengthHistogram.from_csv(histograms / "wikipedia_bert_512.csv")
    plan = brimful.plan(histogram, 512, 3, "optimal", time_limit=1e-9)
    assert plan.packs <= 9_090_154
    assert plan.lower_bound >= 8_135_727


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", True])
def test_a_time_limit_is_a_number_of_seconds_above_zero(bad):
    with pytest.raises(SettingError, match="time_limit is a number of seconds above 0"):
        brimful.plan([1], 2, algorithm="optimal", time_limit=bad)


@pytest.mark.parametrize("bad", [-0.1, float("nan"), "1", True])
def test_a_target_gap_is_a_fraction_from_zero(bad):
    with pytest.raises(SettingError, match="target_gap is a fraction from 0 up"):
        brimful.plan([1], 2, target_gap=bad)


def test_a_solver_that_fails_leaves_the_plan_of_best_fit_and_says_so(monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("the linear programme ended as Unknown")

    monkeypatch.setattr(column_generation.PatternProgramme, "_optimize", fail)
    lengths = [6, 5, 5, 4, 4, 3, 3] * 10
    with caplog.at_level(logging.WARNING, "brimful"):
        plan = brimful.plan(lengths, 11, algorithm="optimal")
    assert plan.patterns == brimful.plan(lengths, 11, algorithm="lpfhp").patterns
    assert "column generation stopped: the linear programme ended as Unknown" in caplog.text


def test_counts_beyond_the_whole_numbers_of_floating_point_stay_exact():
    histogram = LengthHistogram(np.array([3, 4, 5]), np.array([2**53 + 1, 2**54 + 3, 2**53 + 5]))
    plan = brimful.plan(histogram, 12, algorithm="optimal")
    assert plan.histogram == histogram
    assert plan.gap < 1e-6


# auto


def test_auto_stays_with_best_fit_where_that_is_good_enough_and_says_why(histograms):
    histogram = LengthHistogram.from_csv(histograms / "wikipedia_bert_512.csv")
    plan = brimful.plan(histogram, 512)
    assert (plan.algorithm, plan.packs) == ("lpfhp", 8_138_483)
    assert plan.reason == "auto: lpfhp is at most 0.03% above the optimum, within the target of 0.10%"


def test_auto_takes_optimal_where_there_is_more_to_gain_and_says_why(histograms):
    histogram = LengthHistogram.from_csv(histograms / "gsm8k_train_bert.csv")
    plan = brimful.plan(histogram, 512)
    assert (plan.algorithm, plan.packs <= 2311) == ("optimal", True)
    assert plan.reason == "auto: lpfhp was 2.16% above the bound, more than the target of 0.10%"


def test_auto_leaves_long_work_alone_unless_given_time():
    lengths = np.clip(np.random.default_rng(0).normal(1400, 350, 10**5).astype(int), 1, 4096)
    plan = brimful.plan(lengths, 4096)
    assert plan.algorithm == "lpfhp"
    assert "optimal would take long: ask for it by name" in plan.reason


def test_grids_too_fine_for_a_proof_are_left_out(monkeypatch):
    lengths = np.random.default_rng(0).integers(70, 290, 300)
    proven = brimful.plan(lengths, 600, algorithm="optimal", target_gap=0)
    monkeypatch.setattr("brimful.lower_bounds._MOST_STEPS", 2**18)
    left_out = brimful.plan(lengths, 600, algorithm="optimal", target_gap=0)
    assert left_out.packs == brimful.plan(lengths, 600, algorithm="lpfhp").packs > proven.packs
