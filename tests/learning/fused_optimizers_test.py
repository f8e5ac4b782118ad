"""Steps by one kernel equal Sonnet's, whose variables they use."""

import numpy as np
import pytest
import sonnet as snt
import tensorflow as tf

from seed_acme.learning import fused_optimizers

_MAKERS = {
  'adam': lambda module: module.Adam(tf.Variable(3e-2), beta1=0.8, beta2=0.99, epsilon=1e-3),
  'rmsprop': lambda module: module.RMSProp(
    tf.Variable(1e-2), decay=0.9, momentum=0.5, epsilon=1e-3
  ),
  'rmsprop without momentum': lambda module: module.RMSProp(tf.Variable(1e-2), epsilon=1e-10),
  'centered rmsprop': lambda module: module.RMSProp(tf.Variable(1e-2), centered=True),
}
_SHAPES = ((3, 4), (5,), ())


def _parameters():
  random = np.random.default_rng(0)
  return [tf.Variable(random.normal(size=shape).astype(np.float32)) for shape in _SHAPES]


def _gradients(step):
  """Gradients of very different sizes, some of them 0."""
  random = np.random.default_rng(step)
  return [
    tf.constant(random.normal(size=shape) * 10.0 ** random.integers(-7, 4), tf.float32)
    for shape in _SHAPES[:-1]
  ] + [tf.zeros(_SHAPES[-1])]


def _expect_equal(actual, expected):
  for one, other in zip(actual, expected, strict=True):
    assert one.name == other.name and one.dtype == other.dtype
    np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize('xla', [False, True])
@pytest.mark.parametrize('name', _MAKERS)
def test_thirty_steps_equal_sonnets_with_a_rate_that_changes(name, xla):
  ours, theirs = (_MAKERS[name](module) for module in (fused_optimizers, snt.optimizers))
  parameters, expected = _parameters(), _parameters()
  ours.apply([tf.zeros_like(p) for p in parameters], parameters)
  apply = tf.function(lambda gradients: ours.apply(gradients, parameters), jit_compile=xla)
  theirs.apply([tf.zeros_like(p) for p in expected], expected)
  for step in range(30):
    for optimizer in (ours, theirs):
      optimizer.learning_rate.assign(1e-2 / (1 + step))
    apply(_gradients(step))
    theirs.apply(_gradients(step), expected)
  _expect_equal(parameters, expected)
  _expect_equal(ours.variables, theirs.variables)
  moved = [not np.array_equal(p, before) for p, before in zip(parameters, _parameters())]
  assert moved == [True, True, False]


@pytest.mark.parametrize('name', _MAKERS)
def test_a_gather_moves_the_gathered_rows_alone(name):
  ours, theirs = (_MAKERS[name](module) for module in (fused_optimizers, snt.optimizers))
  results = []
  for optimizer in (ours, theirs):
    table = tf.Variable(tf.ones([4, 2]))
    for rows in ([0, 1], [1, 1]):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(tf.gather(table, rows)))
      gradient = tape.gradient(loss, table)
      assert isinstance(gradient, tf.IndexedSlices)
      optimizer.apply([gradient], [table])
    results.append(table.numpy())
  np.testing.assert_array_equal(results[0], results[1])
  assert (results[0][2:] == 1).all() and (results[0][:2] < 1).all()
