"""Policy losses against slow loops in float64, their gradients by finite differences."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.ops import distributions

_N, _A = 20, 3
_DISTRIBUTION = distributions.Categorical(_A)
_NAMES = ['vpg', 'ppo', 'vtrace', 'awr', 'repeat_positive', 'behaviour_cloning']


def _data(seed=0):
  """Logits of policy and behaviour that are far apart, so that ratios are clipped both ways."""
  rng = np.random.default_rng(seed)
  return {
    'params': rng.normal(0, 1.0, (_N, _A)),
    'behaviour': rng.normal(0, 1.0, (_N, _A)),
    'actions': rng.integers(0, _A, _N),
    'advantages': rng.normal(0, 2.0, _N),
    'mask': rng.random(_N) < 0.7,
  }


def _loss(x, config, gradients, poisoned=True, temperature=None):
  """Loss and gradient with respect to the policy's params; masked entries are NaN."""
  nan = np.where(x['mask'] | (not poisoned), 0.0, np.nan).astype(np.float32)
  params, behaviour = (tf.constant(x[name], tf.float32) for name in ('params', 'behaviour'))

  def run():
    log_prob = _DISTRIBUTION.log_prob(params, x['actions'])
    log_ratio = log_prob - _DISTRIBUTION.log_prob(behaviour, x['actions'])
    return loss_lib.policy_loss(
      resolve.algorithm(config),
      algorithm_lib.Played(
        log_prob + nan,
        log_ratio + nan,
        tf.constant(x['advantages'], tf.float32) + nan,
        tf.constant(x['mask']),
        temperature,
      ),
    ).loss

  value, [gradient] = gradients(run, [params])
  return value, gradient


def _log_softmax(logits):
  return logits - np.log(np.exp(logits).sum())


def _expected(x, config, params, params_of_weights):
  """Returns the expected loss. The weights, which pass no gradient, come from params_of_weights."""
  terms = []
  for i in np.flatnonzero(x['mask']):
    a, advantage = x['actions'][i], x['advantages'][i]
    log_pi, log_mu = _log_softmax(params[i])[a], _log_softmax(x['behaviour'][i])[a]
    constant_ratio = np.exp(_log_softmax(params_of_weights[i])[a] - log_mu)
    if config.policy_loss == 'vpg':
      terms.append(-advantage * log_pi)
    elif config.policy_loss == 'vtrace':
      terms.append(-min(constant_ratio, config.policy_rho_clip) * advantage * log_pi)
    elif config.policy_loss == 'awr':
      terms.append(-min(np.exp(advantage / config.awr_beta), config.awr_max_weight) * log_pi)
    elif config.policy_loss == 'repeat_positive':
      terms.append(-log_pi if advantage > 0 else 0.0)
    elif config.policy_loss == 'behaviour_cloning':
      terms.append(-log_pi)
    else:
      ratio, epsilon = np.exp(log_pi - log_mu), config.ppo_epsilon
      lower = {'linear': 1 - epsilon, 'reciprocal': 1 / (1 + epsilon)}[config.ppo_lower_bound]
      clipped = min(max(ratio, lower), 1 + epsilon)
      terms.append(-min(ratio * advantage, clipped * advantage))
  return np.mean(terms)


def _expected_gradient(x, config, step=1e-6):
  gradient = np.zeros((_N, _A))
  for index in np.ndindex(_N, _A):
    change = np.zeros((_N, _A))
    change[index] = step
    up, down = (_expected(x, config, x['params'] + sign * change, x['params']) for sign in (1, -1))
    gradient[index] = (up - down) / (2 * step)
  return gradient


@pytest.mark.parametrize('bound', ['linear', 'reciprocal'])
@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('name', _NAMES)
def test_value_and_gradient_equal_a_slow_loop(name, seed, bound, make_config, gradients):
  config = make_config(
    policy_loss=name,
    ppo_epsilon=0.3,
    ppo_lower_bound=bound,
    policy_rho_clip=1.2,
    awr_beta=0.7,
    awr_max_weight=5.0,
  )
  x = _data(seed)
  value, gradient = _loss(x, config, gradients)
  np.testing.assert_allclose(value, _expected(x, config, x['params'], x['params']), rtol=1e-5)
  np.testing.assert_allclose(gradient, _expected_gradient(x, config), rtol=1e-4, atol=1e-6)
  assert np.abs(gradient).max() > 0.01


