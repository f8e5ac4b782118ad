"""Advantages and value targets against slow sums over one episode at a time; learnt rewards."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import penalties as penalties_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.ops import transitions

FIRST, MID, LAST = types.FIRST, types.MID, types.LAST
_LAMBDA = 0.7
_ESTIMATORS = [
  {'advantage': 'gae'},
  {'advantage': 'gae', 'lambda_': 1.0},
  {'advantage': 'vtrace', 'rho_clip': 1.1, 'c_clip': 0.9},
  {'advantage': 'vtrace', 'lambda_': 1.0},
  {'advantage': 'nstep', 'num_bootstrap_steps': 1},
  {'advantage': 'nstep', 'num_bootstrap_steps': 3},
]


@pytest.fixture
def make(make_config):
  return lambda **fields: make_config(**{'lambda_': _LAMBDA, **fields})


def _trace(seed=0, num_steps=12, batch_size=6):
  """Random rows with several episodes in each column; a third of the ends are terminations."""
  rng = np.random.default_rng(seed)
  shape = (num_steps + 1, batch_size)
  step_type = np.full(shape, MID, np.uint8)
  for t in range(1, num_steps + 1):
    ends = (rng.random(batch_size) < 0.3) & (step_type[t - 1] != LAST)
    step_type[t] = np.where(step_type[t - 1] == LAST, FIRST, np.where(ends, LAST, MID))
  discount = np.where(step_type == LAST, rng.choice([0.0, 1.0, 0.7], shape), 1.0)
  return {
    'step_type': step_type,
    'reward': rng.normal(size=shape),
    'discount': discount,
    'values': rng.normal(size=shape),
    'log_rhos': rng.normal(0, 0.7, (num_steps, batch_size)),
  }


def _estimate(x, config, poisoned=False):
  """Returns targets and advantages `[T, B]`."""
  reward, discount, log_rhos = x['reward'], x['discount'], x['log_rhos']
  if poisoned:
    ends = x['step_type'][:-1] == LAST
    after = np.concatenate([np.zeros_like(ends[:1]), ends])
    reward, discount = (np.where(after, np.nan, a) for a in (reward, discount))
    log_rhos = np.where(ends, np.nan, log_rhos)
  inputs = types.AgentInput(x['step_type'], reward, discount, None, None)
  steps = transitions.transitions(inputs, gamma=config.discount)
  return [
    a.numpy()
    for a in resolve.algorithm(config).estimate(
      algorithm_lib.Trace(
        tf.constant(x['values'], tf.float32), steps, tf.constant(log_rhos, tf.float32)
      )
    )
  ]


def _one_episode(values, rewards, discounts, log_rhos, config):
  """Targets and advantages of K transitions with K+1 values; discounts hold gamma."""
  num = len(rewards)
  returns = (
    lambda t, k: (  # R^(k)_t, k rewards and then the value
      sum(np.prod(discounts[t : t + i]) * rewards[t + i] for i in range(k))
      + np.prod(discounts[t : t + k]) * values[t + k]
    )
  )
  lambda_ = config.lambda_
  if config.advantage == 'nstep':
    targets = [returns(t, min(config.num_bootstrap_steps, num - t)) for t in range(num)]
    return np.array(targets), targets - values[:-1]
  if config.advantage == 'gae':  # the lambda-weighted mean of all returns
    targets = np.array(
      [
        sum((1 - lambda_) * lambda_ ** (k - 1) * returns(t, k) for k in range(1, num - t))
        + lambda_ ** (num - t - 1) * returns(t, num - t)
        for t in range(num)
      ]
    )
    return targets, targets - values[:-1]
  rho = np.minimum(config.rho_clip, np.exp(log_rhos))
  c = lambda_ * np.minimum(config.c_clip, np.exp(log_rhos))
  deltas = rho * (rewards + discounts * values[1:] - values[:-1])
  targets = np.array(
    [  # Espeholt et al. 2018, eq. 1
      values[s] + sum(np.prod(discounts[s:t]) * np.prod(c[s:t]) * deltas[t] for t in range(s, num))
      for s in range(num)
    ]
  )
  v_next, after = values[1:], np.append(targets[1:], values[-1])
  return targets, rewards + discounts * (v_next + lambda_ * (after - v_next)) - values[:-1]


def _expected(x, config):
  """Treats each column's episodes separately; a row that starts no transition keeps its value."""
  targets, result = x['values'][:-1].copy(), np.zeros_like(x['log_rhos'])
  num_steps = len(result)
  for b in range(result.shape[1]):
    start = 0
    for t in range(num_steps + 1):
      if x['step_type'][t, b] == LAST or t == num_steps:
        rows, after = slice(start, t), slice(start + 1, t + 1)
        targets[rows, b], result[rows, b] = _one_episode(
          x['values'][start : t + 1, b],
          x['reward'][after, b],
          config.discount * x['discount'][after, b],
          x['log_rhos'][rows, b],
          config,
        )
        start = t + 1
  return targets, result


