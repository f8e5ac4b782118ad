"""Functions of a state and an action: where the action enters, and inputs that are ignored."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import build
from seed_acme.networks import frame_stack
from seed_acme.networks import state_functions
from seed_acme.ops import shapes

_VECTOR = specs.Array((4,), np.float32)
_TWO = specs.BoundedArray((2,), np.float32, -1.0, 1.0)
_IMAGE = specs.BoundedArray((20, 20, 3), np.uint8, 0, 255)
_GOALS = {
  'observation': _VECTOR,
  'achieved_goal': specs.Array((3,), np.float32),
  'desired_goal': specs.Array((3,), np.float32),
}
_NESTED = {
  'position': specs.Array((2, 2), np.float32),
  'joints': (_VECTOR,),
  'gear': specs.DiscreteArray(5),
}


def _function(observation=_VECTOR, action=_TWO, takes_action=True, output_size=1, **network):
  network = config_lib.NetworkConfig(**{'mlp_sizes': (16,), 'head_sizes': (8,), **network})
  spec = types.EnvironmentSpec(observation=observation, action=action)
  function = build.make_state_function(
    network, spec, output_size, gain=1.0, takes_action=takes_action, name='f'
  )
  return function, spec


def _random(spec, number, seed=0):
  rng = np.random.default_rng(seed)

  def leaf(array):
    size = (number, *array.shape)
    if np.issubdtype(array.dtype, np.integer):
      return tf.constant(rng.integers(0, np.asarray(array.maximum) + 1, size).astype(array.dtype))
    return tf.constant(rng.uniform(-1, 1, size).astype(array.dtype))

  return tree.map_structure(leaf, spec)


def _inputs(spec, number=5, seed=0):
  return build.zero_inputs(spec, number)._replace(
    step_type=tf.fill([number], np.uint8(types.MID)),
    reward=tf.range(number, dtype=tf.float32),
    observation=_random(spec.observation, number, seed),
    previous_action=_random(spec.action, number, seed + 1),
  )


def _shapes(function):
  return {v.name.split('f/', 1)[-1]: tuple(v.shape) for v in function.variables}


def _first_layers(function):
  """Returns the shapes of the first weights of branch and head."""
  weights = {name: shape for name, shape in _shapes(function).items() if name.endswith('w:0')}
  branch = next(shape for name, shape in weights.items() if not name.startswith('head'))
  return branch, next(shape for name, shape in weights.items() if name.startswith('head'))


@pytest.mark.parametrize(
  'action, size',
  [
    (_TWO, 2),
    (specs.DiscreteArray(3), 3),
    (specs.BoundedArray((2,), np.int32, 0, [1, 4]), 7),
    (specs.BoundedArray((2, 3), np.float64, -1.0, 1.0), 6),
    ({'arm': _TWO, 'grip': specs.DiscreteArray(3)}, 5),
    (choices.ChoicesArray([2, 3]), 5),
  ],
  ids=str,
)
def test_an_mlp_sees_the_action_beside_the_observation(action, size):
  function, spec = _function(action=action)
  inputs = _inputs(spec)
  assert state_functions.encoded_size(action) == size
  assert function(inputs.observation, (), inputs.previous_action).shape == (5, 1)
  assert _first_layers(function) == ((4 + size, 16), (16, 8))


@pytest.mark.parametrize(
  'network, observation',
  [
    ({'torso': 'impala_shallow', 'torso_output_size': 16}, _IMAGE),
    ({'frame_stack': 3}, specs.BoundedArray((6, 6), np.uint8, 0, 255)),
  ],
  ids=str,
)
def test_other_torsos_and_stacks_have_the_action_beside_their_features(network, observation):
  function, spec = _function(observation=observation, **network)
  inputs = _inputs(spec)
  if 'frame_stack' in network:
    inputs = inputs._replace(observation=tf.repeat(inputs.observation[..., None], 3, axis=-1))
  function(inputs.observation, (), inputs.previous_action)
  assert _first_layers(function)[1] == (16 + 2, 8)


def test_a_torso_of_ones_own_is_given_the_observation_alone():
  function, spec = _function(torso='seed_acme.networks.torsos:MLP', torso_settings={'sizes': (7,)})
  inputs = _inputs(spec)
  function(inputs.observation, (), inputs.previous_action)
  assert _first_layers(function) == ((4, 7), (7 + 2, 8))


@pytest.mark.parametrize(
  'action',
  [
    _TWO,
    specs.DiscreteArray(3),
    specs.BoundedArray((2,), np.int32, 0, [1, 4]),
    {'arm': _TWO, 'grip': specs.DiscreteArray(3)},
  ],
  ids=str,
)
@pytest.mark.parametrize('network', [{}, {'core': 'gru', 'core_size': 6}], ids=str)
def test_every_part_of_the_action_counts(action, network):
  function, spec = _function(action=action, activation='tanh', **network)
  inputs = _inputs(spec)
  remembered, _ = function.remember(inputs, function.initial_state(5))
  said = function(inputs.observation, remembered, inputs.previous_action)
  leaves = tree.flatten(inputs.previous_action)
  for i, leaf in enumerate(leaves):
    most = np.asarray(tree.flatten(action)[i].maximum, leaf.dtype.as_numpy_dtype)
    others = [*leaves[:i], most - leaf, *leaves[i + 1 :]]
    other = function(inputs.observation, remembered, tree.unflatten_as(action, others))
    assert np.abs(other - said).max() > 1e-4


def test_choices_are_no_numbers():
  """Any of the integers 0 ... 4 may be the best: outputs for 1 ... 3 are not interpolated."""
  function, spec = _function(
    action=specs.BoundedArray((1,), np.int32, 0, 4), head_sizes=(), mlp_sizes=()
  )
  observation = tf.zeros([5, 4])
  function(observation, (), tf.constant([[0]] * 5))
  weights = next(v for v in function.variables if v.name.endswith('w:0'))
  assert weights.shape == (4 + 5, 1)
  said = function(observation, (), tf.constant([[0], [1], [2], [3], [4]]))
  np.testing.assert_allclose(said, weights[4:], rtol=1e-6)


def test_a_function_of_the_state_takes_no_action():
  function, spec = _function(takes_action=False, output_size=7)
  inputs = _inputs(spec)
  assert function(inputs.observation, ()).shape == (5, 7)
  assert _first_layers(function) == ((4, 16), (16, 8))


@pytest.mark.parametrize('takes_action', [True, False])
@pytest.mark.parametrize('core', ['none', 'gru'])
def test_the_branch_sees_everything_and_the_memory_all_but_the_desired_goal(core, takes_action):
  """In AntMaze, for instance, only the achieved goal says where the ant is."""
  function, spec = _function(
    observation=_GOALS, core=core, core_size=6, activation='tanh', takes_action=takes_action
  )
  inputs = _inputs(spec)

  def say(**changes):
    rows = inputs._replace(observation={**inputs.observation, **changes})
    remembered, _ = function.remember(rows, function.initial_state(5))
    action = rows.previous_action if takes_action else None
    return remembered, function(rows.observation, remembered, action)

  (remembered, said) = say()
  for key in ('achieved_goal', 'desired_goal', 'observation'):
    other_remembered, other = say(**{key: inputs.observation[key] + 1.0})
    assert np.abs(other - said).max() > 1e-4, key
    if core != 'none':
      changes = np.abs(other_remembered - remembered).max() > 1e-4
      assert changes == (key != 'desired_goal'), key
  sizes = {shape[0] for shape in _shapes(function).values()}
  assert 4 + 3 + 3 + (2 if takes_action else 0) in sizes
  assert (4 + 3 in sizes) == (core != 'none')


def test_only_a_dict_has_a_goal():
  observation = {'achieved_goal': 1, 'desired_goal': 2}
  assert state_functions.without_goal(observation) == {'achieved_goal': 1}
  assert state_functions.without_goal((1, 2)) == (1, 2)


@pytest.mark.parametrize('core', ['none', 'lstm', 'gru'])
@pytest.mark.parametrize('observation', [_VECTOR, _NESTED, _GOALS], ids=['vector', 'nest', 'goals'])
def test_many_rows_are_as_one_after_the_other(core, observation):
  action = {'arm': _TWO, 'grip': specs.DiscreteArray(3)}
  function, spec = _function(
    observation=observation,
    action=action,
    core=core,
    core_size=6,
    previous_action_input=core != 'none',
  )
  step_types = np.array([[1, 0, 1, 2], [1, 1, 2, 0], [2, 1, 0, 1]], np.uint8)
  inputs = _inputs(spec, 12)
  inputs = tree.map_structure(lambda x: tf.reshape(x, [3, 4, *x.shape[1:]]), inputs)
  inputs = inputs._replace(step_type=tf.constant(step_types))
  actions = tree.map_structure(lambda x: x[::-1], inputs.previous_action)
  remembered, last = function.remember_unroll(inputs, function.initial_state(4))
  found = function.over_rows(inputs.observation, remembered, actions)
  assert found.shape == (3, 4, 1)
  state = function.initial_state(4)
  for t in range(3):
    row, action = tree.map_structure(lambda x: x[t], (inputs, actions))  # noqa: B023
    one, state = function.remember(row, state)
    np.testing.assert_allclose(
      function(row.observation, one, action), found[t], rtol=1e-5, atol=1e-6
    )
  for a, b in zip(tree.flatten(state), tree.flatten(last)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_without_a_core_nothing_is_remembered():
  function, spec = _function()
  inputs = _inputs(spec)
  assert function.initial_state(5) == ()
  assert function.remember(inputs, ()) == ((), ())


def test_shapes_that_are_not_known_when_traced():
  function, spec = _function(core='gru', core_size=6)
  inputs = _inputs(spec)
  function(
    inputs.observation,
    function.remember(inputs, function.initial_state(5))[0],
    inputs.previous_action,
  )
  over_rows = tf.function(
    lambda x, h, a: function.over_rows(x, h, a),
    autograph=False,
    input_signature=[tf.TensorSpec([None, None, n]) for n in (4, 6, 2)],
  )
  assert over_rows(tf.zeros([3, 2, 4]), tf.zeros([3, 2, 6]), tf.zeros([3, 2, 2])).shape == (3, 2, 1)


def test_rows_are_merged_and_split():
  x = tf.reshape(tf.range(24), [3, 4, 2])
  merged = shapes.merge_rows(x)
  np.testing.assert_array_equal(merged, np.arange(24).reshape(12, 2))
  np.testing.assert_array_equal(shapes.split_rows_like(merged, tf.zeros([3, 4])), x)


def test_stacked_observations_keep_their_nest_and_begin_with_the_episode():
  images = tf.reshape(tf.range(1, 13, dtype=tf.float32), [3, 2, 1, 2])
  step_type = tf.constant([[1, 0], [1, 1], [0, 2]], tf.uint8)
  frames = tf.constant([[[[-1.0, -2.0]]], [[[-3.0, -4.0]]]])
  stacked, last = frame_stack.stack_observation(step_type, {'image': images}, frames)
  newest, older = tf.unstack(stacked['image'], axis=-1)
  np.testing.assert_array_equal(newest, images)
  np.testing.assert_array_equal(
    older[:, :, 0], [[[-1, -2], [0, 0]], [[1, 2], [3, 4]], [[0, 0], [7, 8]]]
  )
  np.testing.assert_array_equal(last[:, 0], images[-1])
