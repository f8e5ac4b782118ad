"""The learnt entropy weight on a bandit: action 0 pays 1, so an unaided policy turns greedy."""

import functools

from dm_env import specs
import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import agent
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import presets

_T, _B = 3, 64
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((1,), np.float32), action=specs.DiscreteArray(3)
)
_KEY = tf.zeros([2], tf.int32)


def _config(weight=0.1, target_entropy=None):
  threshold = None if target_entropy is None else -target_entropy
  return presets.vtrace(
    unroll_length=_T,
    batch_size=_B,
    discount=0.0,
    entropy=on_policy_config.PenaltyConfig(weight, threshold),
  )


def _play(network, uniforms, select_actions):
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
  number = shape[0] * _B
  output = select_actions(
    flat,
    types.Exploration(
      uniforms, tf.zeros(number), tf.zeros(number, tf.bool), tf.zeros(number, tf.int64)
    ),
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


def _train(config, num_updates=400):
  """Mean entropy over the last 100 updates, and the first and the last weight."""
  tf.random.set_seed(5)
  made = agent.make_agent(_SPEC, config_lib.NetworkConfig(mlp_sizes=(8,)), config)
  network, optimizer = made.acting.make(), snt.optimizers.Adam(0.02)
  learning = made.make_learning(network)
  variables = learning.objectives['policy'].variables

  @functools.partial(tf.function, autograph=False)
  def update(uniforms):
    sample = _play(network, uniforms, made.acting.select_actions)
    with tf.GradientTape() as tape:
      output = learning.losses(learning.prepare(sample, _KEY, True).batch, _KEY, 0.0)
    optimizer.apply(tape.gradient(output.losses['policy'], variables), variables)
    return output.metrics['policy/entropy'], output.metrics['penalty/entropy_weight']

  rng = np.random.default_rng(5)
  uniforms = rng.random((num_updates, (_T + 1) * _B, 1), np.float32)
  entropies, weights = np.array([update(tf.constant(x)) for x in uniforms]).T
  return entropies[-100:].mean(), weights[0], weights[-1]


@pytest.mark.slow
def test_a_fixed_weight_lets_the_policy_turn_greedy_and_stays():
  entropy, first, last = _train(_config())
  assert entropy < 0.1
  assert first == last == np.float32(0.1)


@pytest.mark.slow
@pytest.mark.parametrize('target_entropy, weight', [(0.5, 1.0), (0.9, 0.01)])
def test_the_entropy_is_led_to_its_target_from_both_sides(target_entropy, weight):
  entropy, _, _ = _train(_config(weight, target_entropy))
  np.testing.assert_allclose(entropy, target_entropy, atol=0.06)


@pytest.mark.slow
def test_a_target_of_0_is_a_target():
  entropy, first, last = _train(_config(target_entropy=0.0))
  assert entropy < 0.1
  assert last < 0.7 * first
