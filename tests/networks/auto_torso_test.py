"""The torso `auto`: which arrays are images, each part's inputs, and notices about others."""

import dataclasses

from dm_env import specs
import gymnasium
import numpy as np
import pytest
import tensorflow as tf
import tree

import seed_acme
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import choices
from seed_acme.envs import packed_planes
from seed_acme.networks import build
from seed_acme.networks import requirements
from seed_acme.storage import run_directory

_ACTION = specs.DiscreteArray(3)
_LARGE = specs.BoundedArray((40, 36, 3), np.uint8, 0, 255)
_SMALL = specs.BoundedArray((9, 9, 4), np.uint8, 0, 255)
_GREY = specs.BoundedArray((12, 10), np.uint8, 0, 255)
_SPEED = specs.Array((2,), np.float32)
_WORD = specs.DiscreteArray(5)
_DICT = {'camera': _LARGE, 'speed': _SPEED, 'word': _WORD}


def _config(**settings):
  return config_lib.NetworkConfig(
    **{'torso': 'auto', 'torso_output_size': 6, 'mlp_sizes': (7,), 'precision': 'float32'}
    | settings
  )


def _make(observation, **settings):
  return build.make_actor_critic(
    _config(**settings), types.EnvironmentSpec(observation, _ACTION), 3
  )


def _shapes(network):
  return {v.name: tuple(v.shape) for v in network.trainable_variables}


def _random(observation, number=3):
  rng = np.random.default_rng(1)

  def leaf(array):
    if np.issubdtype(array.dtype, np.integer):
      high = int(np.max(array.maximum)) + 1
      return tf.constant(rng.integers(0, high, (number, *array.shape)).astype(array.dtype))
    return tf.constant(rng.normal(size=(number, *array.shape)).astype(array.dtype))

  return tree.map_structure(leaf, observation)


@pytest.mark.parametrize(
  'observation, same_as',
  [(_LARGE, 'nature_cnn'), ({'only': _SMALL}, 'impala_resnet'), ((_SPEED, _WORD), 'mlp')],
)
def test_of_one_kind_it_is_the_torso_of_that_kind(observation, same_as):
  found = _shapes(_make(observation))
  assert found == _shapes(_make(observation, torso=same_as))
  assert requirements.resolved_torso('auto', observation) == same_as


def test_pictures_go_through_cnns_and_the_rest_through_the_mlp():
  shapes = _shapes(_make({**_DICT, 'map': _SMALL}))
  of_torso = {name: shape for name, shape in shapes.items() if 'picture' in name or 'mlp' in name}
  assert {name.split('/')[0] for name in of_torso} == {'picture_0', 'picture_1', 'mlp'}
  assert of_torso['picture_0/nature_cnn/conv_0/w:0'] == (8, 8, 3, 32)
  assert of_torso['picture_1/impala_resnet/stack_0/conv/w:0'] == (3, 3, 4, 16)
  assert of_torso['mlp/linear_0/w:0'] == (2 + 5, 7)  # the speed, and the word as a one-hot vector
  heads = {shape for name, shape in shapes.items() if name not in of_torso and len(shape) == 2}
  assert {shape[0] for shape in heads} == {6 + 6 + 7}


def test_several_pictures_without_anything_else():
  shapes = _shapes(_make({'left': _SMALL, 'right': _SMALL}))
  assert {'picture_0', 'picture_1'} <= {name.split('/')[0] for name in shapes}
  assert not any(name.startswith('mlp') for name in shapes)


@pytest.mark.parametrize('core', ['none', 'lstm'])
def test_every_variable_gets_a_gradient_and_every_array_matters(core):
  spec = types.EnvironmentSpec(_DICT, _ACTION)
  network = build.make_actor_critic(_config(core=core, core_size=4), spec, 3)
  inputs = build.zero_inputs(spec, 3)._replace(observation=_random(_DICT))
  with tf.GradientTape() as tape:
    prediction, _ = network(inputs, network.initial_state(3))
    loss = tf.reduce_sum(tf.square(prediction.policy_params)) + tf.reduce_sum(prediction.value)
  gradients = tape.gradient(loss, network.trainable_variables)
  assert all(gradient is not None for gradient in gradients)
  for name in _DICT:
    changed = {**inputs.observation, name: tf.zeros_like(inputs.observation[name])}
    other, _ = network(inputs._replace(observation=changed), network.initial_state(3))
    assert np.abs(other.policy_params - prediction.policy_params).max() > 1e-6, name


def test_bytes_of_each_picture_are_divided_by_their_own_bound():
  observation = {'bits': specs.BoundedArray((9, 9, 1), np.uint8, 0, 1), 'speed': _SPEED}
  network = _make(observation)
  spec = types.EnvironmentSpec(observation, _ACTION)
  inputs = build.zero_inputs(spec, 3)._replace(observation=_random(observation))
  as_floats = {'bits': specs.BoundedArray((9, 9, 1), np.float32, 0, 1), 'speed': _SPEED}
  same = _make(as_floats)
  for variable, value in zip(same.variables, network.variables):
    variable.assign(value)
  bits = tf.cast(inputs.observation['bits'], tf.float32)
  of_floats = inputs._replace(observation={**inputs.observation, 'bits': bits})
  np.testing.assert_allclose(
    network(inputs, ())[0].policy_params, same(of_floats, ())[0].policy_params, rtol=1e-5
  )


