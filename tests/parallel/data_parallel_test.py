from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf
import tree

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


class _Twins:
  """Host 0 of two; the other has the same rows. Records the sizes of the arrays that are sent."""

  index, number = 0, 2

  def __init__(self):
    self.sent = []

  def joined(self, leaves, axes):
    self.sent += [x.shape.as_list() for x in leaves]
    return [tf.concat([x, x], axis=axis) for x, axis in zip(leaves, axes)]


def _rows(num_rows, batch_size):
  rng = np.random.default_rng(2)
  shape = (num_rows, batch_size)
  return types.AgentInput(
    step_type=rng.integers(0, 3, shape).astype(np.uint8),
    reward=np.zeros(shape, np.float32),
    discount=np.ones(shape, np.float32),
    previous_action=np.zeros(shape, np.int32),
    observation=rng.integers(0, 255, (*shape, 4, 4, 1)).astype(np.uint8),
  )


def _twice(inputs, axis):
  return tree.map_structure(lambda x: np.concatenate([x, x], axis=axis), inputs)


@pytest.mark.parametrize('num_devices', [1, 2])
def test_observations_and_states_stay_on_their_host(num_devices):
  """Predictions, and gradients through a state that is passed on, are those of the whole batch."""
  image = specs.BoundedArray((4, 4, 1), np.uint8, 0, 255)
  spec = types.EnvironmentSpec(image, specs.DiscreteArray(3))
  config = config_lib.NetworkConfig(
    torso='mlp', mlp_sizes=(8,), core='lstm', core_size=4, frame_stack=3
  )
  network = build.make_actor_critic(config, spec, 3)
  own, first, last = _rows(6, 3), lambda x: x[:-1], lambda x: x[-1]
  whole = _twice(own, axis=1)
  mixed = whole._replace(observation=own.observation)

  def learn(inputs, batch_size, devices, *hosts):
    def graph():
      with tf.GradientTape() as tape:
        state = network.initial_state(batch_size)
        output, state = network.unroll(tree.map_structure(first, inputs), state)
        bootstrap, state = network(tree.map_structure(last, inputs), state)
        error = output.value - bootstrap.value + tf.reduce_sum(output.policy_params, axis=-1)
        loss = tf.reduce_mean(tf.square(error))
      return output, tape.gradient(loss, network.trainable_variables), state

    with data_parallel.on_devices(devices, *hosts):
      return tf.nest.map_structure(np.asarray, tf.function(graph, autograph=False)())

  twins = _Twins()
  output, gradients, state = learn(whole, 6, _DEVICES[:1])
  found = learn(mixed, 3, _DEVICES[:num_devices], twins, 3)
  for one, other in zip(tree.flatten((output, gradients)), tree.flatten(found[:2])):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
  for one, other in zip(tree.flatten(state), tree.flatten(found[2])):
    np.testing.assert_allclose(one[:3], other, rtol=1e-5, atol=1e-6)
  assert twins.sent == [[5, 3, 3], [5, 3], [3, 3], [3]]  # policy and value, of two calls


@pytest.mark.parametrize('has_all_rows', [True, False])
def test_a_learnt_state_gets_the_whole_gradient(has_all_rows):
  """It may be made for all rows or, like a state of the sample, for those of the host."""
  initial, w = tf.Variable([0.5, -1.0]), tf.Variable(2.0)
  x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
  step = lambda x, state: (x * w + state, state * state)

  def learn(inputs, num_rows, *hosts):
    with data_parallel.on_devices(_DEVICES[:1], *hosts), tf.GradientTape() as tape:
      state = tf.repeat(initial[tf.newaxis], num_rows, axis=0)
      for _ in range(2):
        output, state = data_parallel.over_batch(step, (0, 0), (0, 0), inputs, state, state_index=1)
      loss = tf.reduce_mean(tf.square(output))
    return tape.gradient(loss, [initial, w])

  expected = learn(tf.concat([x, x], axis=0), 6)
  found = learn(x, 6 if has_all_rows else 3, _Twins(), 3)
  for one, other in zip(expected, found):
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_an_argument_that_has_neither_all_rows_nor_the_hosts_own_is_refused():
  with data_parallel.on_devices(_DEVICES[:1], _Twins(), 3):
    with pytest.raises(ValueError, match='got 4 rows, but a learner host has 3, and .* batch 6'):
      data_parallel.over_batch(lambda x, y: x + y, (0, 0), 0, tf.ones([6]), tf.ones([4]))
