"""The V-trace preset on made-up samples: its numbers, its masks, its gradients."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import agent
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets

_T, _B, _A = 6, 5, 3
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((4,), np.float32), action=specs.DiscreteArray(_A)
)
_CONFIG = presets.vtrace(
  unroll_length=_T,
  batch_size=_B,
  discount=0.9,
  lambda_=0.95,
  rho_clip=1.2,
  c_clip=0.9,
  policy_rho_clip=1.1,
  entropy=on_policy_config.PenaltyConfig(weight=0.01),
  kl_cost=0.3,
)
_KEY = tf.zeros([2], tf.int32)
FIRST, MID, LAST = types.FIRST, types.MID, types.LAST


def _network(config=_CONFIG, core='lstm'):
  tf.random.set_seed(3)
  network_config = config_lib.NetworkConfig(
    mlp_sizes=(8,), core=core, core_size=6, previous_action_input=True, previous_reward_input=True
  )
  made = agent.make_agent(_SPEC, network_config, config)
  network = made.acting.make()
  return _Network(network, made.make_learning(network))


class _Network:
  """The acting network, and its learning functions."""

  def __init__(self, acting, learning):
    self.unroll, self.initial_state = acting.unroll, acting.initial_state
    self.learning = learning
    self.trainable_variables = learning.objectives['policy'].variables


def _with_target(target_entropy, config=_CONFIG, **changes):
  threshold = None if target_entropy is None else -target_entropy
  return dataclasses.replace(
    config, entropy=on_policy_config.PenaltyConfig(0.01, threshold), **changes
  )


def _step_types(num_rows, rng):
  """Columns of whole episodes: LAST is always followed by FIRST."""
  rows = np.full((num_rows, _B), MID, np.uint8)
  rows[0] = rng.choice([FIRST, MID, LAST], _B)
  for t in range(1, num_rows):
    ends = (rng.random(_B) < 0.3) & (rows[t - 1] != LAST)
    rows[t] = np.where(rows[t - 1] == LAST, FIRST, np.where(ends, LAST, MID))
  return rows


def _sample(network, num_rows=_T + 1, seed=0, step_type=None):
  rng = np.random.default_rng(seed)
  shape = (num_rows, _B)
  normal = lambda *size: rng.normal(size=size).astype(np.float32)
  inputs = types.AgentInput(
    step_type=_step_types(num_rows, rng) if step_type is None else step_type,
    reward=normal(*shape),
    discount=(rng.random(shape) > 0.2).astype(np.float32),
    previous_action=rng.integers(0, _A, shape).astype(np.int32),
    observation=normal(*shape, 4),
  )
  outputs = types.AgentOutput(
    action=rng.integers(0, _A, shape).astype(np.int32),
    prediction=types.ActorCriticOutput(normal(*shape, _A), normal(*shape)),
  )
  state = tf.nest.map_structure(lambda x: normal(*x.shape), network.initial_state(_B))
  unroll = types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))
  return types.Sample(unroll, np.zeros(_B, np.uint64), np.ones(_B))


def _loss(network, sample):
  batch = network.learning.prepare(sample, _KEY, True).batch
  return network.learning.losses(batch, _KEY, tf.zeros([]))


def _gradients_of(network, compiled=False):
  """Returns a function from a sample to loss, metrics and a gradient per variable (zeros for none).

  compiled: as the learner does it.
  """

  def run(sample):
    with tf.GradientTape() as tape:
      output = _loss(network, sample)
    loss = output.losses['policy']
    gradients = tape.gradient(
      loss, network.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
    )
    return loss, output.metrics, gradients

  run = tf.function(run, autograph=False) if compiled else run
  return lambda sample: run(tf.nest.map_structure(tf.convert_to_tensor, sample))


def _gradients(network, sample):
  return _gradients_of(network)(sample)


def _assert_equal(actual, expected):
  tf.nest.assert_same_structure(actual, expected)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    np.testing.assert_array_equal(a, b)


def _replace_inputs(sample, **fields):
  inputs = sample.unroll.inputs._replace(**fields)
  return sample._replace(unroll=sample.unroll._replace(inputs=inputs))


def _replace_behaviour_params(sample, params):
  prediction = sample.unroll.outputs.prediction._replace(policy_params=params)
  outputs = sample.unroll.outputs._replace(prediction=prediction)
  return sample._replace(unroll=sample.unroll._replace(outputs=outputs))


def _log_softmax(x):
  x = x.astype(np.float64)
  return x - np.log(np.exp(x).sum(-1, keepdims=True))


def _expected_losses(sample, params, values, config):
  """Returns means over single transitions, computed one by one."""
  inputs, outputs = sample.unroll.inputs, sample.unroll.outputs
  log_pi, log_mu = _log_softmax(params), _log_softmax(outputs.prediction.policy_params)
  terms = {'policy': [], 'value': [], 'penalties': [], 'sampled_kl': []}
  for b in range(_B):
    target, error = values[_T, b], 0.0
    for t in reversed(range(_T)):
      if inputs.step_type[t, b] == LAST:
        target, error = values[t, b], 0.0
        continue
      a, v = outputs.action[t, b], values[t, b]
      log_rho = log_pi[t, b, a] - log_mu[t, b, a]
      ratio = np.exp(log_rho)
      reward = np.clip(
        inputs.reward[t + 1, b], -(config.max_abs_reward or np.inf), config.max_abs_reward or np.inf
      )
      discount = config.discount * inputs.discount[t + 1, b]
      advantage = min(config.policy_rho_clip, ratio) * (reward + discount * target - v)
      error = (
        min(config.rho_clip, ratio) * (reward + discount * values[t + 1, b] - v)
        + discount * config.lambda_ * min(config.c_clip, ratio) * error
      )
      target = v + error
      terms['policy'].append(-log_pi[t, b, a] * advantage)
      terms['value'].append(config.value_cost * 0.5 * error**2)
      terms['penalties'].append(config.entropy.weight * np.sum(np.exp(log_pi[t, b]) * log_pi[t, b]))
      terms['sampled_kl'].append(-config.kl_cost * log_rho)
  return {name: np.mean(x) for name, x in terms.items()}


@pytest.mark.parametrize('seed, max_abs_reward', [(0, 0.0), (1, 0.5)])
def test_equals_a_slow_loop_over_transitions(seed, max_abs_reward):
  config = dataclasses.replace(_CONFIG, max_abs_reward=max_abs_reward)
  network = _network(config)
  sample = _sample(network, seed=seed)
  prediction, _ = network.unroll(sample.unroll.inputs, sample.unroll.initial_state)
  loss, metrics, _ = _gradients(network, sample)
  expected = _expected_losses(
    sample, prediction.policy_params.numpy(), prediction.value.numpy(), config
  )
  for name, value in expected.items():
    np.testing.assert_allclose(metrics[f'loss/{name}'], value, rtol=2e-5, atol=1e-6)
  np.testing.assert_allclose(loss, sum(expected.values()), rtol=2e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize('core, target_entropy', [('none', None), ('lstm', 0.4), ('gru', None)])
def test_every_variable_gets_a_gradient(core, target_entropy):
  config = _with_target(target_entropy)
  network = _network(config, core)
  _, _, gradients = _gradients(network, _sample(network))
  assert len(gradients) == {'none': 6, 'lstm': 9, 'gru': 10}[core] + (target_entropy is not None)
  for variable, gradient in zip(network.trainable_variables, gradients):
    assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, variable.name
    assert np.isfinite(tf.convert_to_tensor(gradient)).all(), variable.name


@pytest.mark.slow
@pytest.mark.parametrize('target_entropy', [None, 0.0])
def test_nan_in_every_masked_entry_changes_no_bit(target_entropy):
  config = _with_target(target_entropy, max_abs_reward=1.0)
  network = _network(config)
  sample = _sample(network)
  masked = sample.unroll.inputs.step_type[:-1] == LAST
  after_masked = np.concatenate([np.zeros((1, _B), bool), masked])
  inputs = sample.unroll.inputs
  poisoned = _replace_inputs(
    sample,
    reward=np.where(after_masked, np.nan, inputs.reward).astype(np.float32),
    discount=np.where(after_masked, np.nan, inputs.discount).astype(np.float32),
  )
  params = sample.unroll.outputs.prediction.policy_params.copy()
  params[:-1][masked] = np.nan
  poisoned = _replace_behaviour_params(poisoned, params)
  gradients = _gradients_of(network, compiled=True)
  expected = gradients(sample)
  assert masked.sum() > 2
  assert np.isfinite(expected[0])
  _assert_equal(gradients(poisoned), expected)


def test_rows_of_padding_before_the_first_row_change_nothing():
  """Padding is LAST-typed, and only the state at FIRST could leak from it."""
  step_type = np.full((_T + 1, _B), MID, np.uint8)
  step_type[:3], step_type[3] = LAST, FIRST
  network = _network()
  sample = _sample(network, step_type=step_type)
  inputs = sample.unroll.inputs
  other = _sample(network, seed=1, step_type=step_type).unroll.inputs
  changed = {
    name: np.concatenate([getattr(other, name)[:3], getattr(inputs, name)[3:]])
    for name in ('reward', 'discount', 'previous_action', 'observation')
  }
  _assert_equal(
    _gradients(network, _replace_inputs(sample, **changed))[2], _gradients(network, sample)[2]
  )


def test_a_batch_of_nothing_but_padding_moves_nothing():
  config = _with_target(0.3)
  network = _network(config)
  sample = _sample(network, step_type=np.full((_T + 1, _B), LAST, np.uint8))
  loss, _, gradients = _gradients(network, sample)
  assert loss == 0.0
  for gradient in gradients:
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient), np.zeros(gradient.shape))


@pytest.mark.slow
@pytest.mark.parametrize('overlap', [1, 4])
def test_overlap_rows_warm_the_state_and_are_not_learnt_from(overlap):
  config = dataclasses.replace(_CONFIG, overlap=overlap)
  network = _network(config)
  sample = _sample(network, num_rows=overlap + _T + 1)
  unroll = sample.unroll
  head = tf.nest.map_structure(lambda x: x[:overlap], unroll.inputs)
  _, warm = network.unroll(head, unroll.initial_state)
  inputs, outputs, versions = tf.nest.map_structure(
    lambda x: x[overlap:], (unroll.inputs, unroll.outputs, unroll.policy_version)
  )
  rest = sample._replace(unroll=types.Unroll(warm, inputs, outputs, versions))
  expected = _gradients(_network(), rest)
  actual = _gradients(network, sample)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    np.testing.assert_allclose(tf.convert_to_tensor(a), tf.convert_to_tensor(b), atol=1e-6)


def test_on_its_own_data_ratios_are_1():
  network = _network()
  sample = _sample(network)
  prediction, _ = network.unroll(sample.unroll.inputs, sample.unroll.initial_state)
  sample = _replace_behaviour_params(sample, prediction.policy_params.numpy())
  _, metrics, _ = _gradients(network, sample)
  np.testing.assert_allclose(metrics['policy/ratio_mean'], 1.0, rtol=1e-5)
  assert metrics['policy/rho_clipped_share'] == 0.0
  np.testing.assert_allclose(metrics['policy/kl_behaviour'], 0.0, atol=1e-6)


def test_a_sample_of_another_length_is_refused():
  network = _network()
  with pytest.raises(ValueError, match=r'holds 9 rows, but overlap \(0\) \+ unroll_length \(6\)'):
    _loss(network, _sample(network, num_rows=9))
