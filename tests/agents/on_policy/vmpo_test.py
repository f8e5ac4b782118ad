"""V-MPO's weights and temperature: the paper's form and the original's, told apart."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve

_EXAMPLE = [3.0, 1.0, -1.0, -2.0]


def _run(advantages, temperature, config, gradients, mask=None, log_prob=None):
  """Loss, adjustment, gradient of the loss by log_prob, of both by the temperature."""
  advantages = tf.constant(advantages, tf.float32)
  mask = tf.ones(advantages.shape, tf.bool) if mask is None else tf.constant(mask)
  log_prob = tf.zeros(advantages.shape) if log_prob is None else tf.constant(log_prob, tf.float32)
  eta = tf.constant(temperature, tf.float32)
  run = lambda: loss_lib.policy_loss(
    resolve.algorithm(config), algorithm_lib.Played(log_prob, log_prob, advantages, mask, eta)
  )
  loss, [of_log_prob, of_eta] = gradients(lambda: run().loss, [log_prob, eta])
  adjustment, [none, by_eta] = gradients(lambda: run().adjustment, [log_prob, eta])
  assert of_eta is None, 'the policy loss must not move the temperature'
  assert none is None, 'the temperature loss must not move the policy'
  return loss, adjustment, of_log_prob, by_eta


def _config(make_config, form='paper', **fields):
  return make_config(policy_loss='vmpo', vmpo_form=form, vmpo_epsilon=0.01, **fields)


def test_the_example_in_the_form_of_the_paper(make_config, gradients):
  _, adjustment, of_log_prob, by_eta = _run(_EXAMPLE, 1.0, _config(make_config), gradients)
  np.testing.assert_allclose(of_log_prob, [-0.881, -0.119, 0, 0], atol=5e-4)
  np.testing.assert_allclose(adjustment, 0.01 + 2.434, atol=5e-4)
  # At the optimum KL(psi || uniform) is epsilon; here it is 0.328, and the temperature must rise.
  np.testing.assert_allclose(by_eta, 0.01 - 0.328, atol=5e-4)


def test_the_example_in_the_form_of_the_original(make_config, gradients):
  """The worse half counts as exp(0) in the sum, the mean is over the batch, and the temperature is
  controlled by log mean exp instead of the KL."""
  _, adjustment, of_log_prob, by_eta = _run(
    _EXAMPLE, 1.0, _config(make_config, 'original'), gradients
  )
  np.testing.assert_allclose(4 * of_log_prob, [-0.810, -0.110, 0, 0], atol=5e-4)
  np.testing.assert_allclose(adjustment, 0.01 - 2.434, atol=5e-4)
  np.testing.assert_allclose(by_eta, 0.01 - 2.434, atol=5e-4)


def _better_half(advantages):
  """Returns the indices of the better half; assumes no ties."""
  order = sorted(range(len(advantages)), key=lambda i: -advantages[i])
  return order[: max(1, len(advantages) // 2)]


def _psi(advantages, eta, form):
  """Returns the weights of Song et al. 2020, eq. 4."""
  kept, psi = _better_half(advantages), np.zeros(len(advantages))
  total = sum(np.exp(advantages[i] / eta) for i in kept)
  if form == 'original':
    total += len(advantages) - len(kept)
  for i in kept:
    psi[i] = np.exp(advantages[i] / eta) / total
  return psi


def _dual(advantages, eta, epsilon):
  """Returns the dual of Song et al. 2020, eq. 3, without stopping any gradient."""
  kept = _better_half(advantages)
  return eta * epsilon + eta * np.log(np.mean([np.exp(advantages[i] / eta) for i in kept]))


@pytest.mark.parametrize('form', ['paper', 'original'])
@pytest.mark.parametrize('eta', [0.3, 1.0, 2.5])
@pytest.mark.parametrize('number', [1, 2, 7, 12])
def test_equals_a_slow_reference_with_masks(number, eta, form, make_config, gradients):
  rng = np.random.default_rng(number)
  mask = np.append(np.ones(number, bool), np.zeros(3, bool))[rng.permutation(number + 3)]
  advantages, log_prob = rng.normal(0, 2, mask.shape), rng.normal(-1, 1, mask.shape)
  kept = advantages[mask]
  psi = _psi(kept, eta, form)
  share = 1 if form == 'paper' else 1 / number
  expected = np.zeros(mask.shape)
  expected[mask] = -share * psi
  poisoned = [np.where(mask, x, np.nan) for x in (advantages, log_prob)]
  loss, adjustment, of_log_prob, by_eta = _run(
    poisoned[0], eta, _config(make_config, form), gradients, mask, poisoned[1]
  )
  np.testing.assert_allclose(loss, -share * (psi @ log_prob[mask]), rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(of_log_prob, expected, rtol=1e-4, atol=1e-6)
  if form == 'paper':
    step = 1e-5
    slope = (_dual(kept, eta + step, 0.01) - _dual(kept, eta - step, 0.01)) / (2 * step)
    np.testing.assert_allclose(adjustment, _dual(kept, eta, 0.01), rtol=1e-4)
    np.testing.assert_allclose(by_eta, slope, rtol=1e-3, atol=1e-4)
  else:
    log_mean_exp = _dual(kept, eta, 0.0) / eta
    np.testing.assert_allclose(adjustment, eta * (0.01 - log_mean_exp), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(by_eta, 0.01 - log_mean_exp, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_temperature_settles_where_the_kl_is_epsilon(make_config):
  """Minimises L_eta alone, for which the original's form does not settle there."""
  advantages = np.random.default_rng(0).normal(size=20)
  x, mask = tf.constant(advantages, tf.float32), tf.fill([20], True)

  def settled(log_eta, form):
    config = _config(make_config, form)

    @functools.partial(tf.function, autograph=False)
    def lower(log_eta):
      with tf.GradientTape() as tape:
        tape.watch(log_eta)
        loss = loss_lib.policy_loss(
          resolve.algorithm(config), algorithm_lib.Played(x, x, x, mask, tf.exp(log_eta))
        ).adjustment
      change = tf.clip_by_value(tape.gradient(loss, log_eta), -1.0, 1.0)
      return tf.minimum(log_eta - 0.5 * change, 5.0)

    for _ in range(300):
      log_eta = lower(log_eta)
    return log_eta

  kls = {}
  for form in ('paper', 'original'):
    eta = np.exp(settled(tf.constant(0.0), form).numpy())
    psi = _psi(advantages, eta, 'paper')[_better_half(advantages)]
    kls[form] = np.sum(psi * np.log(len(psi) * psi))
  np.testing.assert_allclose(kls['paper'], 0.01, rtol=0.05)
  assert kls['original'] < 0.005


