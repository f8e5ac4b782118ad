"""Frame stacking: against a slow reference, unroll = steps, state, mistakes."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.networks import build
from seed_acme.networks import frame_stack

_BATCH, _HEIGHT, _WIDTH = 5, 4, 3


def _first_rows(kind, rows, rng):
  is_first = {
    'none': np.zeros((rows, _BATCH), bool),
    'all': np.ones((rows, _BATCH), bool),
    'some': rng.random((rows, _BATCH)) < 0.25,
    'many': rng.random((rows, _BATCH)) < 0.6,
  }[kind]
  if kind == 'some':
    is_first[0, 0] = is_first[-1, 1] = is_first[rows // 2, 2] = True
  return is_first


def _images(shape, rng, dtype=np.uint8):
  """Returns images without a pixel of 0, so that black images are recognised as padding."""
  return rng.integers(1, 256, shape).astype(dtype)


def _reference(images, is_first, frames):
  """Returns stacks `[T, B, height, width, K]`, by stepping back from every row to its FIRST."""
  rows, batch_size = is_first.shape
  num_frames = frames.shape[1] + 1
  stacks = np.zeros((*images.shape[:4], num_frames), images.dtype)
  for b in range(batch_size):
    for t in range(rows):
      for age in range(num_frames):
        stacks[t, b, :, :, age] = images[t - age, b] if t >= age else frames[b, age - t - 1]
        if t >= age and is_first[t - age, b]:
          break
  return stacks


@pytest.mark.parametrize('first', ['none', 'some', 'many', 'all'])
@pytest.mark.parametrize('rows', [1, 3, 9])
@pytest.mark.parametrize('num_frames', [2, 4])
def test_stacks_equal_the_reference_in_stack_and_in_state(num_frames, rows, first):
  rng = np.random.default_rng(rows)
  is_first = _first_rows(first, rows, rng)
  images = _images((rows, _BATCH, _HEIGHT, _WIDTH), rng)
  frames = _images((_BATCH, num_frames - 1, _HEIGHT, _WIDTH), rng)
  expected = _reference(images, is_first, frames)
  for shape in (images.shape, (*images.shape, 1)):
    stacks, new_frames = frame_stack.stack_frames(images.reshape(shape), is_first, frames)
    assert stacks.dtype == new_frames.dtype == tf.uint8
    np.testing.assert_array_equal(stacks, expected)
    np.testing.assert_array_equal(new_frames, np.moveaxis(expected[-1], -1, 1)[:, :-1])


def test_an_episode_by_hand():
  """Two rows of frames from before, and FIRST in row 2."""
  images = np.arange(10, 14, dtype=np.uint8).reshape(4, 1, 1, 1)
  frames = np.array([9, 8, 7], np.uint8).reshape(1, 3, 1, 1)
  is_first = np.array([False, False, True, False])[:, np.newaxis]
  stacks, new_frames = frame_stack.stack_frames(images, is_first, frames)
  assert stacks.numpy().reshape(4, 4).tolist() == [
    [10, 9, 8, 7],
    [11, 10, 9, 8],
    [12, 0, 0, 0],
    [13, 12, 0, 0],
  ]
  assert new_frames.numpy().ravel().tolist() == [13, 12, 0]


def test_nan_from_before_a_first_row_is_dropped_and_dtype_stays():
  frames = np.full((_BATCH, 3, _HEIGHT, _WIDTH), np.nan, np.float64)
  images = np.ones((2, _BATCH, _HEIGHT, _WIDTH, 1), np.float64)
  is_first = np.array([[True], [False]]).repeat(_BATCH, axis=1)
  stacks, new_frames = frame_stack.stack_frames(images, is_first, frames)
  assert stacks.dtype == tf.float64
  assert np.isfinite(stacks).all() and np.isfinite(new_frames).all()
  stacks, _ = frame_stack.stack_frames(images[1:], is_first[1:], frames)
  assert np.isnan(stacks[..., 1:]).all()


def _spec(shape=(_HEIGHT, _WIDTH, 1), dtype=np.uint8):
  return types.EnvironmentSpec(observation=specs.Array(shape, dtype), action=specs.DiscreteArray(3))


def _network(spec, core, **settings):
  tf.random.set_seed(3)
  config = config_lib.NetworkConfig(
    mlp_sizes=(8,), core=core, core_size=6, previous_action_input=True, **settings
  )
  return build.make_actor_critic(config, spec, 3)


def _inputs(rows, first='some', images_shape=(_HEIGHT, _WIDTH, 1), seed=0):
  rng = np.random.default_rng(seed)
  shape = (rows, _BATCH)
  return tf.nest.map_structure(
    tf.constant,
    types.AgentInput(
      step_type=np.where(_first_rows(first, rows, rng), types.FIRST, types.MID).astype(np.uint8),
      reward=rng.normal(size=shape).astype(np.float32),
      discount=np.ones(shape, np.float32),
      previous_action=rng.integers(0, 3, shape).astype(np.int32),
      observation=_images((*shape, *images_shape), rng),
    ),
  )


def _state(network, seed=0):
  rng = np.random.default_rng(seed)
  return tf.nest.map_structure(
    lambda x: tf.constant(
      _images(x.shape, rng) if x.dtype == tf.uint8 else rng.normal(size=x.shape).astype(np.float32)
    ),
    network.initial_state(_BATCH),
  )


def _assert_close(actual, expected):
  tf.nest.assert_same_structure(actual, expected)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
  'core, rows, shape', [('none', 2, (_HEIGHT, _WIDTH)), ('lstm', 6, (_HEIGHT, _WIDTH, 1))]
)
def test_unroll_equals_steps_with_state_carried_in(core, rows, shape):
  network = _network(_spec(shape), core, frame_stack=4)
  inputs, state = _inputs(rows, images_shape=shape), _state(network)
  predictions, last = network.unroll(inputs, state)
  for t in range(rows):
    row = tf.nest.map_structure(lambda x, t=t: x[t], inputs)
    prediction, state = network(row, state)
    _assert_close(tf.nest.map_structure(lambda x, t=t: x[t], predictions), prediction)
  _assert_close(last, state)
  np.testing.assert_array_equal(last.frames, state.frames)


@pytest.mark.slow
@pytest.mark.parametrize('core', ['none', 'lstm'])
def test_the_torso_sees_the_stack(core):
  """The same weights give the same outputs on the reference's stacks."""
  inputs = _inputs(9)
  network = _network(_spec(), core, frame_stack=4)
  plain = _network(_spec((_HEIGHT, _WIDTH, 4)), core)
  assert [v.name for v in network.variables] == [v.name for v in plain.variables]
  for ours, theirs in zip(network.variables, plain.variables):
    ours.assign(theirs)
  state = _state(network)
  stacks = _reference(
    inputs.observation.numpy()[..., 0],
    inputs.step_type.numpy() == types.FIRST,
    state.frames.numpy(),
  )
  expected, core_state = plain.unroll(inputs._replace(observation=tf.constant(stacks)), state.core)
  predictions, last = network.unroll(inputs, state)
  _assert_close((predictions, last.core), (expected, core_state))


