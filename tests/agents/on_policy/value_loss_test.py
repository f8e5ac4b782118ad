"""The value loss against slow loops: squared, Huber, clipped, masked."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.agents.on_policy import resolve

_SHAPE = (5, 4)


def _data(seed=0):
  rng = np.random.default_rng(seed)
  values, targets, behaviour = rng.normal(0, 1.5, (3, *_SHAPE))
  return values, targets, behaviour, rng.random(_SHAPE) < 0.7


def _one(value, target, behaviour, config):

  def of(value):
    error = target - value
    if config.value_loss == 'mse':
      return 0.5 * error**2
    if abs(error) <= config.huber_delta:
      return 0.5 * error**2
    return config.huber_delta * (abs(error) - 0.5 * config.huber_delta)

  if not config.value_clip:
    return of(value)
  return max(
    of(value), of(min(max(value, behaviour - config.value_clip), behaviour + config.value_clip))
  )


def _expected(values, targets, behaviour, mask, config):
  return np.mean(
    [_one(values[i], targets[i], behaviour[i], config) for i in zip(*np.nonzero(mask))]
  )


def _run(values, targets, behaviour, mask, config, gradients):
  values, targets, behaviour = (tf.constant(x, tf.float32) for x in (values, targets, behaviour))
  loss, [gradient] = gradients(
    lambda: resolve.algorithm(config).value_loss(values, targets, behaviour, tf.constant(mask)),
    [values],
  )
  return loss, gradient


@pytest.mark.parametrize('clip', [0.0, 0.4])
@pytest.mark.parametrize(
  'fields',
  [
    {'value_loss': 'mse'},
    {'value_loss': 'huber', 'huber_delta': 1.0},
    {'value_loss': 'huber', 'huber_delta': 0.3},
  ],
)
def test_value_and_gradient_equal_a_slow_loop(fields, clip, make_config, gradients):
  config = make_config(value_clip=clip, **fields)
  values, targets, behaviour, mask = _data()
  loss, gradient = _run(values, targets, behaviour, mask, config, gradients)
  expected, step = np.zeros(_SHAPE), 1e-6
  for i in np.ndindex(_SHAPE):
    change = np.zeros(_SHAPE)
    change[i] = step
    up, down = (
      _expected(values + sign * change, targets, behaviour, mask, config) for sign in (1, -1)
    )
    expected[i] = (up - down) / (2 * step)
  np.testing.assert_allclose(loss, _expected(values, targets, behaviour, mask, config), rtol=1e-5)
  np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-5)


def test_the_squared_error_is_halved(make_config, gradients):
  loss, gradient = _run([[1.0]], [[4.0]], [[0.0]], [[True]], make_config(), gradients)
  assert loss == 4.5
  np.testing.assert_array_equal(gradient, [[-3.0]])


@pytest.mark.parametrize(
  'value, expected_loss, expected_gradient',
  [
    (0.3, 0.5 * 0.7**2, -0.7),  # moved by less than the clip
    (0.8, 0.5 * 0.5**2, 0.0),  # moved towards the target by more than the clip: no gradient
    (-0.8, 0.5 * 1.8**2, -1.8),  # moved away by more than the clip: may come back
    (3.0, 0.5 * 2.0**2, 2.0),  # overshot by more than the clipped value misses
  ],
)
def test_clipping_by_hand(value, expected_loss, expected_gradient, make_config, gradients):
  """V_old 0, target 1, clip 0.5."""
  loss, gradient = _run(
    [[value]], [[1.0]], [[0.0]], [[True]], make_config(value_clip=0.5), gradients
  )
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-6)
  np.testing.assert_allclose(gradient[0, 0], expected_gradient, rtol=1e-6)


@pytest.mark.parametrize('clip', [0.0, 0.4])
@pytest.mark.parametrize('value_loss', ['mse', 'huber'])
def test_nan_in_masked_entries_changes_no_bit(value_loss, clip, make_config, gradients):
  config = make_config(value_loss=value_loss, value_clip=clip)
  values, targets, behaviour, mask = _data()
  expected = _run(values, targets, behaviour, mask, config, gradients)
  nan = np.where(mask, 0.0, np.nan)
  actual = _run(values + nan, targets + nan, behaviour + nan, mask, config, gradients)
  for a, b in zip(actual, expected):
    np.testing.assert_array_equal(a, b)
  assert not actual[1][~mask].any()


def test_all_masked_is_0(make_config, gradients):
  nan = np.full(_SHAPE, np.nan)
  loss, gradient = _run(
    nan, nan, nan, np.zeros(_SHAPE, bool), make_config(value_clip=0.1), gradients
  )
  assert loss == 0.0 and not gradient.any()
