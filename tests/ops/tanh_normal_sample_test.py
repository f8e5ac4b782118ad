"""Samples of the tanh-Normal and log-probabilities from before the tanh, against float64."""

import numpy as np
import pytest
from scipy import stats
import tensorflow as tf

from seed_acme.ops import std_functions
from seed_acme.ops import tanh_normal

_TANH = tanh_normal.TanhNormal(1, tf.exp)
# Includes means of the largest allowed size, and policies almost entirely beyond the edges.
_POLICIES = [
  (0.0, 1.0),
  (0.3, 0.5),
  (-2.0, 1.5),
  (3.5, 0.7),
  (5.0, 0.5),
  (-0.5, 0.05),
  (1e6, 1.0),
  (-1e6, 1e-5),
  (0.0, 1e5),
  (30.0, 30.0),
]
_GRID = (np.arange(8192) + 0.5) / 8192


def _params(mean, std, num_rows=1):
  return np.tile(np.float32([mean, np.log(std)]), (num_rows, 1))


def _sample_with_log_prob(uniforms, mean, log_std):
  """Returns x, and log N(x) - log tanh'(x), elementwise: the definition in float64."""
  x = mean + np.exp(log_std) * stats.norm.ppf(uniforms)
  log_slope = 2 * (np.log(2) - np.abs(x) - np.log1p(np.exp(-2 * np.abs(x))))
  return x, stats.norm.logpdf(stats.norm.ppf(uniforms)) - log_std - log_slope


@pytest.mark.parametrize('mean, std', _POLICIES)
def test_a_sample_comes_with_its_log_probability_and_the_whole_gradient(mean, std):
  uniforms = np.float32([1e-4, 0.1, 0.4999, 0.75, 0.999])
  params = tf.constant(_params(mean, std, 5))
  with tf.GradientTape() as tape:
    tape.watch(params)
    actions, log_prob = _TANH.sample_with_log_prob(params, uniforms[:, None])
  np.testing.assert_array_equal(actions, _TANH.sample(params, uniforms[:, None]))
  log_std = np.float64(np.float32(np.log(std)))
  x, expected = _sample_with_log_prob(uniforms.astype(np.float64), mean, log_std)
  np.testing.assert_allclose(log_prob, expected, rtol=1e-5, atol=1e-5)
  # d log p / dx = 2 tanh(x), because N(x) at x = mean + std z depends on std alone.
  spread = np.exp(log_std) * stats.norm.ppf(uniforms.astype(np.float64))
  slopes = np.stack([2 * np.tanh(x), 2 * np.tanh(x) * spread - 1], axis=-1)
  np.testing.assert_allclose(tape.gradient(log_prob, params), slopes, rtol=2e-4, atol=2e-4)


def test_its_gradient_is_the_numerical_difference():
  uniforms, mean, log_std, small = np.float64([0.05, 0.3, 0.8]), 0.7, -0.4, 1e-6
  params = tf.constant(np.tile(np.float32([mean, log_std]), (3, 1)))
  with tf.GradientTape() as tape:
    tape.watch(params)
    log_prob = _TANH.sample_with_log_prob(params, uniforms[:, None])[1]
  expected = [
    (
      _sample_with_log_prob(uniforms, mean + d_mean, log_std + d_std)[1]
      - _sample_with_log_prob(uniforms, mean - d_mean, log_std - d_std)[1]
    )
    / (2 * small)
    for d_mean, d_std in ((small, 0), (0, small))
  ]
  np.testing.assert_allclose(
    tape.gradient(log_prob, params), np.transpose(expected), rtol=1e-4, atol=1e-4
  )


def test_minus_its_mean_is_the_entropy():
  for mean, std in ((0.0, 1.0), (-2.0, 1.5), (5.0, 0.5)):
    params = _params(mean, std, len(_GRID))
    log_probs = _TANH.sample_with_log_prob(params, _GRID[:, None].astype(np.float32))[1]
    assert -np.mean(log_probs) == pytest.approx(float(_TANH.entropy(params[:1])[0]), abs=3e-3)


def test_away_from_the_edges_it_is_log_prob():
  params = np.random.default_rng(0).normal(0, 0.5, (50, 2)).astype(np.float32)
  actions, log_prob = _TANH.sample_with_log_prob(
    params, np.random.default_rng(1).random((50, 1), np.float32)
  )
  np.testing.assert_allclose(log_prob, _TANH.log_prob(params, actions), rtol=1e-3, atol=1e-3)
  assert np.abs(actions).max() < 0.999


def test_compiled_by_xla_it_is_the_same_with_its_gradients():
  distribution = tanh_normal.TanhNormal(3, std_functions.safe_exp(std_at_zero=0.5, min_std=0.0))
  random = np.random.default_rng(0)
  params = tf.constant(random.normal(0, 3, (64, 6)).astype(np.float32))
  uniforms = tf.constant(random.random((64, 3), np.float32))

  def numbers(params, uniforms):
    with tf.GradientTape() as tape:
      tape.watch(params)
      actions, log_prob = distribution.sample_with_log_prob(params, uniforms)
    return actions, log_prob, tape.gradient(log_prob, params)

  compiled = tf.function(numbers, jit_compile=True, autograph=False)(params, uniforms)
  for result, expected in zip(compiled, numbers(params, uniforms)):
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
