"""Fixtures of R2D2's tests: a small network, and made-up samples with episode ends inside."""

from __future__ import annotations

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.r2d2 import loss as loss_lib
from seed_acme.networks import build

_NUM_UNROLLS, _NUM_ACTIONS = 6, 3
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((4,), np.float32), action=specs.DiscreteArray(_NUM_ACTIONS)
)


class _Networks(loss_lib.Networks):
  @property
  def trainable_variables(self):
    return self.online.trainable_variables

  def initial_state(self, batch_size):
    return self.online.initial_state(batch_size)


@pytest.fixture
def make_network():
  """`make_network(core, seed)`: online and target networks differ, so that mix-ups show."""

  def make(core='lstm', seed=3):
    tf.random.set_seed(seed)
    network_config = config_lib.NetworkConfig(
      mlp_sizes=(8,),
      core=core,
      core_size=6,
      head_sizes=(5,),
      previous_action_input=True,
      previous_reward_input=True,
      previous_reward_bound=0.0,
    )
    network = _Networks(*(build.make_q_network(network_config, _SPEC) for _ in range(2)))
    rng = np.random.default_rng(seed)
    for variable in (*network.online.variables, *network.target.variables):
      variable.assign(variable + rng.normal(0, 0.4, variable.shape).astype(np.float32))
    return network

  return make


def _step_types(num_rows, num_padding, rng):
  """Columns of whole episodes: LAST is always followed by FIRST; padding is LAST, then FIRST."""
  rows = np.full((num_rows, _NUM_UNROLLS), types.MID, np.uint8)
  rows[0] = rng.choice([types.FIRST, types.MID, types.LAST], _NUM_UNROLLS)
  for t in range(1, num_rows):
    ends = (rng.random(_NUM_UNROLLS) < 0.25) & (rows[t - 1] != types.LAST)
    rows[t] = np.where(
      rows[t - 1] == types.LAST, types.FIRST, np.where(ends, types.LAST, types.MID)
    )
  for b, number in enumerate(num_padding):
    rows[:number, b] = types.LAST
    if 0 < number < num_rows:
      rows[number, b] = types.FIRST
  return rows


@pytest.fixture
def make_sample():
  """`make_sample(network, num_rows, seed, num_padding)`: six unrolls, time-major.

  Terminations and truncations are mixed: a discount is 0 in a third of the rows and 1 or 0.7
  elsewhere. num_padding: LAST-typed rows at the head of the first unrolls.
  """

  def make(network, num_rows, seed=0, num_padding=()):
    rng = np.random.default_rng(seed)
    shape = (num_rows, _NUM_UNROLLS)
    normal = lambda *size: rng.normal(size=size).astype(np.float32)
    inputs = types.AgentInput(
      step_type=_step_types(num_rows, num_padding, rng),
      reward=3 * normal(*shape),
      discount=rng.choice(np.float32([0, 1, 0.7]), shape),
      previous_action=rng.integers(0, _NUM_ACTIONS, shape).astype(np.int32),
      observation=normal(*shape, 4),
    )
    outputs = types.AgentOutput(
      action=rng.integers(0, _NUM_ACTIONS, shape).astype(np.int32),
      prediction=types.QOutput(normal(*shape, _NUM_ACTIONS)),
    )
    state = tf.nest.map_structure(lambda x: normal(*x.shape), network.initial_state(_NUM_UNROLLS))
    unroll = types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))
    probabilities = rng.uniform(0.01, 0.2, _NUM_UNROLLS)
    return types.Sample(unroll, np.arange(_NUM_UNROLLS, dtype=np.uint64), probabilities)

  return make
