"""Normal actions and their clipped form against scipy."""

import numpy as np
import pytest
from scipy import integrate
from scipy import special
from scipy import stats
import tensorflow as tf

from seed_acme.ops import normal
from seed_acme.ops import std_functions

_NORMAL = normal.DiagonalNormal(3, tf.exp)
_CLIPPED = normal.ClippedNormal(3, tf.exp)
_BOTH = pytest.mark.parametrize('distribution', [_NORMAL, _CLIPPED])


def _params(num_rows=7, seed=0):
  """Returns means, then log standard deviations; also both as float64 arrays `[rows, 3]`."""
  params = np.random.default_rng(seed).normal(size=(num_rows, 6)).astype(np.float32)
  return params, params[:, :3].astype(np.float64), np.exp(params[:, 3:].astype(np.float64))


@_BOTH
def test_log_prob_is_the_density_before_clipping(distribution):
  params, mean, std = _params()
  actions = np.random.default_rng(1).uniform(-1, 1, (7, 3)).astype(np.float32)
  actions[0] = [-1, 1, 1]
  np.testing.assert_allclose(
    distribution.log_prob(params, actions), stats.norm.logpdf(actions, mean, std).sum(-1), rtol=1e-5
  )


@pytest.mark.slow
@_BOTH
def test_entropy_and_kl_are_those_of_the_normal(distribution):
  params, mean, std = _params()
  other, other_mean, other_std = _params(seed=1)
  np.testing.assert_allclose(
    distribution.entropy(params), stats.norm.entropy(mean, std).sum(-1), rtol=1e-5
  )
  kls = [
    sum(_integrated_kl(*numbers) for numbers in zip(*row))
    for row in zip(mean, std, other_mean, other_std)
  ]
  np.testing.assert_allclose(distribution.kl(params, other), kls, rtol=1e-5)
  np.testing.assert_array_equal(distribution.kl(params, params), np.zeros(7))


def _integrated_kl(mean, std, other_mean, other_std):
  p, q = stats.norm(mean, std), stats.norm(other_mean, other_std)
  return integrate.quad(
    lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), mean - 10 * std, mean + 10 * std
  )[0]


def test_the_kl_of_nearly_equal_policies_does_not_round_away():
  """To second order KL = std_change^2 + mean_change^2 / 2, far below float32's 1e-7 of r^2."""
  params = np.zeros((1, 6), np.float32)
  mean_moved, std_moved = params.copy(), params.copy()
  mean_moved[0, 0], std_moved[0, 3] = 1e-5, 1e-4
  assert float(_NORMAL.kl(params, mean_moved)[0]) == pytest.approx(5e-11, rel=1e-4)
  assert float(_NORMAL.kl(params, std_moved)[0]) == pytest.approx(1e-8, rel=0.01)


def test_sampling_inverts_the_distribution_function():
  params, mean, std = _params()
  uniforms = np.random.default_rng(2).random((7, 3), np.float32)
  expected = stats.norm.ppf(uniforms, mean, std)
  np.testing.assert_allclose(_NORMAL.sample(params, uniforms), expected, rtol=1e-4, atol=1e-5)
  clipped = _CLIPPED.sample(params, uniforms)
  np.testing.assert_allclose(clipped, np.clip(expected, -1, 1), rtol=1e-4, atol=1e-5)
  assert set(np.float32([-1, 1])) <= set(clipped.numpy().ravel())


def test_a_sample_comes_with_its_log_probability():
  params, mean, std = _params()
  uniforms = np.random.default_rng(2).random((7, 3), np.float32)
  for distribution in (_NORMAL, _CLIPPED):
    actions, log_prob = distribution.sample_with_log_prob(params, uniforms)
    np.testing.assert_array_equal(actions, distribution.sample(params, uniforms))
    np.testing.assert_allclose(log_prob, stats.norm.logpdf(actions, mean, std).sum(-1), rtol=1e-4)
    assert distribution.is_reparametrizable
  assert (np.abs(actions) == 1).any()


@_BOTH
def test_its_gradient_is_the_whole_one_through_the_action(distribution):
  params, mean, std = _params()
  uniforms = np.random.default_rng(2).random((7, 3), np.float32)
  z = stats.norm.ppf(uniforms)
  variable = tf.constant(params)
  with tf.GradientTape() as tape:
    tape.watch(variable)
    log_prob = distribution.sample_with_log_prob(variable, uniforms)[1]
  gradient = tape.gradient(log_prob, variable)

  def exact(mean, log_std):
    actions = mean + np.exp(log_std) * z
    if distribution is _CLIPPED:
      actions = np.clip(actions, -1, 1)
    return stats.norm.logpdf(actions, mean, np.exp(log_std))

  small = 1e-6
  d_mean = (exact(mean + small, np.log(std)) - exact(mean - small, np.log(std))) / (2 * small)
  d_std = (exact(mean, np.log(std) + small) - exact(mean, np.log(std) - small)) / (2 * small)
  np.testing.assert_allclose(gradient, np.concatenate([d_mean, d_std], -1), rtol=1e-4, atol=1e-5)


