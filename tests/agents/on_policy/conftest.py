"""Fixtures of the on-policy agent's tests: small networks, samples with episode ends inside."""

from __future__ import annotations

import dataclasses

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import resolve
from seed_acme.learning import learner as learner_lib

_ACTIONS = {
  'discrete': specs.DiscreteArray(3),
  'continuous': specs.BoundedArray((2,), np.float32, -1.0, 1.0),
  'multi_discrete': specs.BoundedArray((2,), np.int32, 0, [1, 2]),
  'nested': {
    'arm': specs.BoundedArray((2,), np.float32, -1.0, 1.0),
    'grip': specs.DiscreteArray(3),
  },
}


class _Networks(loss_lib.Networks):
  """The learner's networks; attributes that they lack are looked up in the acting network."""

  def __getattr__(self, name):
    return getattr(self.acting, name)

  def __call__(self, inputs, state):
    return self.acting(inputs, state)

  @property
  def trainable_variables(self):
    return (*self.acting.trainable_variables, *self.weights.trainable_variables)


@pytest.fixture
def eagerly():
  """Turns off tracing, which takes longer than a few updates of a small network.

  recorded_updates/ and tests/agents/contract_test.py check that traced updates are the same.
  """
  tf.config.run_functions_eagerly(True)
  yield
  tf.config.run_functions_eagerly(False)


@pytest.fixture
def make_config():
  """`make_config(**fields)`: unrolls of 6 transitions, 4 per update, and two passes, so that
  advantages are prepared before the passes."""
  return lambda **fields: on_policy_config.OnPolicyConfig(
    **{
      'unroll_length': 6,
      'batch_size': 4,
      'discount': 0.9,
      'lambda_': 0.8,
      'num_epochs': 2,
      **fields,
    }
  )


@pytest.fixture
def make_spec():
  """`make_spec(action)`: action is discrete, continuous, multi_discrete or nested."""
  return lambda action='discrete', observation=None: types.EnvironmentSpec(
    observation=observation or specs.Array((4,), np.float32), action=_ACTIONS[action]
  )


@pytest.fixture
def make_network(make_spec):
  """`make_network(config, action, **network_settings)`, with weights that are not symmetric."""

  def make(config, action='discrete', seed=3, observation=None, **settings):
    tf.random.set_seed(seed)
    spec, algorithm = make_spec(action, observation), resolve.algorithm(config)
    network = _Networks(
      network_lib.make_network(
        spec,
        config_lib.NetworkConfig(
          **{'mlp_sizes': (5,), 'core_size': 4, 'activation': 'tanh', **settings}
        ),
        network_lib.make_distribution(spec, config),
        config,
      ),
      network_lib.LearntWeights(algorithm.penalties, algorithm.temperature),
    )
    rng = np.random.default_rng(seed)
    for variable in network.trainable_variables:
      if not variable.name.endswith('parameter:0'):
        variable.assign_add(rng.normal(0, 0.3, variable.shape).astype(np.float32))
    return network

  return make


def _step_types(num_rows, num_unrolls, rng):
  """Columns of whole episodes: LAST is always followed by FIRST, and some are masked."""
  rows = np.full((num_rows, num_unrolls), types.MID, np.uint8)
  rows[0] = rng.choice([types.FIRST, types.MID, types.LAST], num_unrolls)
  for t in range(1, num_rows):
    ends = (rng.random(num_unrolls) < 0.25) & (rows[t - 1] != types.LAST)
    rows[t] = np.where(
      rows[t - 1] == types.LAST, types.FIRST, np.where(ends, types.LAST, types.MID)
    )
  rows[1, 0], rows[2, 0] = types.LAST, types.FIRST
  return rows


@pytest.fixture
def make_sample(make_spec):
  """`make_sample(network, config, action, lag)`: time-major, terminations and truncations mixed.

  Actions are sampled from the network's outputs, which are stored as those of acting; lag > 0 adds
  noise of that size to the stored outputs, as if older weights had acted.
  """

  def make(network, config, action='discrete', seed=0, lag=0.0, step_type=None):
    rng = np.random.default_rng(seed)
    rows = config.unroll_rows
    shape = (rows, config.batch_size)
    normal = lambda *size: rng.normal(size=size).astype(np.float32)
    inputs = types.AgentInput(
      step_type=_step_types(*shape, rng) if step_type is None else step_type,
      reward=normal(*shape),
      discount=rng.choice(np.float32([0, 1, 0.7]), shape),
      previous_action=tree.map_structure(
        lambda x: np.zeros((*shape, *x.shape), x.dtype), make_spec(action).action
      ),
      observation=2 * normal(*shape, 4) + 1,
    )
    state = tf.nest.map_structure(
      lambda x: normal(*x.shape), network.initial_state(config.batch_size)
    )
    prediction, _ = network.unroll(inputs, state)
    noisy = tf.nest.map_structure(
      lambda x: x.numpy() + np.float32(lag) * normal(*x.shape), prediction
    )
    uniforms = rng.uniform(size=(*shape, network.distribution.num_uniforms)).astype(np.float32)
    actions = network.distribution.sample(noisy.policy_params, uniforms)
    outputs = types.AgentOutput(tree.map_structure(lambda x: x.numpy(), actions), noisy)
    unroll = types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))
    return types.Sample(
      unroll, np.arange(config.batch_size, dtype=np.uint64), np.ones(config.batch_size)
    )

  return make


@pytest.fixture
def make_learner():
  """`make_learner(network, config, losses, xla)`; losses(network, batch) instead of the loss."""

  def make(network, config, losses=None, xla=False):
    learning = learner.learning_of(resolve.algorithm(config), network)
    if losses is not None:
      learning = dataclasses.replace(
        learning, losses=lambda batch, key, progress: losses(network, batch)
      )
    agent = agent_lib.Agent(
      agent_lib.Acting(lambda: network.acting, None, 0), lambda acting: learning
    )
    return learner_lib.Learner(
      agent,
      published=range(len(network.acting.variables)),
      total_steps=1000,
      seed=1,
      xla=xla,
      devices=['cpu:0'],
    )

  return make


@pytest.fixture
def gradients():
  """`gradients(function, variables)`: its scalar, and numpy gradients; None where there is none."""

  def compute(function, variables):
    with tf.GradientTape() as tape:
      tape.watch([v for v in variables if not isinstance(v, tf.Variable)])
      value = function()
    found = tape.gradient(value, variables)
    return value.numpy(), [None if g is None else tf.convert_to_tensor(g).numpy() for g in found]

  return compute
