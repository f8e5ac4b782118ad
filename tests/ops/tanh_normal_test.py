"""The tanh-Normal against its definition in float64: densities, edges, mass, entropy, sampling."""

import numpy as np
import pytest
from scipy import integrate
from scipy import stats
import tensorflow as tf

from seed_acme.ops import normal
from seed_acme.ops import std_functions
from seed_acme.ops import tanh_normal

_TANH = tanh_normal.TanhNormal(1, tf.exp)
_X_EDGE = np.arctanh(np.float64(np.float32(0.999)))
# Includes policies that are almost all edge, and one too narrow to reach any edge.
_POLICIES = [(0.0, 1.0), (0.3, 0.5), (-2.0, 1.5), (3.5, 0.7), (0.0, 3.0), (5.0, 0.5), (-0.5, 0.05)]
_GRID = (np.arange(8192) + 0.5) / 8192


def _params(mean, std, num_rows=1):
  return np.tile(np.float32([mean, np.log(std)]), (num_rows, 1))


def _log_prob(action, mean, std):
  """Returns the definition in float64, elementwise, for an action rounded to float32."""
  action = np.asarray(action, np.float32).astype(np.float64)
  edge = np.float64(np.float32(0.999))
  inner = np.clip(action, -edge, edge)
  inside = stats.norm.logpdf(np.arctanh(inner), mean, std) - np.log1p(-(inner**2))
  right = stats.norm.logsf(_X_EDGE, mean, std) - np.log(0.001)
  left = stats.norm.logcdf(-_X_EDGE, mean, std) - np.log(0.001)
  return np.where(action >= edge, right, np.where(action <= -edge, left, inside))


@pytest.mark.parametrize('mean, std', _POLICIES)
def test_log_prob_is_its_definition_inside_and_at_the_edges(mean, std):
  actions = np.float32([-1, -0.9995, -0.999, -0.9989, -0.7, 0, 0.2, 0.95, 0.9989, 0.999, 1])
  log_probs = _TANH.log_prob(_params(mean, std, 11), actions[:, None])
  # A float32 mean of 3.5 and an atanh of 3.8 leave 1e-6 in x, which std and z magnify.
  np.testing.assert_allclose(log_probs, _log_prob(actions, mean, std), rtol=2e-5, atol=2e-4)


def test_log_prob_sums_over_actions_and_leading_axes_are_free():
  distribution = tanh_normal.TanhNormal(2, tf.exp)
  means, stds, actions = np.float32([0.3, -2]), np.float32([0.5, 1.5]), np.float32([0.4, -1])
  params = np.tile(np.concatenate([means, np.log(stds)]), (2, 3, 1))
  log_probs = distribution.log_prob(params, np.tile(actions, (2, 3, 1)))
  np.testing.assert_allclose(
    log_probs, np.full((2, 3), _log_prob(actions, means, stds).sum()), rtol=1e-5
  )


@pytest.mark.parametrize('mean, std', _POLICIES)
def test_the_density_and_its_edges_have_mass_1(mean, std):
  actions = np.tanh(np.linspace(-1, 1, 20_001) * _X_EDGE).astype(np.float32)
  actions = actions[np.abs(actions) < np.float32(0.999)]
  params = _params(mean, std, len(actions))
  densities = np.exp(_TANH.log_prob(params, actions[:, None]).numpy().astype(np.float64))
  inside = np.trapz(densities, actions.astype(np.float64))
  edges = np.exp(_TANH.log_prob(params[:2], [[-1.0], [1.0]])).sum() * 0.001
  assert inside + edges == pytest.approx(1, abs=2e-4)
  assert edges == pytest.approx(
    stats.norm.sf(_X_EDGE, mean, std) + stats.norm.cdf(-_X_EDGE, mean, std), abs=1e-5
  )


