"""Intervals compared with SciPy's."""

import numpy as np
import pytest
from scipy import stats

from seed_acme.programs.pictures import confidence_intervals


@pytest.mark.parametrize('degrees', [*range(1, 41), 99, 1_000])
def test_quantiles_of_student_t(degrees):
  expected = stats.t.ppf(0.975, degrees)
  assert confidence_intervals.t_quantile(degrees) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize('count', [2, 3, 5, 30])
def test_interval_of_the_mean_of_each_column(count):
  values = np.random.default_rng(count).normal(3.0, 2.0, [count, 4])
  found = confidence_intervals.of_mean(values)
  low, high = stats.t.interval(
    0.95, count - 1, loc=values.mean(axis=0), scale=stats.sem(values, axis=0)
  )
  np.testing.assert_allclose(found.mean, values.mean(axis=0))
  np.testing.assert_allclose(found.low, low)
  np.testing.assert_allclose(found.high, high)


def test_one_value_has_a_mean_without_interval_and_none_has_nothing():
  one = confidence_intervals.of_mean(np.array([2.5]))
  assert one.mean == 2.5 and np.isnan(one.low) and np.isnan(one.high)
  assert np.isnan(confidence_intervals.of_mean(np.array([]))).all()


def test_the_interval_holds_the_true_mean_95_times_in_100():
  draws = np.random.default_rng(1).normal(7.0, 3.0, [4, 20_000])
  found = confidence_intervals.of_mean(draws)
  assert np.mean((found.low < 7.0) & (found.high > 7.0)) == pytest.approx(0.95, abs=0.006)
