"""The backward recursion."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.ops import recursion


@pytest.mark.parametrize('num_steps', [1, 2, 7])
def test_equals_a_loop(num_steps):
  rng = np.random.default_rng(num_steps)
  x, decay = rng.normal(size=(2, num_steps, 3)).astype(np.float32)
  expected, total = np.zeros_like(x), 0.0
  for t in reversed(range(num_steps)):
    total = x[t] + decay[t] * total
    expected[t] = total
  sums = recursion.backward_sums(tf.constant(x), tf.constant(decay))
  np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-6)


def test_an_unknown_number_of_rows_is_refused():

  @tf.function(input_signature=[tf.TensorSpec([None, 3])])
  def traced(x):
    return recursion.backward_sums(x, x)

  with pytest.raises(ValueError, match='must be static'):
    traced(tf.zeros([2, 3]))