@pytest.mark.parametrize('fields', _ESTIMATORS)
@pytest.mark.parametrize('seed', range(3))
def test_equals_a_slow_sum_over_each_episode_apart(seed, fields, make):
  config, x = make(**fields), _trace(seed)
  assert (x['step_type'][:-1] == LAST).sum() > 5
  for actual, expected in zip(_estimate(x, config), _expected(x, config)):
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('fields', _ESTIMATORS)
def test_two_episodes_in_one_trace_equal_the_two_apart(fields, make):
  config, rng = make(**fields), np.random.default_rng(1)
  rows = lambda n, *last: {
    'step_type': np.uint8([[FIRST], *[[MID]] * (n - 2), [LAST]]),
    'reward': rng.normal(size=(n, 1)),
    'discount': np.float64([[1.0]] * (n - 1) + [[last[0]]]),
    'values': rng.normal(size=(n, 1)),
    'log_rhos': rng.normal(0, 0.5, (n - 1, 1)),
  }
  for last in (0.0, 0.7, 1.0):
    one, two = rows(5, last), rows(4, 1.0)
    both = {name: np.concatenate([one[name], two[name]]) for name in one}
    both['log_rhos'] = np.concatenate([one['log_rhos'], [[0.3]], two['log_rhos']])
    for joined, first, second in zip(*(_estimate(x, config) for x in (both, one, two))):
      np.testing.assert_allclose(joined[:4], first, rtol=1e-6)
      np.testing.assert_allclose(joined[5:], second, rtol=1e-6)


@pytest.mark.parametrize('fields', _ESTIMATORS)
def test_a_truncated_episode_bootstraps_from_its_last_row_and_a_terminated_one_does_not(
  fields, make
):
  config = make(**fields)
  x = {name: a[:, :2] for name, a in _trace(2, num_steps=4).items()}
  x['step_type'] = np.uint8([[MID] * 2, [MID] * 2, [LAST] * 2, [FIRST] * 2, [MID] * 2])
  x['discount'] = np.float64([[1, 1], [1, 1], [1, 0], [1, 1], [1, 1]])  # truncated, terminated
  other = {**x, 'values': x['values'].copy()}
  other['values'][2] += 10.0  # the LAST row
  (_, before), (_, after) = _estimate(x, config), _estimate(other, config)
  rho = np.minimum(config.rho_clip, np.exp(x['log_rhos'][:, 0]))
  expected = config.discount * 10.0
  np.testing.assert_allclose((after - before)[1], [expected, 0.0], rtol=1e-4, atol=1e-5)
  assert abs((after - before)[0, 0]) < expected and rho[1] > 0
  np.testing.assert_array_equal((after - before)[:, 1], np.zeros(4))
  np.testing.assert_array_equal((after - before)[2:], np.zeros((2, 2)))


@pytest.mark.parametrize('fields', _ESTIMATORS)
def test_nan_in_masked_entries_changes_no_bit(fields, make):
  config, x = make(**fields), _trace()
  for a, b in zip(_estimate(x, config, poisoned=True), _estimate(x, config)):
    np.testing.assert_array_equal(a, b)


