"""Torsos: shapes, scaling, nests, initial weights."""
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
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


@pytest.mark.parametrize('make, shape, num_variables', [
    (lambda: torsos.NatureCNN(512), (84, 84, 4), 8),
    (lambda: torsos.ImpalaResNet(256), (72, 96, 3), 32),
])
def test_convolutional_torsos(make, shape, num_variables):
  torso = make()
  image = tf.zeros([2, *shape], tf.uint8)
  features = torso(image)
  assert features.shape == (2, 512 if num_variables == 8 else 256)
  assert len(torso.trainable_variables) == num_variables


def test_nature_cnn_sizes_are_those_of_the_paper():
  torso = torsos.NatureCNN(512)
  torso(tf.zeros([1, 84, 84, 4]))
  shapes = {v.name: tuple(v.shape) for v in torso.variables if '/w' in v.name}
  assert shapes == {
      'nature_cnn/conv_0/w:0': (8, 8, 4, 32), 'nature_cnn/conv_1/w:0': (4, 4, 32, 64),
      'nature_cnn/conv_2/w:0': (3, 3, 64, 64), 'nature_cnn/output/w:0': (7 * 7 * 64, 512)}


def test_an_image_without_channels_gets_one():
  torso = torsos.NatureCNN(7)
  assert torso({'pixels': tf.zeros([2, 40, 40], tf.uint8)}).shape == (2, 7)


@pytest.mark.parametrize('observation', [
    tf.zeros([2, 5]), {'a': tf.zeros([2, 40, 40, 1]), 'b': tf.zeros([2, 3])}])
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
