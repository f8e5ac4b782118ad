"""Separate networks for policy and value: they share nothing, and unrolling equals stepping."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.networks import build
from seed_acme.networks import separate

_T, _B, _P = 6, 3, 4
_VECTOR, _IMAGE = specs.Array((5,), np.float32), specs.Array((4, 4), np.uint8)


def _network(core, observation=_VECTOR, **settings):
  tf.random.set_seed(2)
  return build.make_actor_critic(
    config_lib.NetworkConfig(
      mlp_sizes=(6,), core=core, core_size=4, separate_value_network=True, **settings
    ),
    types.EnvironmentSpec(observation=observation, action=specs.DiscreteArray(_P)),
    _P,
  )


def _inputs(observation=_VECTOR):
  rng = np.random.default_rng(0)
  shape = (_T, _B)
  return types.AgentInput(
    step_type=tf.constant(rng.integers(0, 3, shape), tf.uint8),
    reward=tf.zeros(shape),
    discount=tf.ones(shape),
    previous_action=tf.zeros(shape, tf.int32),
    observation=tf.constant(
      rng.integers(0, 9, (*shape, *observation.shape)).astype(observation.dtype)
    ),
  )


def _state(network):
  rng = np.random.default_rng(1)
  return tf.nest.map_structure(
    lambda x: tf.cast(rng.integers(0, 3, x.shape), x.dtype), network.initial_state(_B)
  )


@pytest.mark.slow
@pytest.mark.parametrize(
  'core, settings, observation',
  [('none', {}, _VECTOR), ('gru', {}, _VECTOR), ('lstm', {'frame_stack': 2}, _IMAGE)],
)
def test_unroll_equals_steps(core, settings, observation):
  network, inputs = _network(core, observation, **settings), _inputs(observation)
  state = _state(network)
  predictions, last = network.unroll(inputs, state)
  assert predictions.policy_params.shape == (_T, _B, _P)
  assert predictions.value.shape == (_T, _B)
  for t in range(_T):
    prediction, state = network(tf.nest.map_structure(lambda x: x[t], inputs), state)  # noqa: B023
    np.testing.assert_allclose(
      prediction.policy_params, predictions.policy_params[t], rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(prediction.value, predictions.value[t], rtol=1e-5, atol=1e-6)
  tf.nest.assert_same_structure(state, last)
  for a, b in zip(tf.nest.flatten(state), tf.nest.flatten(last)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_without_memory_there_is_no_state():
  network = _network('none')
  assert network.initial_state(_B) == ()
  assert network(tf.nest.map_structure(lambda x: x[0], _inputs()), ())[1] == ()


def test_with_memory_each_network_has_its_own():
  state = _network('lstm').initial_state(_B)
  assert isinstance(state, separate.SeparateState)
  assert len(tf.nest.flatten(state)) == 2 * len(tf.nest.flatten(state.policy)) > 0
  assert all(x.shape[0] == _B for x in tf.nest.flatten(state))


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm'])
def test_neither_gradient_reaches_the_other_networks_weights(core):
  network, inputs = _network(core), _inputs()
  variables = network.trainable_variables
  reached = {}
  for name in ('policy_params', 'value'):
    with tf.GradientTape() as tape:
      prediction, _ = network.unroll(inputs, _state(network))
      x = tf.reduce_sum(tf.square(getattr(prediction, name)))
    gradients = tape.gradient(x, variables)
    reached[name] = [v.name for v, g in zip(variables, gradients) if g is not None]
  assert set(reached['policy_params']).isdisjoint(reached['value'])
  assert reached['policy_params'] + reached['value'] == [v.name for v in variables]
  assert all(name.startswith('policy/') for name in reached['policy_params'])
  assert all(name.startswith('value/') for name in reached['value'])


def test_every_variable_has_its_own_name_and_start():
  network = _network('lstm')
  names = [v.name for v in network.variables]
  assert len(set(names)) == len(names) == len(network.trainable_variables)
  weights = {name: v.numpy() for name, v in zip(names, network.variables)}
  torso = [x for name, x in weights.items() if 'linear_0/w' in name]
  assert len(torso) == 2 and np.abs(torso[0] - torso[1]).max() > 0.01
