"""The rows that are learnt from, and the state that enters them."""

from __future__ import annotations

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import learnt_rows
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.networks import build

_T, _B = 3, 2
_SPEC = types.EnvironmentSpec(
  observation=specs.Array((2,), np.float32), action=specs.DiscreteArray(3)
)


def _config(overlap):
  return r2d2_config.R2D2Config(unroll_length=_T, overlap=overlap, batch_size=_B)


def _network():
  tf.random.set_seed(1)
  return build.make_q_network(
    config_lib.NetworkConfig(mlp_sizes=(4,), core='lstm', core_size=5), _SPEC
  )


def _unroll(network, num_rows, step_type=types.MID):
  """Returns an unroll in which every reward is the number of its row."""
  rng = np.random.default_rng(2)
  shape = (num_rows, _B)
  rows = np.repeat(np.arange(num_rows, dtype=np.float32)[:, None], _B, axis=1)
  inputs = types.AgentInput(
    np.full(shape, step_type, np.uint8),
    rows,
    np.ones(shape, np.float32),
    np.zeros(shape, np.int32),
    rng.normal(size=(*shape, 2)).astype(np.float32),
  )
  outputs = types.AgentOutput(rows.astype(np.int32), types.QOutput(rows[..., None]))
  state = tf.nest.map_structure(
    lambda x: rng.normal(size=x.shape).astype(np.float32), network.initial_state(_B)
  )
  return types.Unroll(state, inputs, outputs, np.zeros(shape, np.int64))


@pytest.mark.parametrize('overlap', [0, 1, 5])
def test_the_last_rows_are_learnt_from(overlap):
  unroll = _unroll(_network(), overlap + _T + 1)
  inputs, outputs = learnt_rows.learnt_rows(unroll, _config(overlap))
  wanted = np.arange(overlap, overlap + _T + 1)
  np.testing.assert_array_equal(inputs.reward[:, 0], wanted)
  np.testing.assert_array_equal(outputs.action[:, 1], wanted)
  np.testing.assert_array_equal(outputs.prediction.q_values[:, 0, 0], wanted)


@pytest.mark.parametrize('num_rows', [_T + 1, 5 + _T, 5 + _T + 2])
def test_an_unroll_of_another_length_is_refused(num_rows):
  with pytest.raises(ValueError, match=rf'holds {num_rows} rows.*= 9 are needed'):
    learnt_rows.learnt_rows(_unroll(_network(), num_rows), _config(5))


def test_without_overlap_the_stored_state_enters():
  network = _network()
  unroll = _unroll(network, _T + 1)
  assert learnt_rows.entering_state(network, unroll, _config(0)) is unroll.initial_state


@pytest.mark.parametrize('overlap', [1, 5])
def test_with_overlap_it_is_the_state_after_stepping_through_the_rows(overlap):
  network = _network()
  unroll = _unroll(network, overlap + _T + 1)
  state = unroll.initial_state
  for t in range(overlap):
    row = tf.nest.map_structure(lambda x: x[t], unroll.inputs)  # noqa: B023
    _, state = network(row, state)
  found = learnt_rows.entering_state(network, unroll, _config(overlap))
  for a, b in zip(tf.nest.flatten(found), tf.nest.flatten(state)):
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_rows_that_are_learnt_from_do_not_enter_the_state():
  network = _network()
  unroll = _unroll(network, 5 + _T + 1)
  before = learnt_rows.entering_state(network, unroll, _config(5))
  unroll.inputs.observation[5:] = np.nan
  after = learnt_rows.entering_state(network, unroll, _config(5))
  for a, b in zip(tf.nest.flatten(before), tf.nest.flatten(after)):
    np.testing.assert_array_equal(a, b)


def test_no_gradient_flows_through_the_burn_in():
  network = _network()
  unroll = tf.nest.map_structure(tf.convert_to_tensor, _unroll(network, 5 + _T + 1))
  with tf.GradientTape() as tape:
    tape.watch(unroll.initial_state)
    state = learnt_rows.entering_state(network, unroll, _config(5))
    total = tf.add_n([tf.reduce_sum(x) for x in tf.nest.flatten(state)])
  sources = (*network.trainable_variables, *tf.nest.flatten(unroll.initial_state))
  assert all(g is None for g in tape.gradient(total, sources))
