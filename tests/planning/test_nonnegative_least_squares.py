"""Non-negative least squares: exact cover, the optimum of the twin that lists all patterns, and published figures."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brimful import LengthHistogram
from brimful.errors import CapacityError, SettingError
from brimful.planning import residual_weights as tuning
from brimful.planning.active_set import fit_full_patterns
from brimful.planning.full_patterns import FullPatterns
from brimful.planning.nonnegative_least_squares import PUBLISHED_DEPTH, ennlshp, nnlshp, residual_weights
from brimful.planning.problem import PackingProblem
from brimful.planning.residual_weights import tune_residual_weights
from brimful.plans import PackPlan
from tests.planning.strategies import LIMITS, problems
from tests.reference import nonnegative_least_squares as twin

both = pytest.mark.parametrize("algorithm", [nnlshp, ennlshp])


def planned(algorithm, histogram, max_length, max_sequences=None, **settings):
    """A PackPlan, which proves that the patterns cover the histogram exactly and keep to both limits."""
    solution = algorithm(PackingProblem(histogram, max_length, max_sequences, None), **settings)
    return PackPlan(histogram, max_length, max_sequences, algorithm.__name__, solution.patterns)


def histogram_of(counts):
    lengths = sorted(counts)
    return LengthHistogram(np.array(lengths, np.int64), np.array([counts[at] for at in lengths], np.int64))


@st.composite
def small(draw):
    """(max_length, max_sequences, demand of each length): few enough patterns to list them all."""
    max_length = draw(st.integers(1, 14))
    max_sequences = draw(st.integers(1, 4))
    counts = st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 10**6))
    demand = draw(st.lists(counts, min_size=max_length, max_size=max_length))
    return max_length, max_sequences, np.array(demand, np.float64)


@both
@pytest.mark.parametrize("max_sequences", LIMITS)
@settings(max_examples=15)
@given(problem=problems(max_size=40).filter(lambda problem: problem[1] <= 100))
def test_a_plan_covers_its_histogram_exactly_and_keeps_to_the_limits(algorithm, max_sequences, problem):
    lengths, max_length = problem
    plan = planned(algorithm, LengthHistogram.from_lengths(lengths), max_length, max_sequences)
    assert plan.patterns.sequences().max(initial=0) <= (max_sequences or PUBLISHED_DEPTH)


@settings(max_examples=80)
@given(small(), st.integers(-3, 3))
def test_no_listed_pattern_is_worth_more_than_the_best_of_the_knapsack(problem, scale):
    max_length, max_sequences, demand = problem
    values = (demand - demand.mean()) * 10.0**scale
    patterns = twin.full_patterns(max_length, max_sequences)
    full = FullPatterns(max_length, max_sequences)
    worth = full.solve(values)
    for length in range(1, max_length + 1):
        all_worth = [sum(values[at - 1] for at in pattern) for pattern in patterns if length in pattern]
        best = max(all_worth, default=-math.inf)
        assert math.isclose(worth[length - 1], best, rel_tol=1e-9, abs_tol=1e-9 * 10**scale)
    places = np.flatnonzero(worth > -np.inf)
    copies = full.trace(places)
    assert (copies[np.arange(len(places)), places] >= 1).all()
    assert (copies @ np.arange(1, max_length + 1) == max_length).all()
    assert (copies.sum(axis=1) <= max_sequences).all()
    np.testing.assert_allclose(copies @ values, worth[places], rtol=1e-9, atol=1e-6 * 10.0**scale)


@settings(max_examples=80)
@given(small(), st.integers(0, 8), st.sampled_from([0.01, 0.09, 0.5, 1.0]))
def test_the_fit_is_that_of_the_twin(problem, offset, weight):
    """The repeats may differ, since patterns outnumber lengths; what they hold together is unique."""
    max_length, max_sequences, demand = problem
    weights = residual_weights(max_length, offset, weight)
    matrix = twin.packing_matrix(twin.full_patterns(max_length, max_sequences), max_length)
    repeats, objective = twin.published(matrix, demand, weights)
    fit = fit_full_patterns(demand, weights, weights, max_sequences, within=1e-3)
    noise = 1e-6 + 1e-12 * float((weights * demand) @ (weights * demand))
    assert objective - noise <= fit.objective <= objective + fit.gap + noise
    assert fit.gap <= noise
    off = weights * (fit.repeats @ fit.copies - matrix @ repeats)
    assert np.linalg.norm(off) <= 2 * math.sqrt(2 * noise) + 1e-3
    assert len(fit.repeats) <= max_length
    assert np.linalg.matrix_rank(fit.copies) == len(fit.repeats)


@settings(max_examples=60)
@given(small(), st.sampled_from([0.05, 0.3, 1.0, 10.0]))
def test_padding_in_closed_form_is_padding_with_variables_of_its_own(problem, padding_cost):
    max_length, max_sequences, demand = problem
    matrix = twin.packing_matrix(twin.full_patterns(max_length, max_sequences), max_length)
    _, objective = twin.extended(matrix, demand, padding_cost)
    lengths = np.arange(1.0, max_length + 1)
    lighter = lengths * padding_cost / math.hypot(1, padding_cost)
    fit = fit_full_patterns(demand, lengths, lighter, max_sequences, within=1e-3)
    noise = 1e-5 + 1e-10 * float((lengths * demand) @ (lengths * demand))
    assert objective - noise <= fit.objective <= objective + fit.gap + noise
    assert fit.gap <= noise


@settings(max_examples=60)
@given(small())
def test_no_more_packs_than_the_twin_but_for_rounding(problem):
    max_length, max_sequences, demand = problem
    counts = {at + 1: int(count) for at, count in enumerate(demand.tolist()) if count}
    matrix = twin.packing_matrix(twin.full_patterns(max_length, max_sequences), max_length)
    repeats, _ = twin.published(matrix, demand, residual_weights(max_length, 8, 0.09))
    published = twin.published_packs(matrix, demand, repeats)
    plan = planned(nnlshp, histogram_of(counts), max_length, max_sequences, leftovers="alone")
    assert plan.packs <= published + max_length * max_sequences


@settings(max_examples=60)
@given(small())
def test_best_fit_of_the_leftovers_never_needs_more_packs(problem):
    max_length, max_sequences, demand = problem
    histogram = histogram_of({at + 1: int(count) for at, count in enumerate(demand.tolist()) if count})
    alone = planned(nnlshp, histogram, max_length, max_sequences, leftovers="alone")
    assert planned(nnlshp, histogram, max_length, max_sequences).packs <= alone.packs


@both
@pytest.mark.parametrize(
    ("counts", "max_length", "packs"),
    [
        ({}, 10, 0),
        ({1: 7}, 1, 7),
        ({10: 5}, 10, 5),
        ({5: 9}, 10, 5),
        ({7: 4, 3: 4}, 10, 4),
        ({7: 4, 3: 3, 2: 1}, 10, 4),
        ({600: 10**6, 400: 10**6}, 1000, 10**6),
    ],
)
def test_plans_with_a_known_optimum(algorithm, counts, max_length, packs):
    assert planned(algorithm, histogram_of(counts), max_length).packs == packs


@both
def test_full_length_sequences_that_are_left_over_have_packs_of_their_own(algorithm):
    """A time limit that has run out at once leaves everything over."""
    histogram = histogram_of({10: 3, 6: 2, 4: 2})
    solution = algorithm(PackingProblem(histogram, 10, 3, None, time_limit=1e-9), leftovers="alone")
    assert dict(solution.patterns) == {(10,): 3, (6,): 2, (4,): 2}
    assert planned(algorithm, histogram, 10, 3).packs == 5


@both
def test_counts_beyond_the_whole_numbers_of_floating_point_are_covered_exactly(algorithm):
    counts = {7: 2**57 + 1, 3: 2**57 + 3, 10: 2**56 + 5, 6: 2**55 - 1, 1: 2**53 + 1}
    plan = planned(algorithm, histogram_of(counts), 10)
    assert plan.packs / plan.lower_bound < 1.001


@both
def test_the_same_input_gives_the_same_plan(algorithm):
    lengths = 1 + np.random.default_rng(0).integers(0, 60, 500)
    histogram = LengthHistogram.from_lengths(lengths)
    assert planned(algorithm, histogram, 60, 3).patterns == planned(algorithm, histogram, 60, 3).patterns


def test_the_alternative_weight_is_nearly_the_published_one_at_512():
    assert residual_weights(512, 8, None)[7] == pytest.approx(0.09, abs=0.002)
    assert (residual_weights(512, 8, None)[8:] == 1).all()
    assert (residual_weights(2, 8, None) == 1).all()


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"offset": -1}, r"^offset is a length .* 0 or more, not -1"),
        ({"weight": 0}, r"^weight is a number from 0\.001 to 1, or None, not 0"),
        ({"weight": math.nan}, r"^weight is a number from 0\.001 to 1, or None, not nan"),
        ({"leftovers": "none"}, r"^leftovers go into packs by .* not 'none'"),
    ],
)
def test_settings_out_of_range(choice, message):
    with pytest.raises(SettingError, match=message):
        planned(nnlshp, histogram_of({3: 1}), 10, **choice)


def test_padding_cost_out_of_range():
    with pytest.raises(SettingError, match=r"^padding_cost is a number from 0\.05 to 10, not 0"):
        planned(ennlshp, histogram_of({3: 1}), 10, padding_cost=0)


def test_tuning_finds_the_best_pair_of_its_table(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stderr", shown := Terminal())
    lengths = 10 + np.random.default_rng(0).integers(0, 30, 2000)
    best = tune_residual_weights(LengthHistogram.from_lengths(lengths), 50, None, [0, 8, 16], [0.03, 0.3])
    assert [(trial.offset, trial.weight) for trial in best.trials] == [
        (0, 0.03), (8, 0.03), (8, 0.3), (16, 0.03), (16, 0.3)
    ]  # fmt: skip
    assert best.plan.packs == min(trial.packs for trial in best.trials)
    again = planned(nnlshp, best.plan.histogram, 50, 3, offset=best.offset, weight=best.weight)
    assert again.patterns == best.plan.patterns
    assert "residual weights" in shown.getvalue()


def test_tuning_refuses_what_it_cannot_do():
    histogram = histogram_of({3: 1})
    with pytest.raises(SettingError, match="at least one offset and one weight"):
        tune_residual_weights(histogram, 10, offsets=[])
    with pytest.raises(SettingError, match="weight is a number from"):
        tune_residual_weights(histogram, 10, offsets=[8], weights=[2.0])
    with pytest.raises(CapacityError):
        tune_residual_weights(histogram, 2)
    assert 8 in tuning.OFFSETS
    assert 0.09 in tuning.WEIGHTS


@pytest.fixture(scope="module")
def wikipedia(histograms):
    return LengthHistogram.from_csv(histograms / "wikipedia_bert_512.csv")


@pytest.fixture(scope="module")
def squad(histograms):
    return LengthHistogram.from_csv(histograms / "squad_1_1_bert_384.csv")


def test_published_efficiency_on_wikipedia(wikipedia):
    """Published: 99.75 %; 8,155,057 packs with SciPy's solver, whose rounding differs by chance by a dozen or so."""
    plan = planned(nnlshp, wikipedia, 512, 3)
    assert plan.packs <= 8_155_057
    assert plan.efficiency >= 0.9975
    as_published = planned(nnlshp, wikipedia, 512, 3, leftovers="alone")
    assert abs(as_published.packs - 8_155_057) <= 30
    assert round(as_published.efficiency, 4) == 0.9975