@pytest.mark.slow
@pytest.mark.parametrize('action', [-1.0, -0.99, 0.3, 0.998, 0.999, 1.0])
@pytest.mark.parametrize('mean, std', _POLICIES)
def test_gradients_in_params_are_those_of_the_definition(action, mean, std):
  params = tf.constant(_params(mean, std))
  actions = tf.constant([[action]])
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([params, actions])
    log_prob = _TANH.log_prob(params, actions)
  small = 1e-6
  expected = [
    (_log_prob(action, mean + small, std) - _log_prob(action, mean - small, std)) / (2 * small),
    (_log_prob(action, mean, std * np.exp(small)) - _log_prob(action, mean, std * np.exp(-small)))
    / (2 * small),
  ]
  np.testing.assert_allclose(tape.gradient(log_prob, params)[0], expected, rtol=2e-4, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize('action', [-1.0, -0.9995, -0.999, -0.99, 0.3, 0.998, 0.999, 0.9995, 1.0])
@pytest.mark.parametrize('mean, std', _POLICIES)
def test_the_gradient_in_the_action_is_that_of_the_density_and_goes_on_in_the_edges(
  action, mean, std
):
  params, actions = tf.constant(_params(mean, std)), tf.constant([[action]])
  with tf.GradientTape() as tape:
    tape.watch(actions)
    log_prob = _TANH.log_prob(params, actions)
  inner = np.clip(np.float64(action), -np.float32(0.999), np.float32(0.999))
  small = 1e-8

  def inside(action):
    return stats.norm.logpdf(np.arctanh(action), mean, std) - np.log1p(-(action**2))

  expected = (inside(inner + small) - inside(inner - small)) / (2 * small)
  np.testing.assert_allclose(tape.gradient(log_prob, actions), [[expected]], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
  'std',
  [
    std_functions.softplus(std_at_zero=0.5, min_std=0.0),
    std_functions.softplus(std_at_zero=0.5, min_std=1e-3),
    std_functions.safe_exp(std_at_zero=0.5, min_std=0.0),
  ],
)
def test_every_action_and_all_finite_params_give_finite_numbers_and_gradients(std):
  distribution = tanh_normal.TanhNormal(1, std)
  sizes = [0.0, 1.0, 4.0, 20.0, 1e3, 1e8, 3e38]
  values = np.float32(sorted({*sizes, *(-x for x in sizes)}))
  actions = np.float32([-1, -0.9995, -0.999, -0.9, 0, 0.5, 0.99899, 0.999, 0.9999999, 1])
  grid = np.stack(np.meshgrid(values, values, actions), axis=-1).reshape(-1, 3)
  params, actions = tf.constant(grid[:, :2]), tf.constant(grid[:, 2:])
  with tf.GradientTape(persistent=True) as tape:
    tape.watch([params, actions])
    numbers = [
      distribution.log_prob(params, actions),
      distribution.entropy(params),
      distribution.sample(params, 0.5 + 0.5 * actions),
      distribution.sample_with_log_prob(params, 0.5 + 0.5 * actions)[1],
    ]
  for number in numbers:
    assert np.isfinite(number).all()
    assert np.isfinite(tape.gradient(number, params)).all()
  assert np.isfinite(tape.gradient(numbers[0], actions)).all()
  assert (np.abs(numbers[2]) <= 1).all()


def test_a_far_mean_is_pulled_back_by_the_gradient():
  params = tf.constant([[-1e8, 0.0], [-50.0, 0.0], [50.0, 0.0], [1e8, 0.0]])
  with tf.GradientTape() as tape:
    tape.watch(params)
    log_prob = _TANH.log_prob(params, [[0.5], [1.0], [-1.0], [0.5]])
  slopes = tape.gradient(log_prob, params)[:, 0].numpy()
  assert (slopes * [1, 1, -1, -1] > 1).all()


@pytest.mark.parametrize('mean, std', [(0.0, 1.0), (0.3, 0.5), (-1.0, 0.8), (2.0, 0.1)])
def test_entropy_is_the_integral_over_the_actions(mean, std):
  """Computes -integral p log p over a, independently of the op's formula."""

  def integrand(action):
    log_p = stats.norm.logpdf(np.arctanh(action), mean, std) - np.log1p(-(action**2))
    return -np.exp(log_p) * log_p

  low, high = np.tanh(mean - 7 * std), np.tanh(mean + 7 * std)
  expected = integrate.quad(
    integrand,
    max(low, -1 + 1e-12),
    min(high, 1 - 1e-12),
    limit=1000,
    epsabs=1e-7,
    points=[np.tanh(mean)],
  )[0]
  assert float(_TANH.entropy(_params(mean, std))[0]) == pytest.approx(expected, abs=1e-4)


# The error bounds that tanh_normal.py states, plus rounding.
@pytest.mark.slow
@pytest.mark.parametrize(
  'std, bound', [(1e-3, 2e-6), (0.03, 2e-6), (0.3, 2e-6), (1.0, 2e-6), (2.0, 1.8e-4), (3.0, 2.8e-3)]
)
def test_the_quadrature_is_as_good_as_is_said(std, bound):
  means = np.linspace(-3, 3, 13)
  exact = [_entropy(mean, std) for mean in means]
  entropies = _TANH.entropy(np.concatenate([_params(mean, std) for mean in means])).numpy()
  assert np.abs(entropies - exact).max() < bound
  if std == 3:
    assert np.abs(entropies - exact).max() > 1e-3  # otherwise the documented bound is out of date


def _entropy(mean, std):
  """Returns H of tanh(x) by adaptive integration, split at the kink at x = 0."""
  std = np.float64(np.exp(np.float32(np.log(std))))

  def integrand(z):
    x = np.abs(mean + std * z)
    return stats.norm.pdf(z) * 2 * (np.log(2) - x - np.log1p(np.exp(-2 * x)))

  kink = [-mean / std] if abs(mean / std) < 11 else None
  expectation = integrate.quad(integrand, -11, 11, points=kink, limit=400, epsabs=1e-9)[0]
  return stats.norm.entropy(mean, std) + expectation


@pytest.mark.parametrize('mean, std', [(0.0, 1.0), (1.0, 0.5), (-3.0, 0.2), (0.5, 1.5)])
def test_the_gradient_of_the_entropy_is_that_of_the_integral(mean, std):
  params = tf.constant(_params(mean, std))
  with tf.GradientTape() as tape:
    tape.watch(params)
    entropy = _TANH.entropy(params)
  d_mean = (_entropy(mean + 1e-3, std) - _entropy(mean - 1e-3, std)) / 2e-3
  d_log_std = (_entropy(mean, std * 1.001) - _entropy(mean, std / 1.001)) / (2 * np.log(1.001))
  np.testing.assert_allclose(tape.gradient(entropy, params)[0], [d_mean, d_log_std], atol=1e-3)


@pytest.mark.parametrize('p, q', [((0.3, 0.5), (0.0, 1.0)), ((-2.0, 1.0), (1.0, 1.5))])
def test_kl_is_the_integral_over_the_actions(p, q):
  def integrand(action):
    x = np.arctanh(action)
    log_p, log_q = stats.norm.logpdf(x, *p), stats.norm.logpdf(x, *q)
    return np.exp(log_p) / (1 - action**2) * (log_p - log_q)

  expected = integrate.quad(
    integrand, -1 + 1e-12, 1 - 1e-12, limit=2000, epsabs=1e-7, points=[np.tanh(p[0])]
  )[0]
  kl = _TANH.kl(_params(*p), _params(*q))
  assert float(kl[0]) == pytest.approx(expected, rel=1e-3)
  unbounded = normal.DiagonalNormal(1, tf.exp)
  np.testing.assert_array_equal(kl, unbounded.kl(_params(*p), _params(*q)))


@pytest.mark.parametrize('mean, std', _POLICIES)
def test_samples_over_a_grid_have_the_distribution(mean, std):
  params = _params(mean, std, len(_GRID))
  actions = _TANH.sample(params, _GRID[:, None].astype(np.float32)).numpy()[:, 0]
  np.testing.assert_allclose(actions, np.tanh(stats.norm.ppf(_GRID, mean, std)), atol=2e-5)
  for threshold in (-0.99, -0.5, 0.0, 0.7, 0.999):
    expected = stats.norm.cdf(np.arctanh(threshold), mean, std)
    assert (actions <= threshold).mean() == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(
  'p, q', [((0.0, 1.0), (0.3, 0.9)), ((0.0, 3.0), (0.5, 2.5)), ((3.0, 1.0), (2.5, 0.9))]
)
def test_importance_weights_of_samples_have_mean_1(p, q):
  """Checks that sampling and densities are consistent, edges included."""
  actions = _TANH.sample(_params(*p, len(_GRID)), _GRID[:, None].astype(np.float32))
  log_ratios = _TANH.log_prob(_params(*q, len(_GRID)), actions) - _TANH.log_prob(
    _params(*p, len(_GRID)), actions
  )
  assert np.exp(log_ratios).mean() == pytest.approx(1, abs=2e-3)


def test_samples_have_a_pathwise_gradient_and_the_mode_is_tanh_of_the_mean():
  params, uniform = tf.constant(_params(0.4, 0.5)), 0.8
  with tf.GradientTape() as tape:
    tape.watch(params)
    action = _TANH.sample(params, [[uniform]])
  slope = 1 - float(action[0, 0]) ** 2
  expected = [slope, slope * 0.5 * stats.norm.ppf(uniform)]
  np.testing.assert_allclose(tape.gradient(action, params)[0], expected, rtol=1e-4)
  np.testing.assert_allclose(_TANH.mode(params), [[np.tanh(0.4)]], rtol=1e-6)
  assert _TANH.is_reparametrizable


def test_sizes_and_wrong_shapes():
  distribution = tanh_normal.TanhNormal(2, tf.exp)
  assert (distribution.num_params, distribution.num_uniforms) == (4, 2)
  np.testing.assert_array_equal(distribution.is_std, [False, False, True, True])
  with pytest.raises(ValueError, match=r'actions have shape .5, 1.*need .5, 2.'):
    distribution.log_prob(np.zeros((5, 4)), np.zeros((5, 1)))
  with pytest.raises(ValueError, match=r'params have shape .5, 2.'):
    distribution.entropy(np.zeros((5, 2)))
