"""Several gradient steps in one graph."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.learning import consecutive


@pytest.mark.parametrize('number', [1, 2, 5])
@pytest.mark.parametrize('xla', [False, True])
def test_each_step_sees_what_the_one_before_has_left(number, xla):
  variable = tf.Variable([1.0, 2.0])
  factors = np.linspace(0.5, 2, number).astype(np.float32)
  offsets = np.arange(2 * number, dtype=np.float32).reshape(number, 2)

  def step(factor, offset):
    variable.assign(factor * variable + offset)
    return variable + 1

  @tf.function(jit_compile=xla or None, autograph=False)
  def steps(factors, offsets):
    return consecutive.for_each_row(step, factors, offsets)

  returned = steps(tf.constant(factors), tf.constant(offsets))
  expected, seen = np.array([1, 2], np.float32), []
  for factor, offset in zip(factors, offsets):
    expected = factor * expected + offset
    seen.append(expected + 1)
  np.testing.assert_allclose(variable, expected, rtol=1e-6)
  np.testing.assert_allclose(returned, seen, rtol=1e-6)


def test_a_step_that_is_not_finite_leaves_the_others_alone():
  rows = np.float32([[1], [np.nan], [2]])
  square = tf.function(lambda x: consecutive.for_each_row(tf.square, x), autograph=False)
  np.testing.assert_array_equal(square(tf.constant(rows)), rows**2)
