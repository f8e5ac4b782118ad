"""Updates of R2D2's target network, and its place in checkpoints."""

import contextlib

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.r2d2 import agent
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.learning import learner as learner_lib
from seed_acme.tensors import graph_function

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
  made = agent.make_agent(_SPEC, config_lib.NetworkConfig(mlp_sizes=(4,)), _CONFIG)
  published = range(len(made.acting.make().variables))
  tf.random.set_seed(seed)
  return learner_lib.Learner(
    made, published=published, total_steps=1000, seed=seed, xla=False, devices=['cpu:0']
  )


def _weights(learner, part):
  return [np.array(x) for name, x in learner.save().items() if name.startswith(part)]


def _online(learner):
  return _weights(learner, 'acting/')


def _target(learner):
  return _weights(learner, 'learning/target/')


def _assert_equal(actual, expected):
  assert len(actual) == len(expected)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)


def _is_copy(learner):
  assert len(_online(learner)) == len(_target(learner)) > 0
  return all(np.array_equal(a, b) for a, b in zip(_online(learner), _target(learner)))


@pytest.mark.slow
@pytest.mark.parametrize('executor', [contextlib.nullcontext, graph_function.serial_execution])
def test_the_target_is_a_copy_at_the_start_and_at_multiples_of_its_period_only(executor):
  """Runs on both executors, one of which needs a second thread for conditionals."""
  learner = _learner()
  assert _is_copy(learner)
  target = _target(learner)
  with executor():
    for number in range(1, 8):
      learner.step(_sample(), agent_steps=0)
      if number % 3 == 0:
        assert _is_copy(learner), number
        # The copied variables have been trained: nothing is copied the other way.
        assert any((old != new).any() for old, new in zip(target, _target(learner))), number
        target = _target(learner)
      else:
        assert not _is_copy(learner), number
        _assert_equal(_target(learner), target)  # unchanged in between


@pytest.mark.slow
def test_only_the_online_network_is_trained_and_published():
  learner = _learner()
  optimised = {name.split('/', 3)[-1] for name in learner.save() if name.startswith('optimizer/')}
  assert not any('target' in name for name in optimised)
  learner.step(_sample(), agent_steps=0)
  _assert_equal([value.numpy() for value in learner.variables().values], _online(learner))


@pytest.mark.slow
def test_a_restored_learner_has_its_target_and_keeps_the_period():
  learner = _learner()
  for _ in range(4):  # copied after the third
    learner.step(_sample(), agent_steps=0)
  saved = {name: np.array(value) for name, value in learner.save().items()}
  other = _learner(seed=2)
  other.restore(saved, 4)
  assert not _is_copy(other)
  for number in (5, 6, 7):
    _assert_equal(_target(other), _target(learner))
    learner.step(_sample(), agent_steps=0)
    other.step(_sample(), agent_steps=0)
    _assert_equal(_online(other), _online(learner))
    assert _is_copy(other) == (number == 6)


@pytest.mark.slow
def test_a_warm_start_takes_the_target_along():
  learner = _learner()
  learner.step(_sample(), agent_steps=0)
  other = _learner(seed=2)
  other.warm_start(learner.save())
  _assert_equal(_target(other), _target(learner))
  assert not _is_copy(other)


def test_a_warm_start_without_a_target_makes_it_a_copy():
  """A packed run has only what acts."""
  acting = {name: x for name, x in _learner().save().items() if name.startswith('acting/')}
  other = _learner(seed=2)
  assert other.warm_start(acting)
  _assert_equal(_online(other), list(acting.values()))
  assert _is_copy(other)