@pytest.mark.parametrize('form', ['paper', 'original'])
@pytest.mark.parametrize('normalize', [False, True])
@pytest.mark.parametrize('name', [*_NAMES, 'vmpo'])
def test_nan_in_masked_entries_changes_no_bit(name, normalize, form, make_config, gradients):
  config = make_config(policy_loss=name, normalize_advantages=normalize, vmpo_form=form)
  x = _data()
  temperature = tf.constant(0.8)
  expected = _loss(x, config, gradients, poisoned=False, temperature=temperature)
  actual = _loss(x, config, gradients, temperature=temperature)
  assert np.isfinite(expected[0])
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('name', [*_NAMES, 'vmpo'])
def test_masked_entries_are_as_if_they_were_not_there(name, make_config, gradients):
  config = make_config(policy_loss=name, normalize_advantages=True)
  x = _data()
  rest = {key: value[x['mask']] for key, value in x.items()}
  value, gradient = _loss(x, config, gradients, temperature=tf.constant(0.8))
  expected_value, expected_gradient = _loss(rest, config, gradients, temperature=tf.constant(0.8))
  np.testing.assert_allclose(value, expected_value, rtol=1e-5)
  np.testing.assert_allclose(gradient[x['mask']], expected_gradient, rtol=1e-5, atol=1e-7)
  assert not gradient[~x['mask']].any()


@pytest.mark.parametrize('keep', ['all', 'positive', 'top_half'])
@pytest.mark.parametrize('name', [*_NAMES, 'vmpo'])
def test_all_masked_is_0_with_gradient_0(name, keep, make_config, gradients):
  config = make_config(policy_loss=name, keep_advantages=keep, normalize_advantages=True)
  x = {**_data(), 'mask': np.zeros(_N, bool)}
  value, gradient = _loss(x, config, gradients, temperature=tf.constant(0.8))
  assert value == 0.0
  np.testing.assert_array_equal(gradient, np.zeros((_N, _A)))


def _ppo(ratio, advantage, bound, make_config, gradients):
  """Loss of one transition, and its derivative by the log-ratio."""
  config = make_config(policy_loss='ppo', ppo_epsilon=0.2, ppo_lower_bound=bound)
  log_ratio = tf.constant([np.log(ratio)], tf.float32)
  loss, [gradient] = gradients(
    lambda: (
      loss_lib.policy_loss(
        resolve.algorithm(config),
        algorithm_lib.Played(
          log_ratio, log_ratio, tf.constant([advantage]), tf.constant([True]), None
        ),
      ).loss
    ),
    [log_ratio],
  )
  return [float(loss), float(gradient[0])]


def test_the_two_lower_bounds_of_ppo_differ_between_1_minus_epsilon_and_its_reciprocal(
  make_config, gradients
):
  """0.8 < 0.82 < 1 / 1.2 = 0.833: inside the paper's bounds, outside the original's."""
  run = lambda *x: _ppo(*x, make_config, gradients)
  np.testing.assert_allclose(run(0.82, -1.0, 'linear'), [0.82, 0.82], rtol=1e-5)
  np.testing.assert_allclose(run(0.82, -1.0, 'reciprocal'), [1 / 1.2, 0.0], rtol=1e-5)
  for bound in ('linear', 'reciprocal'):  # elsewhere both agree
    for ratio, advantage, expected in (
      (0.82, 1.0, [-0.82, -0.82]),
      (0.9, -1.0, [0.9, 0.9]),
      (1.1, 1.0, [-1.1, -1.1]),
      (1.3, 1.0, [-1.2, 0.0]),
      (1.3, -1.0, [1.3, 1.3]),
      (0.5, 1.0, [-0.5, -0.5]),
    ):
      np.testing.assert_allclose(run(ratio, advantage, bound), expected, rtol=1e-5)
  np.testing.assert_allclose(run(0.5, -1.0, 'linear'), [0.8, 0.0], rtol=1e-5)