def test_packed_planes_are_unpacked_beside_other_arrays():
  observation = {'planes': packed_planes.spec(9, 9, 5, 'planes'), 'speed': _SPEED}
  shapes = _shapes(_make(observation))
  assert shapes['picture_0/impala_resnet/stack_0/conv/w:0'][2] == 5


def test_stacked_frames():
  shapes = _shapes(_make(specs.BoundedArray((36, 36, 1), np.uint8, 0, 255), frame_stack=4))
  assert [shape for name, shape in shapes.items() if 'conv_0/w' in name] == [(8, 8, 4, 32)]


@pytest.mark.parametrize('observation', [_DICT, {'speed': _SPEED, 'word': _WORD}])
def test_sacs_critics_take_it(observation):
  spec = types.EnvironmentSpec(observation, specs.BoundedArray((2,), np.float32, -1, 1))
  config = _config(head_sizes=(5,))
  function = build.make_state_function(config, spec, 1, gain=1.0, takes_action=True, name='critic')
  action = tf.ones([3, 2])
  values = function(_random(observation), (), action)
  assert values.shape == (3, 1)
  assert np.abs(values - function(_random(observation), (), -action)).max() > 0
  first = next(v for v in function.trainable_variables if 'mlp/linear_0/w' in v.name)
  # With an image the action joins the features; an MLP alone has it as a direct input.
  assert first.shape[0] == (2 + 5 if 'camera' in observation else 2 + 5 + 2)


@pytest.mark.parametrize(
  'leaf, is_one',
  [
    (_LARGE, True),
    (_GREY, True),
    (specs.Array((9, 8, 1), np.float32), True),
    (specs.Array((12, 10), np.float32), False),  # a table of numbers
    (specs.BoundedArray((7, 7, 3), np.uint8, 0, 10), False),
    (specs.BoundedArray((3, 84, 84), np.uint8, 0, 255), False),
    (choices.ChoicesArray(np.full((9, 9, 1), 4)), False),
    (_SPEED, False),
  ],
)
def test_what_is_a_picture(leaf, is_one):
  assert requirements.is_picture(leaf) == is_one


def test_pixels_that_are_flattened_are_told():
  spec = types.EnvironmentSpec(_DICT, _ACTION)
  [notice] = requirements.notices(config_lib.NetworkConfig(), spec)
  assert "flattens the picture observation['camera'] (40, 36, 3) into 4,320 numbers" in notice
  assert 'auto takes a CNN' in notice
  assert requirements.notices(_config(), spec) == ()
  no_pixels = types.EnvironmentSpec((_SPEED, _WORD), _ACTION)
  assert requirements.notices(config_lib.NetworkConfig(), no_pixels) == ()
  own = config_lib.NetworkConfig(torso='my.module:Torso')
  assert requirements.notices(own, spec) == ()


@pytest.mark.parametrize('torso', ['auto', 'mlp'])
def test_channels_that_come_first_are_told(torso):
  spec = types.EnvironmentSpec(specs.BoundedArray((3, 84, 84), np.uint8, 0, 255), _ACTION)
  [notice] = requirements.notices(config_lib.NetworkConfig(torso=torso), spec)
  assert '[height, width, channels]' in notice and '(3, 84, 84)' in notice


def test_first_weights_of_convolutions_are_refused_where_there_are_none():
  config = _config(torso_initializer='orthogonal')
  requirements.check(config, types.EnvironmentSpec(_DICT, _ACTION))
  with pytest.raises(types.UserError, match="no effect with network.torso 'auto'"):
    requirements.check(config, types.EnvironmentSpec(_SPEED, _ACTION))


class Seen(gymnasium.Env):
  """An environment with an image and numbers, which actions do not affect."""

  def __init__(self):
    self.observation_space = gymnasium.spaces.Dict(
      camera=gymnasium.spaces.Box(0, 255, (9, 9, 3), np.uint8),
      speed=gymnasium.spaces.Box(-1, 1, (2,), np.float32),
    )
    self.action_space = gymnasium.spaces.Discrete(2)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return self.observation_space.sample(), {}

  def step(self, action):
    self._steps += 1
    return self.observation_space.sample(), float(action), self._steps == 5, False, {}


def make(seed):
  """Makes the environment, as a user's factory."""
  del seed
  return Seen()


@pytest.mark.slow
@pytest.mark.processes
def test_a_run_learns_from_such_observations_and_tells_what_is_flattened(tmp_path):
  base = registry.load('gym_vtrace')
  config = dataclasses.replace(
    base,
    environment=config_lib.EnvironmentConfig(f'{__name__}:make'),
    network=_config(torso='mlp'),
    num_actors=1,
    environments_per_actor=4,
    total_steps=400,
    agent=dataclasses.replace(base.agent, unroll_length=10, batch_size=8),
    replay=dataclasses.replace(base.replay, unrolls_per_item=1, queue_size=16),
  )
  summary = seed_acme.train(
    config, run_dir=tmp_path / 'run', launch='single_process', progress=False
  )
  assert summary['updates'] > 0
  told = run_directory.RunDirectory(tmp_path / 'run').notices.read_text()
  assert "flattens the picture observation['camera']" in told