@pytest.mark.slow
def test_older_images_matter_and_those_of_the_last_episode_do_not():
  network = _network(_spec(), 'none', frame_stack=4)
  inputs = _inputs(1, 'none')
  row = tf.nest.map_structure(lambda x: x[0], inputs)
  one, other = _state(network, 0), _state(network, 1)
  assert np.abs(network(row, one)[0].value - network(row, other)[0].value).min() > 0
  row = row._replace(step_type=tf.zeros_like(row.step_type))
  _assert_close(network(row, one), network(row, other))
  _assert_close(network(row, one), network(row, network.initial_state(_BATCH)))


@pytest.mark.parametrize('dtype', [np.float16, np.float64])
def test_images_get_the_dtype_of_the_state(dtype):
  """The on-policy agent normalises images before they are stacked, to float32."""
  images = np.full((2, _BATCH, _HEIGHT, _WIDTH), 0.5, np.float32)
  frames = np.ones((_BATCH, 2, _HEIGHT, _WIDTH), dtype)
  step_type = np.full((2, _BATCH), types.MID, np.uint8)
  stacks, new_frames = frame_stack.stack_observation(step_type, images, frames)
  assert stacks.dtype == new_frames.dtype == dtype
  np.testing.assert_array_equal(stacks[0, 0, 0, 0], [0.5, 1, 1])


@pytest.mark.slow
def test_the_state_is_the_observation_s_dtype_and_there_is_none_without_stacking():
  network = _network(_spec(), 'none', frame_stack=4)
  state = network.initial_state(2)
  assert isinstance(state, frame_stack.FrameStackState) and state.core == ()
  assert state.frames.shape == (2, 3, _HEIGHT, _WIDTH) and state.frames.dtype == tf.uint8
  assert not state.frames.numpy().any()
  network = _network(_spec(dtype=np.int16), 'none', frame_stack=2)
  assert network.initial_state(2).frames.dtype == tf.int16
  assert _network(_spec(), 'none', frame_stack=1).initial_state(2) == ()


@pytest.mark.slow
def test_one_trace_serves_every_batch_size_and_length():
  """Without a core even T may be unknown; inference leaves only the batch size open."""
  network = _network(_spec(), 'none', frame_stack=4)
  inputs, state = _inputs(6), _state(network)
  unroll = tf.function(
    lambda i, s: network.unroll(i, s),
    autograph=False,
    input_signature=[
      tf.nest.map_structure(lambda x: tf.TensorSpec([None, None, *x.shape[2:]], x.dtype), inputs),
      tf.nest.map_structure(lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), state),
    ],
  )
  for rows, batch_size in ((6, 5), (2, 3)):
    some = tf.nest.map_structure(lambda x, t=rows, b=batch_size: x[:t, :b], inputs)
    some_state = tf.nest.map_structure(lambda x, b=batch_size: x[:b], state)
    _assert_close(unroll(some, some_state), network.unroll(some, some_state))


@pytest.mark.parametrize(
  'observation, found',
  [
    (specs.Array((4, 3, 3), np.uint8), '[(4, 3, 3)]'),
    (specs.Array((4,), np.float32), '[(4,)]'),
    ({'a': specs.Array((4, 3), np.uint8), 'b': specs.Array((), np.uint8)}, '[(4, 3), ()]'),
  ],
)
def test_what_is_not_one_grey_image_is_refused(observation, found):
  spec = types.EnvironmentSpec(observation=observation, action=specs.DiscreteArray(3))
  with pytest.raises(types.UserError) as error:
    _network(spec, 'none', frame_stack=4)
  assert f'shapes {found}' in str(error.value)
  assert 'network.frame_stack (4)' in str(error.value) and 'to 1' in str(error.value)