@pytest.mark.parametrize('seed', range(3))
def test_the_reciprocal_bound_has_the_gradient_of_the_originals_mask(seed, make_config, gradients):
  """SEED RL: -mean(sg(ratio) mask A log pi), mask 0 beyond log(1 + epsilon) on the gaining side."""
  config = make_config(policy_loss='ppo', ppo_epsilon=0.3, ppo_lower_bound='reciprocal')
  x = _data(seed)
  _, gradient = _loss(x, config, gradients)
  bound, count = np.log(1.3), x['mask'].sum()
  num_stopped, expected = 0, np.zeros((_N, _A))
  for i in np.flatnonzero(x['mask']):
    a, advantage = x['actions'][i], x['advantages'][i]
    log_pi = _log_softmax(x['params'][i])
    log_rho = log_pi[a] - _log_softmax(x['behaviour'][i])[a]
    if (advantage > 0 and log_rho > bound) or (advantage < 0 and log_rho < -bound):
      num_stopped += 1
      continue
    of_log_prob = np.eye(_A)[a] - np.exp(log_pi)
    expected[i] = -np.exp(log_rho) * advantage * of_log_prob / count
  assert 0 < num_stopped < count
  np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


def test_an_advantage_of_0_is_not_repeated(make_config):
  x = tf.constant([-1.0, -2.0, -4.0])
  loss = loss_lib.policy_loss(
    resolve.algorithm(make_config(policy_loss='repeat_positive')),
    algorithm_lib.Played(x, x, tf.constant([0.0, 3.0, -1.0]), tf.fill([3], True), None),
  ).loss
  np.testing.assert_allclose(loss, 2.0 / 3.0, rtol=1e-6)


def test_a_hopeless_ratio_is_finite_in_value_and_gradient(make_config, gradients):
  for name in ('ppo', 'vtrace'):
    for log_ratio in (-200.0, 200.0):
      x = tf.constant([log_ratio])
      loss, [gradient] = gradients(
        lambda x=x, name=name: (
          loss_lib.policy_loss(
            resolve.algorithm(make_config(policy_loss=name)),
            algorithm_lib.Played(x, x, tf.constant([-1.0]), tf.constant([True]), None),
          ).loss
        ),
        [x],
      )
      assert np.isfinite(loss) and np.isfinite(gradient).all()


def test_no_gradient_enters_the_advantages(make_config, gradients):
  advantages, log_prob = tf.constant([1.0, -2.0, 0.5]), tf.constant([-1.0, -0.5, -2.0])
  for name in (*_NAMES, 'vmpo'):
    config = make_config(policy_loss=name, normalize_advantages=True)
    _, [of_advantages, of_log_prob] = gradients(
      lambda config=config: (
        loss_lib.policy_loss(
          resolve.algorithm(config),
          algorithm_lib.Played(
            log_prob, log_prob + 1.0, advantages, tf.fill([3], True), tf.constant(1.0)
          ),
        ).loss
      ),
      [advantages, log_prob],
    )
    assert of_advantages is None, name
    assert np.abs(of_log_prob).max() > 0, name


def test_shares_of_the_loss_are_of_time_major_shapes_too(make_config, gradients):
  """The mean of `[T, B]` is over both axes, as for `[T*B]`."""
  x = _data()
  for name in _NAMES:
    config = make_config(policy_loss=name, normalize_advantages=True)
    log_prob = tf.constant(x['advantages'] - 3.0, tf.float32)
    arguments = (
      log_prob,
      log_prob + 3.1,
      tf.constant(x['advantages'], tf.float32),
      tf.constant(x['mask']),
    )
    flat = loss_lib.policy_loss(
      resolve.algorithm(config), algorithm_lib.Played(*arguments, None)
    ).loss
    reshaped = [tf.reshape(x, [5, 4]) for x in arguments]
    np.testing.assert_allclose(
      loss_lib.policy_loss(resolve.algorithm(config), algorithm_lib.Played(*reshaped, None)).loss,
      flat,
      rtol=1e-5,
    )
