"""What seeds say: Student's intervals, and results in the order of the jobs."""

import math
import operator

import numpy as np
import pytest
import scipy.stats

from brimful.errors import SettingError
from experiments.seeds import difference, estimate, run_all


@pytest.mark.parametrize("number", range(2, 12))
def test_interval_is_students(number):
    values = np.random.default_rng(number).normal(size=number).tolist()
    low, high = scipy.stats.t.interval(0.95, number - 1, loc=np.mean(values), scale=scipy.stats.sem(values))
    found = estimate(values)
    assert found.mean == pytest.approx((low + high) / 2)
    assert found.half_width == pytest.approx((high - low) / 2, rel=2e-4)
    assert found.deviation == pytest.approx(np.std(values, ddof=1))


def test_interval_holds_no_difference_in_95_of_100_samples():
    rng = np.random.default_rng(0)
    inside = [estimate(rng.normal(size=4).tolist()).verdict == "within seed noise" for _ in range(2000)]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.02)


def test_difference_is_taken_seed_by_seed():
    found = difference([10.0, 20.0, 30.5], [9.0, 19.0, 29.0])
    assert found.mean == pytest.approx(3.5 / 3)
    assert found.verdict == "beyond seed noise"
    with pytest.raises(ValueError, match="shorter"):
        difference([1.0, 2.0], [1.0])


def test_one_seed_says_nothing_sure_and_too_many_are_refused():
    assert estimate([1.0]).half_width == math.inf
    assert estimate([1.0]).verdict == "within seed noise"
    for values in ([], [0.0] * 12):
        with pytest.raises(SettingError, match="1 to 11 seeds, not"):
            estimate(values)


def test_results_come_in_the_order_of_the_jobs(capfd):
    assert run_all(operator.neg, [3, 1, 2]) == [-3, -1, -2]
    assert capfd.readouterr().err.startswith("...")
