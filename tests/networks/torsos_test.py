"""Torsos: shapes, scaling, nests, initial weights."""

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import torsos


def test_mlp_flattens_and_concatenates_a_nest():
  torso = torsos.MLP((8, 6))
  observation = {'b': tf.ones([5, 2, 3]), 'a': {'x': tf.ones([5]), 'y': tf.ones([5, 4], tf.uint8)}}
  assert torso(observation).shape == (5, 6)
  first = next(v for v in torso.variables if v.name == 'mlp/linear_0/w:0')
  assert first.shape == (6 + 1 + 4, 8)


def test_mlp_without_layers_passes_scaled_values():
  observation = {'image': tf.constant([[255, 51]], tf.uint8), 'speed': tf.constant([3.0])}
  np.testing.assert_allclose(torsos.MLP(())(observation), [[1.0, 0.2, 3.0]], rtol=1e-6)


def test_choices_enter_the_mlp_one_hot_and_images_and_counters_do_not():
  spec = {
    'board': choices.ChoicesArray([[2, 3], [1, 2]], np.int64),
    'cell': specs.DiscreteArray(4),
    'count': specs.BoundedArray((2,), np.int32, 0, 9),
    'image': specs.BoundedArray((1, 1), np.uint8, 0, 255),
  }
  observation = {
    'board': np.array([[[1, 2], [0, 0]], [[0, 1], [0, 1]]]),
    'cell': np.array([3, 0], np.int32),
    'count': np.array([[7, 9], [0, 1]], np.int32),
    'image': np.array([[[255]], [[51]]], np.uint8),
  }
  entered = torsos.MLP((), observation_spec=spec)(observation)
  np.testing.assert_allclose(
    entered,
    [
      [0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 7, 9, 1.0],
      [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0.2],
    ],
    rtol=1e-6,
  )


def test_choices_of_very_many_values_enter_as_numbers_from_0_to_1():
  most = choices.MOST_ONE_HOT_VALUES
  torso = torsos.MLP((), observation_spec=specs.DiscreteArray(most))
  assert torso(np.array([1], np.int32)).shape == (1, most)
  torso = torsos.MLP(
    (), observation_spec=(specs.DiscreteArray(most + 1), choices.ChoicesArray([1, 2 * most + 1]))
  )
  entered = torso((np.array([most], np.int32), np.array([[0, most]], np.int32)))
  np.testing.assert_array_equal(entered, [[1, 0, 0.5]])


@pytest.mark.parametrize(
  'make, shape, num_variables',
  [
    (torsos.NatureCNN, (84, 84, 4), 8),
    (torsos.ImpalaShallow, (84, 84, 4), 6),
    (torsos.ImpalaResNet, (72, 96, 3), 32),
  ],
)
def test_convolutional_torsos(make, shape, num_variables):
  torso = make(250)
  image = tf.zeros([2, *shape], tf.uint8)
  features = torso(image)
  assert features.shape == (2, 250)
  assert len(torso.trainable_variables) == num_variables


def test_nature_cnn_sizes_are_those_of_the_paper():
  torso = torsos.NatureCNN(512)
  torso(tf.zeros([1, 84, 84, 4]))
  shapes = {v.name: tuple(v.shape) for v in torso.variables if '/w' in v.name}
  assert shapes == {
    'nature_cnn/conv_0/w:0': (8, 8, 4, 32),
    'nature_cnn/conv_1/w:0': (4, 4, 32, 64),
    'nature_cnn/conv_2/w:0': (3, 3, 64, 64),
    'nature_cnn/output/w:0': (7 * 7 * 64, 512),
  }


def test_impala_shallow_sizes_are_those_of_the_paper():
  torso = torsos.ImpalaShallow(256)
  torso(tf.zeros([1, 84, 84, 4]))
  shapes = {v.name: tuple(v.shape) for v in torso.variables if '/w' in v.name}
  assert shapes == {
    'impala_shallow/conv_0/w:0': (8, 8, 4, 16),
    'impala_shallow/conv_1/w:0': (4, 4, 16, 32),
    'impala_shallow/output/w:0': (9 * 9 * 32, 256),
  }


def _convolve(x, w, stride):
  """No padding, in loops."""
  size = w.shape[0]
  rows, columns = ((n - size) // stride + 1 for n in x.shape[1:3])
  y = np.zeros((x.shape[0], rows, columns, w.shape[3]))
  for i in range(rows):
    for j in range(columns):
      window = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
      y[:, i, j] = np.einsum('nhwc,hwcd->nd', window, w)
  return y


def test_impala_shallow_equals_its_definition():
  torso = torsos.ImpalaShallow(5)
  image = np.random.default_rng(0).integers(0, 256, (3, 36, 30, 2)).astype(np.uint8)
  features = torso(image)
  for variable in torso.variables:  # biases are 0 at first
    variable.assign_add(tf.random.stateless_normal(variable.shape, (0, 1), stddev=0.1))
  features = torso(image)
  w = {v.name.removeprefix('impala_shallow/'): v.numpy().astype(float) for v in torso.variables}
  x = image / 255.0
  for layer, stride in (('conv_0', 4), ('conv_1', 2)):
    x = np.maximum(_convolve(x, w[f'{layer}/w:0'], stride) + w[f'{layer}/b:0'], 0)
  expected = np.maximum(x.reshape(3, -1) @ w['output/w:0'] + w['output/b:0'], 0)
  assert (expected > 0).any() and (expected == 0).any()
  np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)


def test_an_image_without_channels_gets_one():
  torso = torsos.NatureCNN(7)
  assert torso({'pixels': tf.zeros([2, 40, 40], tf.uint8)}).shape == (2, 7)


@pytest.mark.parametrize(
  'observation', [tf.zeros([2, 5]), {'a': tf.zeros([2, 40, 40, 1]), 'b': tf.zeros([2, 3])}]
)
def test_what_is_not_one_image_is_refused(observation):
  with pytest.raises(types.UserError, match="network.torso 'nature_cnn' needs one image"):
    torsos.NatureCNN(7)(observation)


def test_initial_weights_are_glorot_uniform_and_biases_zero():
  tf.random.set_seed(0)
  layer = torsos.linear(300, 'layer')
  layer(tf.zeros([1, 100]))
  limit = np.sqrt(6 / 400)
  weights = layer.w.numpy()
  assert 0.99 * limit < np.abs(weights).max() <= limit
  np.testing.assert_allclose(weights.std(), limit / np.sqrt(3), rtol=0.02)
  np.testing.assert_array_equal(layer.b, np.zeros(300))
