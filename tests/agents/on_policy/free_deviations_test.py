"""Standard deviations that do not depend on the observation."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types


def _params(network, observation):
  shape = observation.shape[:1]
  inputs = types.AgentInput(
    tf.fill(shape, tf.constant(types.MID, tf.uint8)),
    tf.zeros(shape),
    tf.ones(shape),
    tf.zeros([*shape, 2]),
    observation,
  )
  return network(inputs, ())[0].policy_params.numpy()


@pytest.mark.parametrize('free', [False, True])
def test_free_deviations_do_not_depend_on_the_observation(free, make_config, make_network):
  network = make_network(make_config(state_independent_std=free, initial_std=0.6), 'continuous')
  params = _params(network, tf.random.stateless_normal([5, 4], [1, 2]))
  spread = np.ptp(params, axis=0)
  assert (spread[:2] > 0.01).all(), 'the means depend on it'
  assert (spread[2:] > 0.01).all() == (not free)
  if free:
    assert not spread[2:].any()
    [variable] = [v for v in network.trainable_variables if 'free_std' in v.name]
    variable.assign([9.0, 9.0, 0.0, 1.0])  # the means in it must not be used
    moved = _params(network, tf.random.stateless_normal([5, 4], [1, 2]))
    np.testing.assert_array_equal(moved[:, :2], params[:, :2])
    std = network.distribution.normal(moved).std.numpy()
    np.testing.assert_allclose(std[:, 0], 0.6, rtol=1e-5)
    assert (std[:, 1] > 0.7).all()


def test_discrete_actions_have_no_free_deviations(make_config, make_network):
  network = make_network(make_config(state_independent_std=True), 'discrete')
  assert not [v for v in network.variables if 'free_std' in v.name]
