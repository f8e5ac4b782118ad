"""Standard deviation functions: value at 0, minimum, and gradients within and outside the clip."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.ops import std_functions
from seed_acme.ops import straight_through

_ALL = [std_functions.softplus, std_functions.safe_exp]


def _value_and_gradient(function, s):
  s = tf.constant(s, tf.float32)
  with tf.GradientTape() as tape:
    tape.watch(s)
    value = function(s)
  return value.numpy(), tape.gradient(value, s).numpy()


@pytest.mark.parametrize('make', _ALL)
@pytest.mark.parametrize(
  'std_at_zero, min_std', [(0.5, 1e-3), (1.0, 0.0), (1.0, 0.2), (30.0, 1e-3), (2e-3, 1e-3)]
)
def test_parameter_0_gives_the_chosen_std(make, std_at_zero, min_std):
  function = make(std_at_zero=std_at_zero, min_std=min_std)
  assert float(function(tf.zeros([]))) == pytest.approx(std_at_zero, rel=1e-5)


@pytest.mark.parametrize('make', _ALL)
def test_the_minimum_holds_and_the_function_rises(make):
  function = make(std_at_zero=0.5, min_std=0.1)
  values = function(np.linspace(-14, 14, 200)).numpy()
  assert (np.diff(values) >= 0).all() and values[-1] > values[100] > values[0]
  extremes, gradients = _value_and_gradient(function, [-3e38, -1e4, 1e4, 3e38])
  np.testing.assert_allclose(extremes[:2], 0.1, rtol=1e-5)
  assert np.isfinite(extremes).all() and np.isfinite(gradients).all()


def test_softplus_is_its_definition():
  s = np.linspace(-5, 5, 21)
  shift = np.log(np.expm1(0.5 - 0.01))
  function = std_functions.softplus(std_at_zero=0.5, min_std=0.01)
  values, gradients = _value_and_gradient(function, s)
  np.testing.assert_allclose(values, np.log1p(np.exp(s + shift)) + 0.01, rtol=1e-5)
  np.testing.assert_allclose(gradients, 1 / (1 + np.exp(-s - shift)), rtol=1e-5)


def test_safe_exp_is_clipped_and_its_gradient_is_not():
  s = np.array([-100.0, -15.0, -2.0, 0.0, 3.0, 15.0, 100.0])
  shift = np.log(0.5 - 0.01)
  function = std_functions.safe_exp(std_at_zero=0.5, min_std=0.01)
  values, gradients = _value_and_gradient(function, s)
  exponentials = np.exp(np.clip(s + shift, -15, 15))
  np.testing.assert_allclose(values, exponentials + 0.01, rtol=1e-5)
  np.testing.assert_allclose(gradients, exponentials, rtol=1e-5)
  assert (gradients[[0, -1]] > 0).all()


@pytest.mark.parametrize('make', _ALL)
@pytest.mark.parametrize(
  'std_at_zero, min_std, words',
  [
    (0.1, 0.1, r'agent.initial_std \(0.1\) must be greater than agent.min_std \(0.1\)'),
    (np.inf, 0.1, r'agent.initial_std \(inf\)'),
    (1.0, -0.1, r'agent.min_std \(-0.1\) must be >= 0'),
  ],
)
def test_impossible_settings_are_named(make, std_at_zero, min_std, words):
  with pytest.raises(types.UserError, match=words):
    make(std_at_zero=std_at_zero, min_std=min_std)


def test_a_value_at_0_beyond_the_clip_of_safe_exp_is_refused():
  said = (
    r'agent.initial_std \(1e-07\) less agent.min_std \(0.0\) must be between 3.1e-07 and '
    r'3.3e[+]06'
  )
  with pytest.raises(types.UserError, match=said):
    std_functions.safe_exp(std_at_zero=1e-7, min_std=0.0)


def test_the_straight_through_clip_is_exact_at_every_size():
  x = [-3e38, -1e9, -2.0, 0.1, 2.0, 1e9, 3e38]
  value, gradient = _value_and_gradient(lambda x: straight_through.clip(x, -1.5, 1.0), x)
  np.testing.assert_array_equal(value, np.float32([-1.5, -1.5, -1.5, 0.1, 1, 1, 1]))
  np.testing.assert_array_equal(gradient, np.ones(7))


@pytest.mark.parametrize('kind', ['softplus', 'safe_exp'])
def test_configurations_name_them(kind):
  settings = {'std_at_zero': 0.7, 'min_std': 0.1}
  x = tf.constant([-3.0, 0.0, 2.0])
  named = std_functions.make(kind, **settings)
  np.testing.assert_array_equal(named(x), getattr(std_functions, kind)(**settings)(x))
