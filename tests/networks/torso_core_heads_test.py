"""The whole network: unroll = steps, independence of rows, the core's inputs."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import build

_SPEC = types.EnvironmentSpec(
  observation={'board': specs.Array((3, 2), np.float32), 'clock': specs.Array((), np.int32)},
  action=specs.DiscreteArray(4),
)
_ROWS, _BATCH = 7, 5


def _network(core='lstm', previous=True, **settings):
  tf.random.set_seed(2)
  return build.make_actor_critic(_config(core, previous, **settings), _SPEC, 4)


def _q_network(core='lstm', previous=True, **settings):
  tf.random.set_seed(2)
  return build.make_q_network(_config(core, previous, **settings), _SPEC)


def _config(core, previous, **settings):
  return config_lib.NetworkConfig(
    mlp_sizes=(8,),
    core=core,
    core_size=6,
    previous_action_input=previous,
    previous_reward_input=previous,
    **settings,
  )


def _inputs(seed=0, rows=_ROWS, batch_size=_BATCH):
  rng = np.random.default_rng(seed)
  shape = (rows, batch_size)
  return tf.nest.map_structure(
    tf.constant,
    types.AgentInput(
      step_type=rng.integers(0, 3, shape).astype(np.uint8),
      reward=rng.normal(size=shape).astype(np.float32),
      discount=np.ones(shape, np.float32),
      previous_action=rng.integers(0, 4, shape).astype(np.int32),
      observation={
        'board': rng.normal(size=(*shape, 3, 2)).astype(np.float32),
        'clock': rng.integers(0, 3, shape).astype(np.int32),
      },
    ),
  )


def _state(network, batch_size=_BATCH):
  rng = np.random.default_rng(9)
  return tf.nest.map_structure(
    lambda x: tf.constant(rng.normal(size=x.shape), tf.float32), network.initial_state(batch_size)
  )


def _row(inputs, t):
  return tf.nest.map_structure(lambda x: x[t], inputs)


def _assert_close(actual, expected, **tolerances):
  tf.nest.assert_same_structure(actual, expected)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    np.testing.assert_allclose(a, b, **(tolerances or {'rtol': 1e-5, 'atol': 1e-6}))


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm', 'gru'])
def test_unroll_equals_steps_with_first_rows_in_the_middle(core):
  network, inputs = _network(core), _inputs()
  state = _state(network)
  predictions, last = network.unroll(inputs, state)
  assert predictions.policy_params.shape == (_ROWS, _BATCH, 4)
  assert predictions.value.shape == (_ROWS, _BATCH)
  for t in range(_ROWS):
    prediction, state = network(_row(inputs, t), state)
    _assert_close(_row(predictions, t), prediction)
  _assert_close(last, state)


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm', 'gru'])
def test_permuting_and_padding_a_batch_changes_no_other_row(core):
  network = _network(core)
  row, state = _row(_inputs(), 0), _state(network)
  expected = network(row, state)
  order = np.array([3, 0, 4, 2, 1])
  pick = lambda nest, index: tf.nest.map_structure(lambda x: tf.gather(x, index), nest)
  _assert_close(network(pick(row, order), pick(state, order)), pick(expected, order))
  padded = np.concatenate([np.arange(_BATCH), [0] * 11])
  _assert_close(pick(network(pick(row, padded), pick(state, padded)), np.arange(_BATCH)), expected)


@pytest.mark.parametrize(
  'action', [choices.ChoicesArray([2, 3]), specs.BoundedArray((2,), np.int32, 0, [1, 2])]
)
def test_previous_choices_enter_one_hot(action):
  spec = types.EnvironmentSpec(specs.Array((1,), np.float32), action)
  network = build.make_actor_critic(_config('none', True), spec, 5)
  widest = max(v.shape[0] for v in network.variables)  # the heads', without a core
  assert widest == 8 + 1 + 2 + 3  # the torso's features, the reward, two choices


def test_nothing_of_the_last_episode_is_told_at_first():
  network = _network()
  row = _row(_inputs(), 0)._replace(step_type=tf.fill([_BATCH], tf.constant(0, tf.uint8)))
  other = row._replace(reward=row.reward * np.nan, previous_action=(row.previous_action + 1) % 4)
  state = _state(network)
  _assert_close(network(other, state), network(row, state), rtol=0)


def test_previous_action_and_reward_enter_when_asked_for():
  row = _row(_inputs(), 0)._replace(
    step_type=tf.fill([_BATCH], tf.constant(1, tf.uint8)), reward=tf.fill([_BATCH], 0.1)
  )
  changes = (
    row._replace(previous_action=(row.previous_action + 1) % 4),
    row._replace(reward=row.reward + 0.5),
  )
  for previous in (True, False):
    network = _network(previous=previous)
    state = _state(network)
    for change in changes:
      difference = np.abs(network(change, state)[0].value - network(row, state)[0].value)
      assert (difference > 0).all() == previous


@pytest.mark.slow
@pytest.mark.parametrize('settings, bound', [({}, 1.0), ({'previous_reward_bound': 2.5}, 2.5)])
@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_previous_reward_is_clipped_to_its_bound(settings, bound, sign):
  values = _values_of_rewards(settings, [sign * bound, sign * 50.0, sign * bound * 0.99])
  np.testing.assert_array_equal(values[0], values[1])
  assert np.abs(values[0] - values[2]).min() > 0


def test_previous_reward_is_raw_with_bound_0():
  """Without a core and without hidden layers in the heads, the value is linear in the reward."""
  values = _values_of_rewards({'previous_reward_bound': 0.0, 'core': 'none'}, [0.0, 1.0, 50.0])
  assert np.abs(values[1] - values[0]).min() > 0
  np.testing.assert_allclose(values[2] - values[0], 50 * (values[1] - values[0]), rtol=1e-3)


def _values_of_rewards(settings, rewards):
  network = _network(**settings)
  row = _row(_inputs(), 0)._replace(step_type=tf.fill([_BATCH], tf.constant(1, tf.uint8)))
  state = _state(network)
  return [
    network(row._replace(reward=tf.fill([_BATCH], x)), state)[0].value.numpy() for x in rewards
  ]


def test_one_trace_serves_every_batch_size():
  network = _network()
  step = tf.function(
    lambda inputs, state: network(inputs, state),
    autograph=False,
    input_signature=[
      tf.nest.map_structure(lambda x: tf.TensorSpec([None, *x.shape[2:]], x.dtype), _inputs()),
      tf.nest.map_structure(lambda x: tf.TensorSpec([None, *x.shape[1:]]), _state(network)),
    ],
  )
  for batch_size in (1, 3):
    row, state = _row(_inputs(batch_size=batch_size), 0), _state(network, batch_size)
    _assert_close(step(row, state), network(row, state))


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm', 'gru'])
@pytest.mark.parametrize('head_sizes', [(), (5, 7)])
def test_every_variable_gets_a_gradient(core, head_sizes):
  network, inputs = _network(core, head_sizes=head_sizes), _inputs()
  with tf.GradientTape() as tape:
    predictions, _ = network.unroll(inputs, network.initial_state(_BATCH))
    loss = tf.reduce_sum(tf.nn.log_softmax(predictions.policy_params)[..., 0]) + tf.reduce_sum(
      predictions.value**2
    )
  _assert_all_get_gradients(tape, loss, network)


def _assert_all_get_gradients(tape, loss, network):
  gradients = tape.gradient(loss, network.trainable_variables)
  for variable, gradient in zip(network.trainable_variables, gradients):
    assert np.abs(tf.convert_to_tensor(gradient)).max() > 0, variable.name


@pytest.mark.parametrize('head_sizes', [(), (5, 7)])
def test_every_variable_of_the_q_network_gets_a_gradient(head_sizes):
  network, inputs = _q_network(head_sizes=head_sizes), _inputs()
  with tf.GradientTape() as tape:
    predictions, _ = network.unroll(inputs, network.initial_state(_BATCH))
    loss = tf.reduce_sum(predictions.q_values[..., 0] ** 2)
  _assert_all_get_gradients(tape, loss, network)


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm', 'gru'])
def test_unrolled_q_values_equal_steps(core):
  network, inputs = _q_network(core), _inputs()
  state = _state(network)
  predictions, last = network.unroll(inputs, state)
  assert isinstance(predictions, types.QOutput)
  assert predictions.q_values.shape == (_ROWS, _BATCH, 4)
  for t in range(_ROWS):
    prediction, state = network(_row(inputs, t), state)
    _assert_close(_row(predictions, t), prediction)
  _assert_close(last, state)
