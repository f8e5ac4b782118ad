"""The learnt entropy weight on a bandit: action 0 pays 1, so an unaided policy turns greedy."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.vtrace import agent
from seed_acme.agents.vtrace import config as vtrace_config

_T, _B = 3, 64
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((1,), np.float32), action=specs.DiscreteArray(3)
)
_CONFIG = vtrace_config.VTraceConfig(
  unroll_length=_T, batch_size=_B, discount=0.0, entropy_cost=0.1, entropy_adjustment_speed=1.0
)


def _network(config):
  tf.random.set_seed(5)
  return agent.AGENT.make_network(_SPEC, config_lib.NetworkConfig(mlp_sizes=(8,)), config)


def _play(network, uniforms, config):
  """One on-policy sample of the bandit; uniforms `[(T+1)*B, 1]`."""
  shape = (_T + 1, _B)
  inputs = types.AgentInput(
    step_type=tf.fill(shape, tf.constant(types.MID, tf.uint8)),
    reward=tf.zeros(shape),
    discount=tf.ones(shape),
    previous_action=tf.zeros(shape, tf.int32),
    observation=tf.ones([*shape, 1]),
  )
  prediction, _ = network.unroll(inputs, ())
  flat = tf.nest.map_structure(lambda x: tf.reshape(x, [shape[0] * _B, *x.shape[2:]]), prediction)
  output = agent.AGENT.select_actions(
    None,
    flat,
    types.Exploration(uniforms, tf.zeros(len(uniforms)), tf.zeros(len(uniforms), tf.bool)),
    config,
  )
  actions = tf.reshape(output.action, shape)
  reward = tf.cast(actions == 0, tf.float32)
  reward = tf.concat([tf.zeros([1, _B]), reward[:-1]], axis=0)  # into the row after the action
  return types.Sample(
    types.Unroll(
      (),
      inputs._replace(reward=reward),
      types.AgentOutput(actions, prediction),
      tf.zeros(shape, tf.int64),
    ),
    None,
    None,
  )


def _train(config, num_updates=600):
  """Mean entropy over the last 100 updates, and the first and the last weight."""
  network, optimizer = _network(config), snt.optimizers.Adam(0.02)

  @tf.function
  def run(uniforms):
    metrics = tf.TensorArray(tf.float32, num_updates)
    for i in tf.range(num_updates):
      sample = _play(network, uniforms[i], config)
      with tf.GradientTape() as tape:
        output = agent.AGENT.loss(network, sample, config)
      variables = network.trainable_variables
      optimizer.apply(tape.gradient(output.loss, variables), variables)
      metrics = metrics.write(
        i, [output.metrics['policy/entropy'], output.metrics['policy/entropy_cost']]
      )
    return metrics.stack()

  rng = np.random.default_rng(5)
  uniforms = rng.random((num_updates, (_T + 1) * _B, 1), np.float32)
  entropies, weights = run(tf.constant(uniforms)).numpy().T
  return entropies[-100:].mean(), weights[0], weights[-1]


def test_a_fixed_weight_lets_the_policy_turn_greedy_and_stays():
  entropy, first, last = _train(_CONFIG)
  assert entropy < 0.1
  assert first == last == np.float32(0.1)


@pytest.mark.parametrize('target_entropy', [0.5, 0.9])
@pytest.mark.parametrize('entropy_cost', [0.01, 1.0])
def test_the_entropy_is_led_to_its_target_from_both_sides(target_entropy, entropy_cost):
  config = dataclasses.replace(_CONFIG, target_entropy=target_entropy, entropy_cost=entropy_cost)
  entropy, _, _ = _train(config)
  np.testing.assert_allclose(entropy, target_entropy, atol=0.06)


def test_a_target_of_0_is_a_target():
  config = dataclasses.replace(_CONFIG, target_entropy=0.0)
  entropy, first, last = _train(config)
  assert entropy < 0.1
  assert last < 0.7 * first


def test_a_target_without_a_weight_to_start_from_is_refused():
  config = dataclasses.replace(_CONFIG, target_entropy=0.5, entropy_cost=0.0)
  with pytest.raises(types.UserError, match=r'entropy_cost \(0.0\) must be > 0'):
    _network(config)


def test_the_parameter_is_the_last_variable_and_only_there_with_a_target():
  with_target = _network(dataclasses.replace(_CONFIG, target_entropy=0.5))
  names = [v.name for v in with_target.variables]
  assert names[-1] == 'entropy_weighted/entropy_parameter:0'
  assert names[:-1] == [v.name for v in _network(_CONFIG).variables]
  assert len(with_target.trainable_variables) == len(names)
