"""The self-adjusting weight: start, bounds, direction."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.ops import lagrange


def _initial(weight, speed):
  return lagrange.initial_parameter(
    weight, speed=speed, weight_name='a_weight', speed_name='a_speed'
  )


@pytest.mark.parametrize('speed', [0.5, 1.0, 10.0])
@pytest.mark.parametrize('weight', [1e-5, 0.01, 1.0, 30.0])
def test_starts_at_the_weight_it_is_given(weight, speed):
  parameter = tf.constant(_initial(weight, speed))
  np.testing.assert_allclose(lagrange.weight(parameter, speed=speed), weight, rtol=1e-5)


@pytest.mark.parametrize('weight, bound', [(1e-30, -20.0), (1e30, 20.0)])
def test_the_start_is_kept_within_bounds(weight, bound):
  assert _initial(weight, 4.0) == bound / 4.0


def _gradient(parameter, slack, speed=10.0):
  variable = tf.Variable(parameter, dtype=tf.float32)
  with tf.GradientTape() as tape:
    loss = lagrange.adjustment_loss(
      lagrange.weight(variable, speed=speed), tf.constant(slack, tf.float32)
    )
  return float(tape.gradient(loss, variable))


def test_gradient_is_speed_times_weight_times_slack():
  np.testing.assert_allclose(_gradient(0.1, 0.3), 10.0 * np.exp(1.0) * 0.3, rtol=1e-5)
  np.testing.assert_allclose(_gradient(0.1, -0.3), -10.0 * np.exp(1.0) * 0.3, rtol=1e-5)


@pytest.mark.parametrize('parameter, way_out, way_back', [(2.5, -1.0, 1.0), (-2.5, 1.0, -1.0)])
def test_outside_the_bounds_there_is_only_a_way_back(parameter, way_out, way_back):
  bounded = float(lagrange.weight(tf.constant(parameter), speed=10.0))
  np.testing.assert_allclose(bounded, np.exp(np.sign(parameter) * 20.0), rtol=1e-5)
  assert _gradient(parameter, way_out) == 0.0
  assert _gradient(parameter, way_back) * way_back > 0.0


def test_no_gradient_passes_into_the_slack():
  slack = tf.Variable(1.0)
  with tf.GradientTape() as tape:
    loss = lagrange.adjustment_loss(tf.constant(2.0), slack)
  assert tape.gradient(loss, slack) is None


@pytest.mark.parametrize('weight', [0.0, -1.0, float('nan')])
def test_a_weight_without_logarithm_is_refused(weight):
  with pytest.raises(types.UserError, match='a_weight .* must be > 0'):
    _initial(weight, 10.0)


def test_a_speed_of_0_is_refused():
  with pytest.raises(types.UserError, match=r'a_speed \(0.0\)'):
    _initial(1.0, 0.0)
