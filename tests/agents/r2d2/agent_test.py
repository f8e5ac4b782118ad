"""How R2D2 explores, what replay it wants, and when its target is renewed."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import graph_function
from seed_acme import learner as learner_lib
from seed_acme import types
from seed_acme.agents.r2d2 import agent
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import policy

_CONFIG = r2d2_config.R2D2Config(unroll_length=2, overlap=0, batch_size=2, target_period=3)
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((2,), np.float32), action=specs.DiscreteArray(3)
)


def _exploration(uniforms, place=0.0, is_evaluation=False):
  n = len(uniforms)
  return types.Exploration(
    np.asarray(uniforms, np.float32), np.full(n, place, np.float32), np.full(n, is_evaluation)
  )


def test_each_training_environment_has_its_own_epsilon_and_evaluation_a_small_one():
  place = np.linspace(0, 1, 5).astype(np.float32)
  exploration = types.Exploration(np.zeros((5, 2), np.float32), place, np.zeros(5, bool))
  np.testing.assert_allclose(
    policy.epsilons(exploration, _CONFIG), [0.4 ** (1 + 7 * i / 4) for i in range(5)], rtol=1e-5
  )
  np.testing.assert_allclose(
    policy.epsilons(exploration._replace(is_evaluation=np.ones(5, bool)), _CONFIG), 0.001
  )


def test_actions_are_random_below_epsilon_and_greedy_above_it():
  prediction = types.QOutput(np.float32([[0, 5, 1]] * 4))
  uniforms = [[0.39, 0.0], [0.39, 0.5], [0.39, np.float32(1 - 2.0**-24)], [0.41, 0.0]]
  output = agent.AGENT.select_actions(None, prediction, _exploration(uniforms), _CONFIG)
  np.testing.assert_array_equal(output.action, [0, 1, 2, 1])
  assert output.prediction is prediction
  evaluated = agent.AGENT.select_actions(
    None, prediction, _exploration(uniforms, is_evaluation=True), _CONFIG
  )
  np.testing.assert_array_equal(evaluated.action, [1] * 4)


def test_the_share_of_random_actions_is_epsilon():
  uniforms = np.random.default_rng(1).random((20_000, 2), np.float32)
  prediction = types.QOutput(np.tile(np.float32([[0, 0, 9]]), (20_000, 1)))
  output = agent.AGENT.select_actions(None, prediction, _exploration(uniforms), _CONFIG)
  action = output.action.numpy()
  assert np.mean(action != 2) == pytest.approx(0.4 * 2 / 3, abs=0.015)
  assert np.mean(action == 0) == pytest.approx(0.4 / 3, abs=0.012)


@pytest.mark.parametrize('kind', ['prioritized', 'uniform'])
def test_it_wants_the_replay_memory_of_its_configuration(kind):
  config = dataclasses.replace(_CONFIG, replay=kind)
  spec = agent.AGENT.replay_spec(config)
  assert spec.kind == kind
  assert spec.memory is config


def _sample():
  rows = (3, 2)
  inputs = types.AgentInput(
    tf.fill(rows, tf.constant(types.MID, tf.uint8)),
    tf.ones(rows),
    tf.ones(rows),
    tf.zeros(rows, tf.int32),
    tf.ones([*rows, 2]),
  )
  outputs = types.AgentOutput(tf.zeros(rows, tf.int32), types.QOutput(tf.zeros([*rows, 3])))
  return types.Sample(
    types.Unroll((), inputs, outputs, tf.zeros(rows, tf.int64)),
    tf.zeros([2], tf.uint64),
    tf.fill([2], tf.constant(0.5, tf.float64)),
  )


def _learner():
  tf.random.set_seed(1)
  network = agent.AGENT.make_network(_SPEC, config_lib.NetworkConfig(mlp_sizes=(4,)), _CONFIG)
  learner = learner_lib.Learner(
    network,
    lambda net, sample: agent.AGENT.loss(net, sample, _CONFIG),
    _CONFIG,
    1000,
    lambda net, number: agent.AGENT.after_update(net, number, _CONFIG),
  )
  return network, learner


def _is_copy(network):
  return all(
    np.array_equal(a.numpy(), b.numpy())
    for a, b in zip(network.online.variables, network.target.variables)
  )


def test_the_target_is_a_copy_at_the_start_and_at_multiples_of_its_period_only():
  network, learner = _learner()
  assert _is_copy(network)
  with graph_function.in_calling_thread():  # another executor, which has its own conditionals
    copies = []
    for _ in range(7):
      learner.step(_sample(), agent_steps=0)
      copies.append(_is_copy(network))
  assert copies == [False, False, True, False, False, True, False]


def test_a_checkpoint_of_the_learner_holds_the_target():
  network, learner = _learner()
  learner.step(_sample(), agent_steps=0)
  saved = learner.save()
  other_network, other = _learner()
  other.restore(saved, 1)
  assert not _is_copy(other_network)
  for restored, original in zip(other_network.variables, network.variables):
    np.testing.assert_array_equal(restored, original)
