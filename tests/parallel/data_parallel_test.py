from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.networks import build
from seed_acme.parallel import data_parallel

# The same device several times, because the split does not depend on where it is computed.
_DEVICES = ['cpu:0'] * 4


class _Doubling:
  """A function that records the sizes it was called with."""

  def __init__(self):
    self.sizes = []
    self.w = tf.Variable([2.0, 3.0])

  def __call__(self, x, label):
    self.sizes.append(x.shape[1])
    return x * self.w, label + 1


def _run(function, devices, *arguments):
  """Returns the result, and gradients of its first part, in a graph as in real use."""

  @tf.function(autograph=False)
  def graph():
    x = tf.constant(arguments[0])
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(x)
      first, second = data_parallel.over_batch(function, (1, 0), (1, 0), x, *arguments[1:])
      loss = tf.reduce_sum(tf.square(first))
      other = tf.reduce_sum(first)
    return first, second, *tape.gradient(loss, [function.w, x]), tape.gradient(other, function.w)

  with data_parallel.on_devices(devices):
    return [x.numpy() for x in graph()]


def test_a_batch_is_dealt_out_evenly_and_comes_back_in_order():
  x = np.random.default_rng(1).normal(size=(3, 10, 2)).astype(np.float32)
  function, label = _Doubling(), np.arange(10, dtype=np.uint8)
  whole = _run(_Doubling(), _DEVICES[:1], x, label)
  dealt = _run(function, _DEVICES, x, label)
  assert function.sizes == [3, 3, 2, 2]
  for one, other in zip(whole, dealt):
    np.testing.assert_allclose(one, other, rtol=1e-5)
  np.testing.assert_array_equal(dealt[1], label + 1)
  np.testing.assert_allclose(dealt[2], (2 * x * x * [2, 3]).sum((0, 1)), rtol=1e-5)


def test_fewer_rows_than_devices_leave_devices_idle():
  function = _Doubling()
  _run(function, _DEVICES, np.ones((1, 3, 2), np.float32), np.zeros(3, np.uint8))
  assert function.sizes == [1, 1, 1]


def test_one_device_changes_nothing():
  """The function is called unchanged, and no operation is added to the graph."""
  function = lambda x: x
  x = tf.ones([4, 2])
  with data_parallel.on_devices(_DEVICES[:1]):
    assert data_parallel.over_batch(function, (0,), 0, x) is x
  assert data_parallel.over_batch(function, (0,), 0, x) is x


def test_a_function_within_a_share_is_not_dealt_out_again():
  inner, sizes = _Doubling(), []

  def call(x, label):
    sizes.append(x.shape[1])
    return data_parallel.over_batch(inner, (1, 0), (1, 0), x, label)

  call.w = inner.w
  _run(call, _DEVICES[:2], np.ones((1, 4, 2), np.float32), np.zeros(4, np.uint8))
  assert sizes == inner.sizes == [2, 2]


def test_a_batch_of_unknown_size_is_refused():
  @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 2], tf.float32)])
  def graph(x):
    return data_parallel.over_batch(lambda x: x, (0,), 0, x)

  with data_parallel.on_devices(_DEVICES), pytest.raises(ValueError, match='size of the batch'):
    graph(tf.ones([4, 2]))


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm'])
def test_a_network_says_the_same_on_several_devices(core):
  spec = types.EnvironmentSpec(specs.Array((2,), np.float32), specs.DiscreteArray(3))
  config = config_lib.NetworkConfig(mlp_sizes=(8,), core=core, core_size=4)
  network = build.make_actor_critic(config, spec, 3)
  rng = np.random.default_rng(2)
  inputs = types.AgentInput(
    step_type=rng.integers(0, 3, (5, 6)).astype(np.uint8),
    reward=np.zeros((5, 6), np.float32),
    discount=np.ones((5, 6), np.float32),
    previous_action=np.zeros((5, 6), np.int32),
    observation=rng.normal(size=(5, 6, 2)).astype(np.float32),
  )
  state = network.initial_state(6)

  def run(devices):
    graph = tf.function(lambda: network.unroll(inputs, state), autograph=False)
    with data_parallel.on_devices(devices):
      return tf.nest.flatten(graph())

  for one, other in zip(run(_DEVICES[:1]), run(_DEVICES)):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