def test_one_sequence_more_in_a_pack_comes_near_the_optimum_on_wikipedia(wikipedia):
    plan = planned(nnlshp, wikipedia, 512, 4)
    assert plan.packs <= plan.lower_bound * 1.00001


def test_published_efficiency_on_squad(squad):
    """Published: 97.39 % with the usual weights, of which rounding makes some hundredths."""
    assert planned(nnlshp, squad, 384, 3).efficiency >= 0.9739
    assert planned(nnlshp, squad, 384, 3, leftovers="alone").efficiency == pytest.approx(0.9739, abs=2e-4)


def test_tuned_weights_on_squad_reach_the_published_efficiency(squad):
    """Published: 98.767 % after a grid search."""
    best = tune_residual_weights(squad, 384, 3, offsets=[8, 64], weights=[0.03, 0.09])
    assert (best.offset, best.weight) == (64, 0.03)
    assert best.plan.efficiency >= 0.9876


def test_the_extension_needs_no_search_on_squad(squad):
    assert planned(ennlshp, squad, 384, 3).efficiency >= 0.986


def test_the_fit_of_squad_is_that_of_the_twin(squad):
    """At 160 slots the twin has 2,174 patterns; the real ones are many times that."""
    lengths, places = np.unique(np.minimum(squad.lengths, 160), return_inverse=True)
    demand = np.zeros(160)
    np.add.at(demand, lengths[places] - 1, squad.counts)
    weights = residual_weights(160, 8, 0.09)
    matrix = twin.packing_matrix(twin.three_to_a_pack(160), 160)
    _, objective = twin.published(matrix, demand, weights)
    assert fit_full_patterns(demand, weights, weights, 3, within=0.01).objective == pytest.approx(objective, rel=1e-8)