def test_on_its_own_data_vtrace_is_gae(make):
  x = _trace()
  x['log_rhos'][:] = 0.0
  for a, b in zip(_estimate(x, make(advantage='vtrace')), _estimate(x, make(advantage='gae'))):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_many_steps_are_gae_with_lambda_1(make):
  x = _trace()
  many, few = (make(advantage='nstep', num_bootstrap_steps=n) for n in (10**6, 2))
  for actual, expected, other in zip(
    *(_estimate(x, config) for config in (many, make(advantage='gae', lambda_=1.0), few))
  ):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(actual - other).max() > 0.1


def test_the_ratio_of_its_own_row_does_not_weigh_an_advantage(make):
  """The policy loss applies that ratio itself, recomputed in every pass."""
  x = _trace()
  other = {**x, 'log_rhos': x['log_rhos'].copy()}
  other['log_rhos'][3] += 1.0
  _, one = _estimate(x, make(advantage='vtrace'))
  _, two = _estimate(other, make(advantage='vtrace'))
  np.testing.assert_array_equal(one[3:], two[3:])
  assert np.abs(one[2] - two[2]).max() > 0.01


@pytest.mark.parametrize('fields', _ESTIMATORS)
def test_no_gradient_passes(fields, make, gradients):
  config, x = make(**fields), _trace()
  values, log_rhos = (tf.constant(x[name], tf.float32) for name in ('values', 'log_rhos'))
  steps = transitions.transitions(
    types.AgentInput(x['step_type'], x['reward'], x['discount'], None, None), gamma=0.9
  )
  _, found = gradients(
    lambda: tf.add_n(
      [
        tf.reduce_sum(a)
        for a in resolve.algorithm(config).estimate(algorithm_lib.Trace(values, steps, log_rhos))
      ]
    ),
    [values, log_rhos],
  )
  assert found == [None, None]


@pytest.mark.parametrize(
  'fields, expected',
  [
    ({}, [-3.0, 0.5, 2.0]),
    ({'max_abs_reward': 1.0}, [-1.0, 0.5, 1.0]),
    ({'reward_scale': 0.1}, [-0.3, 0.05, 0.2]),
    # the bound is for raw rewards
    ({'max_abs_reward': 1.0, 'reward_scale': 4.0}, [-4.0, 2.0, 4.0]),
  ],
)
def test_rewards_are_clipped_then_scaled(fields, expected, make):
  rewards, algorithm = np.float32([[9.0], [-3.0], [0.5], [2.0]]), resolve.algorithm(make(**fields))
  inputs = types.AgentInput(np.full([4, 1], MID), rewards, np.ones([4, 1]), None, None)
  learnt = algorithm.steps(inputs).rewards
  np.testing.assert_allclose(learnt[:, 0], expected, rtol=1e-6)
  penalized = _penalized(learnt, tf.fill([3, 1], 9.0), algorithm)
  np.testing.assert_array_equal(penalized, learnt)


def _penalized(rewards, penalties, algorithm):
  """Subtracts or adds one penalty of weight 1."""
  one = tf.constant(1.0)
  return penalties_lib.in_rewards(
    rewards, {'entropy': penalties}, {'entropy': one}, algorithm.penalty_sign
  )


@pytest.mark.parametrize('way, sign', [('subtracted', -1.0), ('added', 1.0)])
def test_penalties_enter_rewards_with_their_sign(way, sign, make, gradients):
  """SEED RL adds them (D16), which would reward a divergence that should be small."""
  penalties, rewards = tf.constant([0.5, 0.0, -3.0]), np.float32([-4.0, 2.0, 4.0])
  algorithm = resolve.algorithm(make(penalties_in_rewards=way))
  run = lambda: _penalized(tf.constant(rewards), penalties, algorithm)
  np.testing.assert_allclose(run(), rewards + sign * penalties, rtol=1e-6)
  assert gradients(lambda: tf.reduce_sum(run()), [penalties])[1] == [None]
