"""Uniform numbers from keys: their distribution, and that compiling does not change them."""

import numpy as np
import pytest
from scipy import stats
import tensorflow as tf

from seed_acme.ops import uniforms

_KEY = tf.constant([3, 7], tf.int32)


def test_they_are_uniform_and_independent_of_their_neighbours():
  numbers = uniforms.draw(_KEY, [500, 200]).numpy()
  assert numbers.dtype == np.float32
  assert stats.kstest(numbers.ravel(), 'uniform').pvalue > 1e-3
  for one, other in ((numbers[1:], numbers[:-1]), (numbers[:, 1:], numbers[:, :-1])):
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(1e5)


def test_0_and_1_are_never_among_them(monkeypatch):
  bits = tf.constant([0, -1, 2**31 - 1, -(2**31)], tf.int32)
  monkeypatch.setattr(tf.random, 'stateless_uniform', lambda *args, **kwargs: bits)
  smallest = 2.0**-24
  np.testing.assert_array_equal(
    uniforms.draw(_KEY, [4]), [smallest, 1 - smallest, 1 - smallest, smallest]
  )


def test_times_any_number_of_choices_they_stay_below_it():
  numbers = np.arange(1, 100_000, dtype=np.float32)
  assert (np.floor(np.float32(1 - 2.0**-24) * numbers) == numbers - 1).all()


def test_the_key_decides():
  first, again, other = (
    uniforms.draw(tf.constant(key), [5, 3]).numpy() for key in ([1, 2], [1, 2], [1, 3])
  )
  np.testing.assert_array_equal(first, again)
  assert (first != other).all()


@pytest.mark.slow
@pytest.mark.parametrize('shape', [[1], [8, 40], [3, 5, 2]])
@pytest.mark.parametrize('jit_compile', [False, True])
def test_in_a_graph_and_compiled_by_xla_they_are_the_same(shape, jit_compile):
  def draw(key):
    keys = (key, uniforms.fold_in(key, 5), *uniforms.split(key, 3))
    return [uniforms.draw(one, shape) for one in keys]

  compiled = tf.function(draw, jit_compile=jit_compile, autograph=False)
  for key in ([3, 7], [-3, 7], [3, -7], [-(2**31), 2**31 - 1]):
    for result, expected in zip(compiled(tf.constant(key)), draw(tf.constant(key))):
      np.testing.assert_array_equal(result, expected)


def test_keys_that_are_made_of_one_give_independent_numbers():
  folded = [uniforms.fold_in(_KEY, number) for number in (0, 1)]
  keys = (_KEY, *uniforms.split(_KEY, 3), *folded, *uniforms.split(folded[0], 3))
  numbers = [uniforms.draw(key, [10_000]).numpy() for key in keys]
  correlations = np.corrcoef(numbers)[~np.eye(len(keys), dtype=bool)]
  assert (np.abs(correlations) < 4 / 100).all()


def test_the_shape_may_be_a_tensor():
  traced = tf.function(
    lambda x: uniforms.draw(_KEY, tf.shape(x)),
    input_signature=[tf.TensorSpec([4, None], tf.float32)],
    autograph=False,
  )
  np.testing.assert_array_equal(traced(np.zeros((4, 3))), uniforms.draw(_KEY, [4, 3]))
