"""Fixtures of SAC's tests: small networks, and made-up samples with episode ends inside."""

from __future__ import annotations

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.sac import config as sac_config
from seed_acme.agents.sac import loss as loss_lib
from seed_acme.agents.sac import network as network_lib

_ACTIONS = {
  'continuous': specs.BoundedArray((2,), np.float32, -1.0, 1.0),
  'discrete': specs.DiscreteArray(3),
  'multi_discrete': specs.BoundedArray((2,), np.int32, 0, [1, 2]),
  'nested': {
    'arm': specs.BoundedArray((2,), np.float32, -1.0, 1.0),
    'grip': specs.DiscreteArray(3),
  },
}
_VECTOR = specs.Array((4,), np.float32)


def goal_observation(size=2):
  """Returns a specification in the form of gymnasium's `GoalEnv`."""
  return {
    'observation': _VECTOR,
    'achieved_goal': specs.Array((size,), np.float32),
    'desired_goal': specs.Array((size,), np.float32),
  }


@pytest.fixture
def op_by_op():
  """Turns off tracing, which takes longer than one or two updates.

  tests/agents/contract_test.py checks that traced updates are the same.
  """
  tf.config.run_functions_eagerly(True)
  yield
  tf.config.run_functions_eagerly(False)


@pytest.fixture
def make_spec():
  """`make_spec(action, observation)`: action is continuous, discrete, multi_discrete or nested;
  observation a specification, or 'goals'."""

  def make(action='continuous', observation=None):
    observation = goal_observation() if observation == 'goals' else observation
    return types.EnvironmentSpec(
      observation=_VECTOR if observation is None else observation, action=_ACTIONS[action]
    )

  return make


@pytest.fixture
def make_config():
  """`make_config(**fields)`: unrolls of 5 transitions, 4 in an update."""
  return lambda **fields: sac_config.SACConfig(
    **{
      'unroll_length': 5,
      'batch_size': 4,
      'discount': 0.9,
      'entropy_weight': 0.3,
      'initial_std': 0.7,
      **fields,
    }
  )


def make_network_config(**settings):
  """Returns a small network's settings; a recurrent one has a head over action and memory."""
  return config_lib.NetworkConfig(
    **{'mlp_sizes': (6,), 'core_size': 5, 'head_sizes': (5,), 'activation': 'tanh', **settings}
  )


class World:
  """Networks, distribution and configuration of one test."""

  def __init__(self, spec, network_config, config, seed):
    tf.random.set_seed(seed)
    self.spec, self.config = spec, config
    self.distribution = network_lib.make_distribution(spec, config)
    self.acting = network_lib.make_policy(spec, network_config, self.distribution, config)
    from_state = config.bootstrap == 'state_value'
    has_state = from_state or not self.distribution.is_reparametrizable
    make = lambda *args: network_lib.make_critics(spec, network_config, *args)
    self.networks = loss_lib.Networks(
      network_lib.policy_of(self.acting),
      make(config.num_critics, has_state),
      make(0 if from_state else config.num_critics, from_state),
      network_lib.EntropyWeight(config),
    )
    rng = np.random.default_rng(seed)
    for part in (self.policy, self.networks.critics, self.networks.targets):
      for variable in part.trainable_variables:
        variable.assign_add(rng.normal(0, 0.3, variable.shape).astype(np.float32))

  @property
  def policy(self):
    return self.networks.policy

  def parts(self):
    """Returns the variables of each objective, and the targets'."""
    return {
      'policy': self.policy.trainable_variables,
      'critics': self.networks.critics.trainable_variables,
      'targets': self.networks.targets.trainable_variables,
      'entropy_weight': self.networks.entropy_weight.parameters,
    }

  def losses(self, batch, key=(1, 2), distribution=None):
    return loss_lib.losses(
      self.networks,
      distribution or self.distribution,
      batch,
      tf.constant(key, tf.int32),
      self.config,
    )

  def gradients(self, batch, key=(1, 2), distribution=None):
    """Returns {loss: {part: one gradient per variable, None for none}}, and the loss's output."""
    with tf.GradientTape(persistent=True) as tape:
      output = self.losses(batch, key, distribution)
    return {
      name: {part: tape.gradient(loss, variables) for part, variables in self.parts().items()}
      for name, loss in output.losses.items()
    }, output


@pytest.fixture
def make_world(make_spec, make_config):
  """`make_world(action, observation, network, seed, **fields)` -> `World`: all networks differ, so
  that mix-ups show. network: settings of the network."""
  return lambda action='continuous', observation=None, network=None, seed=3, **fields: World(
    make_spec(action, observation),
    make_network_config(**(network or {})),
    make_config(**fields),
    seed,
  )


def random_step_types(num_rows, num_unrolls, rng):
  """Columns of whole episodes: LAST is always followed by FIRST, and some are masked."""
  rows = np.full((num_rows, num_unrolls), types.MID, np.uint8)
  rows[0] = rng.choice([types.FIRST, types.MID, types.LAST], num_unrolls)
  for t in range(1, num_rows):
    ends = (rng.random(num_unrolls) < 0.25) & (rows[t - 1] != types.LAST)
    rows[t] = np.where(
      rows[t - 1] == types.LAST, types.FIRST, np.where(ends, types.LAST, types.MID)
    )
  if num_rows > 3:
    rows[-4:, 0] = types.MID, types.LAST, types.FIRST, types.MID
  return rows


def random_actions(spec, shape, rng):
  """Returns a nest of `[*shape, ...]`."""

  def leaf(array):
    size = (*shape, *array.shape)
    if np.issubdtype(array.dtype, np.integer):
      return rng.integers(0, np.asarray(array.maximum) + 1, size).astype(array.dtype)
    return rng.uniform(-1, 1, size).astype(array.dtype)

  return tree.map_structure(leaf, spec)


@pytest.fixture
def make_sample():
  """`make_sample(world, seed, num_unrolls, step_type)`: time-major.

  A discount is 0 in a third of the rows and 1 or 0.7 elsewhere: terminations and truncations.
  """

  def make(world, seed=0, num_unrolls=None, step_type=None):
    rng = np.random.default_rng(seed)
    number = num_unrolls or world.config.batch_size
    shape = (world.config.unroll_rows, number)
    normal = lambda *size: rng.normal(size=size).astype(np.float32)
    pixels = lambda array: rng.integers(0, 256, (*shape, *array.shape)).astype(array.dtype)
    inputs = types.AgentInput(
      step_type=random_step_types(*shape, rng) if step_type is None else step_type,
      reward=2 * normal(*shape),
      discount=rng.choice(np.float32([0, 1, 0.7]), shape),
      previous_action=random_actions(world.spec.action, shape, rng),
      observation=tree.map_structure(
        lambda x: pixels(x) if x.dtype == np.uint8 else normal(*shape, *x.shape),
        world.spec.observation,
      ),
    )
    state = tf.nest.map_structure(
      lambda x: (
        normal(*x.shape) if x.dtype.is_floating else rng.integers(0, 256, x.shape).astype(np.uint8)
      ),
      world.acting.initial_state(number),
    )
    outputs = types.AgentOutput(random_actions(world.spec.action, shape, rng), ())
    version = rng.integers(0, 9, shape)
    probabilities = rng.uniform(0.01, 0.2, number)
    return types.Sample(
      types.Unroll(state, inputs, outputs, version),
      np.arange(number, dtype=np.uint64),
      probabilities,
    )

  return make