def test_the_log_probability_of_a_sample_is_not_lost_to_rounding():
  """At mean 1e6 the spacing of float32 is 0.06, or sixty standard deviations."""
  params = np.float32([[1e6, np.log(1e-3)]])
  log_prob = normal.DiagonalNormal(1, tf.exp).sample_with_log_prob(params, [[0.9]])[1]
  np.testing.assert_allclose(
    log_prob, [stats.norm.logpdf(stats.norm.ppf(0.9)) + np.log(1e3)], rtol=1e-5
  )


def test_moments_over_a_grid_of_uniforms():
  grid = (np.arange(4096, dtype=np.float32) + 0.5) / 4096
  params = np.float32([[0.5, -1, 2, 0, -1, 0.5]])
  samples = _NORMAL.sample(np.tile(params, (4096, 1)), np.repeat(grid[:, None], 3, 1)).numpy()
  np.testing.assert_allclose(samples.mean(0), params[0, :3], atol=1e-4)
  np.testing.assert_allclose(samples.std(0), np.exp(params[0, 3:]), rtol=1e-3)


def test_mode_is_the_mean_and_clipped_where_samples_are():
  params, mean, _ = _params()
  np.testing.assert_allclose(_NORMAL.mode(params), mean)
  np.testing.assert_allclose(_CLIPPED.mode(params), np.clip(mean, -1, 1))
  assert np.abs(mean).max() > 1


@pytest.mark.parametrize('uniform, quantile', [(0.0, -5.2947), (1.0, 5.2947)])
def test_uniforms_0_and_1_give_finite_actions(uniform, quantile):
  actions = _NORMAL.sample(np.zeros((1, 6)), np.full((1, 3), uniform))
  np.testing.assert_allclose(actions, np.full((1, 3), quantile), rtol=1e-4)


def test_log_cdf_against_scipy_with_its_gradient():
  z = tf.constant(
    np.concatenate([np.linspace(-40, 9, 4001), -np.geomspace(40, 1e12, 50)]).astype(np.float32)
  )
  exact_z = z.numpy().astype(np.float64)
  with tf.GradientTape() as tape:
    tape.watch(z)
    values = normal.log_cdf(z)
  log_cdf = special.log_ndtr(exact_z)
  np.testing.assert_allclose(values, log_cdf, rtol=5e-7, atol=1e-7)
  # pdf / cdf; the scaled function keeps the quotient finite on the left.
  left, right = np.minimum(exact_z, 0), np.maximum(exact_z, 0)
  slopes = np.where(
    exact_z < 0,
    np.sqrt(2 / np.pi) / special.erfcx(-left / np.sqrt(2)),
    stats.norm.pdf(right) / stats.norm.cdf(right),
  )
  np.testing.assert_allclose(tape.gradient(values, z), slopes, rtol=2e-5, atol=1e-12)


@_BOTH
@pytest.mark.parametrize(
  'std',
  [
    std_functions.softplus(std_at_zero=0.5, min_std=0.0),
    std_functions.safe_exp(std_at_zero=0.5, min_std=0.0),
  ],
)
def test_extreme_params_stay_finite_with_their_gradients(distribution, std):
  distribution = type(distribution)(1, std)
  extremes = [-3e38, -1e4, 0.0, 1e4, 3e38]
  params = tf.constant([[mean, s] for mean in extremes for s in extremes])
  other = tf.reverse(params, [0])
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([params, other])
    numbers = [
      distribution.log_prob(params, tf.ones([25, 1])),
      distribution.entropy(params),
      distribution.kl(params, other),
      distribution.sample(params, tf.fill([25, 1], 0.9)),
      distribution.sample_with_log_prob(params, tf.fill([25, 1], 0.9))[1],
    ]
  for number in numbers:
    assert np.isfinite(number).all()
    for x in (params, other):
      gradient = tape.gradient(number, x)
      assert gradient is None or np.isfinite(gradient).all()


def test_beyond_the_bounds_of_std_the_gradient_goes_on():
  distribution = normal.DiagonalNormal(1, tf.identity)
  params = tf.constant([[0.0, 1e8], [0.0, -1.0]])
  with tf.GradientTape() as tape:
    tape.watch(params)
    entropy = distribution.entropy(params)
  np.testing.assert_allclose(entropy, stats.norm.entropy(0, [1e6, 1e-6]), rtol=1e-5)
  np.testing.assert_allclose(tape.gradient(entropy, params)[:, 1], [1e-6, 1e6], rtol=1e-5)


def test_sizes_and_wrong_shapes():
  assert (_NORMAL.num_params, _NORMAL.num_uniforms) == (6, 3)
  np.testing.assert_array_equal(_NORMAL.is_std, [False] * 3 + [True] * 3)
  params = _params()[0]
  with pytest.raises(ValueError, match=r'actions have shape .7, 1.*need .7, 3.'):
    _NORMAL.log_prob(params, np.zeros((7, 1)))
  with pytest.raises(ValueError, match='uniforms have shape'):
    _NORMAL.sample(params, np.zeros(7))
  with pytest.raises(ValueError, match='params have shape'):
    _NORMAL.entropy(params[:, :4])
  with pytest.raises(ValueError, match='other_params have'):
    _NORMAL.kl(params, params[:1])
  with pytest.raises(ValueError, match='num_actions'):
    normal.DiagonalNormal(0, tf.exp)