def test_large_advantages_over_a_small_temperature_stay_finite(make_config, gradients):
  for form in ('paper', 'original'):
    results = _run([1e4, 9e3, -1e4, 0.0], 0.01, _config(make_config, form), gradients)
    assert all(np.isfinite(x).all() for x in results)
    share = 1 if form == 'paper' else 4
    np.testing.assert_allclose(share * results[2], [-1, 0, 0, 0], atol=1e-6)


@pytest.mark.parametrize('form', ['paper', 'original'])
def test_nothing_left_is_0_with_finite_gradients(form, make_config, gradients):
  nan = [np.nan] * 3
  for fields in ({}, {'normalize_advantages': True}, {'keep_advantages': 'top_half'}):
    results = _run(nan, 0.5, _config(make_config, form, **fields), gradients, [False] * 3, nan)
    for x in results:
      np.testing.assert_array_equal(x, np.zeros_like(x))


@pytest.mark.parametrize(
  'advantages, mask, expected',
  [
    ([3, 1, -1, -2], None, [1, 1, 0, 0]),
    ([-2, 5, 0, 4, 1], None, [0, 1, 0, 1, 0]),  # floor(5 / 2)
    ([1, 2, 2, 2, 0, 3], None, [0, 1, 1, 1, 0, 1]),  # ties with the last one kept stay
    ([2, 2, 2, 2], None, [1, 1, 1, 1]),
    ([-7], None, [1]),
    # the better half of the unmasked ones
    ([9, 1, 2, 8, 3, 4], [0, 1, 1, 0, 1, 1], [0, 0, 0, 0, 1, 1]),
    ([9, -3, 9], [0, 1, 0], [0, 1, 0]),
    ([1, 2], [0, 0], [0, 0]),
    ([[4, 1], [3, 2]], None, [[1, 0], [1, 0]]),  # over all axes together
  ],
)
def test_better_half(advantages, mask, expected):
  advantages = tf.constant(advantages, tf.float32)
  mask = tf.ones(advantages.shape, tf.bool) if mask is None else tf.cast(tf.constant(mask), tf.bool)
  half = advantages_lib.better_half(advantages, mask)
  np.testing.assert_array_equal(half, np.array(expected, bool))


def test_ties_share_their_weight(make_config, gradients):
  _, _, of_log_prob, _ = _run([1, 2, 2, 2], 1.0, _config(make_config), gradients)
  np.testing.assert_allclose(of_log_prob, [0, -1 / 3, -1 / 3, -1 / 3], rtol=1e-6)
