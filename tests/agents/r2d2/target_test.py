"""When the target network is renewed, and that it survives with the rest of the learner."""

import contextlib

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

_CONFIG = r2d2_config.R2D2Config(
  unroll_length=2,
  overlap=0,
  batch_size=2,
  target_period=3,
  optimizer=config_lib.OptimizerConfig(learning_rate=0.01),
)
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((2,), np.float32), action=specs.DiscreteArray(3)
)


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


def _learner(seed=1):
  tf.random.set_seed(seed)
  network = agent.AGENT.make_network(_SPEC, config_lib.NetworkConfig(mlp_sizes=(4,)), _CONFIG)
  learner = learner_lib.Learner(
    network,
    lambda net, sample: agent.AGENT.loss(net, sample, _CONFIG),
    _CONFIG,
    1000,
    lambda net, number: agent.AGENT.after_update(net, number, _CONFIG),
  )
  return network, learner


def _values(network):
  return [np.array(variable) for variable in network.variables]


def _assert_equal(actual, expected):
  assert len(actual) == len(expected)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)


def _is_copy(network):
  return all(np.array_equal(a, b) for a, b in zip(_values(network.online), _values(network.target)))


@pytest.mark.parametrize('executor', [contextlib.nullcontext, graph_function.in_calling_thread])
def test_the_target_is_a_copy_at_the_start_and_at_multiples_of_its_period_only(executor):
  """On either executor, of which one has conditionals that need a second thread."""
  network, learner = _learner()
  assert _is_copy(network)
  target = _values(network.target)
  with executor():
    for number in range(1, 8):
      learner.step(_sample(), agent_steps=0)
      if number % 3 == 0:
        assert _is_copy(network), number
        target = _values(network.target)
      else:
        assert not _is_copy(network), number
        _assert_equal(_values(network.target), target)  # it stands still in between


def test_online_and_target_are_other_variables_under_other_names():
  network, _ = _learner()
  names = [variable.name for variable in network.variables]
  assert len(set(names)) == len(names) == 2 * len(network.online.variables)
  assert len({id(v) for v in network.variables}) == len(names)
  for online, target in zip(network.online.variables, network.target.variables):
    assert online.name.removeprefix('online/') == target.name.removeprefix('target/')
  assert [v.name for v in network.trainable_variables] == [v.name for v in network.online.variables]


def test_it_acts_and_unrolls_as_the_online_network():
  network, learner = _learner()
  learner.step(_sample(), agent_steps=0)
  inputs = _sample().unroll.inputs
  row = tf.nest.map_structure(lambda x: x[0], inputs)
  for whole, part in (
    (network(row, ()), network.online(row, ())),
    (network.unroll(inputs, ()), network.online.unroll(inputs, ())),
  ):
    np.testing.assert_array_equal(whole[0].q_values, part[0].q_values)
  of_target, of_both = network.target(row, ())[0], network(row, ())[0]
  assert (of_target.q_values.numpy() != of_both.q_values.numpy()).any()


def test_what_acts_gets_the_target_too_and_in_the_same_order():
  """Published values are assigned by position."""
  network, learner = _learner()
  update = learner.step(_sample(), agent_steps=0)
  _assert_equal([value.numpy() for value in update.variables.values], _values(network))


def test_a_restored_learner_has_its_target_and_keeps_the_period():
  network, learner = _learner()
  for _ in range(4):  # copied after the third
    learner.step(_sample(), agent_steps=0)
  saved = {name: np.array(value) for name, value in learner.save().items()}
  other_network, other = _learner(seed=2)
  other.restore(saved, 4)
  assert not _is_copy(other_network)
  _assert_equal(_values(other_network), _values(network))
  for number in (5, 6, 7):
    learner.step(_sample(), agent_steps=0)
    other.step(_sample(), agent_steps=0)
    _assert_equal(_values(other_network), _values(network))
    assert _is_copy(other_network) == (number == 6)


def test_a_warm_start_takes_the_target_along():
  network, learner = _learner()
  learner.step(_sample(), agent_steps=0)
  other_network, other = _learner(seed=2)
  other.warm_start(learner.save())
  _assert_equal(_values(other_network), _values(network))
  assert not _is_copy(other_network)
