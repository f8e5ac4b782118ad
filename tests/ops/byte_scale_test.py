"""Bytes are divided by the bound of their space, or by 255 as in earlier versions."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import build
from seed_acme.ops import byte_scale


def _bytes(maximum, shape=(2,)):
  return specs.BoundedArray(shape, np.uint8, 0, maximum)


@pytest.mark.parametrize(
  'leaf, divisor',
  [
    (_bytes(1), 1),
    (_bytes(7), 7),
    (_bytes(255), 255),
    (_bytes([3, 3]), 3),
    (_bytes([1, 255]), [1, 255]),
    (_bytes([0, 5]), [1, 5]),
    (_bytes(0), 1),
    (_bytes([[2], [4]], (2, 1)), [2, 4]),
    (specs.Array((2,), np.uint8), 255),
    (_bytes(1, (0,)), 255),
    (specs.BoundedArray((2,), np.int8, 0, 1), 255),
  ],
)
def test_the_bound_of_the_space_divides_bytes(leaf, divisor):
  [found] = byte_scale.divisors('bound', leaf)
  np.testing.assert_array_equal(found, divisor)
  assert byte_scale.largest(found) == np.max(divisor)
  assert byte_scale.divisors('255', leaf) == [255]
  assert byte_scale.divisors('1', leaf) == [1]


def _features(observation_spec, observation, **network):
  """Returns the inputs of an MLP without layers."""
  spec = types.EnvironmentSpec(observation_spec, specs.DiscreteArray(2))
  made = build.make_actor_critic(
    config_lib.NetworkConfig(mlp_sizes=(), **network), spec, num_policy_params=2
  )
  inputs = build.zero_inputs(spec, 1)._replace(observation=observation)
  [weights] = [v for v in made.variables if 'policy' in v.name and '/w' in v.name]
  [biases] = [v for v in made.variables if 'policy' in v.name and '/b' in v.name]
  biases.assign(tf.zeros_like(biases))
  seen = []
  for i in range(weights.shape[0]):
    weights.assign(tf.one_hot([i], weights.shape[0], axis=0) * tf.ones([1, 2]))
    prediction, _ = made(inputs, made.initial_state(1))
    seen.append(float(prediction.policy_params[0, 0]))
  return seen


@pytest.mark.parametrize(
  'scale, divisors', [('bound', (1, 4, 255)), ('255', (255, 255, 255)), ('1', (1, 1, 1))]
)
def test_the_mlp_sees_each_array_by_its_own_bound(scale, divisors):
  spec = {'hot': _bytes(1), 'level': _bytes([4, 255]), 'word': choices.ChoicesArray([3], np.uint8)}
  observation = {
    'hot': np.array([[1, 0]], np.uint8),
    'level': np.array([[2, 51]], np.uint8),
    'word': np.array([[2]], np.uint8),
  }
  one, level, image = divisors
  np.testing.assert_allclose(
    _features(spec, observation, byte_scale=scale),
    [1 / one, 0, 2 / level, 51 / image, 0, 0, 1],
    rtol=1e-6,
  )


@pytest.mark.parametrize('scale, divisor', [('bound', 5), ('255', 255), ('1', 1)])
def test_stacked_images_have_the_bound_of_one(scale, divisor):
  seen = _features(
    _bytes(5, (1, 2)), np.array([[[5, 2]]], np.uint8), byte_scale=scale, frame_stack=2
  )
  assert sorted(seen)[-2:] == pytest.approx([2 / divisor, 5 / divisor])


@pytest.mark.slow
@pytest.mark.parametrize('torso', ['nature_cnn', 'impala_shallow', 'impala_resnet'])
def test_an_image_of_small_bytes_is_one_of_floats_from_0_to_1(torso):
  small = np.random.default_rng(1).integers(0, 2, (1, 36, 36, 2), np.uint8)
  values = {}
  for kind, leaf in (
    ('bound', _bytes(1, small.shape[1:])),
    ('255', _bytes(1, small.shape[1:])),
    ('bound', specs.BoundedArray(small.shape[1:], np.float32, 0, 1)),
  ):
    spec = types.EnvironmentSpec(leaf, specs.DiscreteArray(2))
    config = config_lib.NetworkConfig(torso=torso, byte_scale=kind, precision='float32')
    tf.random.set_seed(1)
    network = build.make_actor_critic(config, spec, 2)
    inputs = build.zero_inputs(spec, 1)._replace(observation=small.astype(leaf.dtype))
    prediction, _ = network(inputs, network.initial_state(1))
    values[kind, leaf.dtype.name] = prediction.policy_params.numpy()
  np.testing.assert_allclose(
    values['bound', 'uint8'], values['bound', 'float32'], rtol=1e-4, atol=1e-6
  )
  assert np.abs(values['255', 'uint8']).max() < np.abs(values['bound', 'uint8']).max() / 50
