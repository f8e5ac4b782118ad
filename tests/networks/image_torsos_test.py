"""Convolutional torsos: sizes, definitions, and the effect of bfloat16."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.networks import image_torsos


@pytest.mark.parametrize(
  'make, shape, num_variables',
  [
    (image_torsos.NatureCNN, (84, 84, 4), 8),
    (image_torsos.ImpalaShallow, (84, 84, 4), 6),
    (image_torsos.RLlib42, (42, 42, 4), 6),
    (image_torsos.ImpalaResNet, (72, 96, 3), 32),
  ],
)
def test_convolutional_torsos(make, shape, num_variables):
  torso = make(250)
  image = tf.zeros([2, *shape], tf.uint8)
  features = torso(image)
  assert features.shape == (2, 250)
  assert len(torso.trainable_variables) == num_variables


def test_nature_cnn_sizes_are_those_of_the_paper():
  torso = image_torsos.NatureCNN(512)
  torso(tf.zeros([1, 84, 84, 4]))
  shapes = {v.name: tuple(v.shape) for v in torso.variables if '/w' in v.name}
  assert shapes == {
    'nature_cnn/conv_0/w:0': (8, 8, 4, 32),
    'nature_cnn/conv_1/w:0': (4, 4, 32, 64),
    'nature_cnn/conv_2/w:0': (3, 3, 64, 64),
    'nature_cnn/output/w:0': (7 * 7 * 64, 512),
  }


def test_impala_shallow_sizes_are_those_of_the_paper():
  torso = image_torsos.ImpalaShallow(256)
  torso(tf.zeros([1, 84, 84, 4]))
  shapes = {v.name: tuple(v.shape) for v in torso.variables if '/w' in v.name}
  assert shapes == {
    'impala_shallow/conv_0/w:0': (8, 8, 4, 16),
    'impala_shallow/conv_1/w:0': (4, 4, 16, 32),
    'impala_shallow/output/w:0': (9 * 9 * 32, 256),
  }


def test_rllib_42_sizes_are_those_of_rllib():
  torso = image_torsos.RLlib42(256)
  torso(tf.zeros([1, 42, 42, 4]))
  assert {v.name: tuple(v.shape) for v in torso.variables} == {
    'rllib_42/conv_0/w:0': (4, 4, 4, 16),
    'rllib_42/conv_0/b:0': (16,),
    'rllib_42/conv_1/w:0': (4, 4, 16, 32),
    'rllib_42/conv_1/b:0': (32,),
    'rllib_42/conv_2/w:0': (11, 11, 32, 256),
    'rllib_42/conv_2/b:0': (256,),
  }
  assert sum(np.prod(v.shape) for v in torso.variables) == 1_040 + 8_224 + 991_488


def _convolve(x, w, stride):
  """Convolves without padding, in loops."""
  size = w.shape[0]
  rows, columns = ((n - size) // stride + 1 for n in x.shape[1:3])
  y = np.zeros((x.shape[0], rows, columns, w.shape[3]))
  for i in range(rows):
    for j in range(columns):
      window = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
      y[:, i, j] = np.einsum('nhwc,hwcd->nd', window, w)
  return y


def test_impala_shallow_equals_its_definition():
  torso = image_torsos.ImpalaShallow(5)
  image = np.random.default_rng(0).integers(0, 256, (3, 36, 30, 2)).astype(np.uint8)
  features = torso(image)
  for variable in torso.variables:  # biases are 0 initially
    variable.assign_add(tf.random.stateless_normal(variable.shape, (0, 1), stddev=0.1))
  features = torso(image)
  w = {v.name.removeprefix('impala_shallow/'): v.numpy().astype(float) for v in torso.variables}
  x = image / 255.0
  for layer, stride in (('conv_0', 4), ('conv_1', 2)):
    x = np.maximum(_convolve(x, w[f'{layer}/w:0'], stride) + w[f'{layer}/b:0'], 0)
  expected = np.maximum(x.reshape(3, -1) @ w['output/w:0'] + w['output/b:0'], 0)
  assert (expected > 0).any() and (expected == 0).any()
  np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5)


def test_rllib_42_equals_its_definition():
  """42 pixels with 4 x 4 windows at stride 2 need 2 zeros for 21 windows; 21 need 3 for 11."""
  torso = image_torsos.RLlib42(5)
  image = np.random.default_rng(0).integers(0, 256, (3, 42, 42, 2)).astype(np.uint8)
  torso(image)
  for variable in torso.variables:  # biases are 0 initially
    variable.assign_add(tf.random.stateless_normal(variable.shape, (0, 1), stddev=0.02))
  features = torso(image)
  w = {v.name.removeprefix('rllib_42/'): v.numpy().astype(float) for v in torso.variables}
  x = image / 255.0
  for layer, stride, zeros in (('conv_0', 2, (1, 1)), ('conv_1', 2, (1, 2)), ('conv_2', 1, (0, 0))):
    padded = np.pad(x, ((0, 0), zeros, zeros, (0, 0)))
    x = np.maximum(_convolve(padded, w[f'{layer}/w:0'], stride) + w[f'{layer}/b:0'], 0)
  assert x.shape == (3, 1, 1, 5)
  assert (x > 0).any() and (x == 0).any()
  np.testing.assert_allclose(features, x.reshape(3, 5), rtol=1e-4, atol=1e-5)


def test_an_image_without_channels_gets_one():
  torso = image_torsos.NatureCNN(7)
  assert torso({'pixels': tf.zeros([2, 40, 40], tf.uint8)}).shape == (2, 7)


@pytest.mark.parametrize(
  'observation', [tf.zeros([2, 5]), {'a': tf.zeros([2, 40, 40, 1]), 'b': tf.zeros([2, 3])}]
)
def test_what_is_not_one_image_is_refused(observation):
  with pytest.raises(types.UserError, match="network.torso 'nature_cnn' needs one image"):
    image_torsos.NatureCNN(7)(observation)


def test_the_weights_are_drawn_as_everywhere():
  tf.random.set_seed(0)
  torso = image_torsos.NatureCNN(300)
  torso(tf.zeros([1, 84, 84, 4]))
  for weights in (v.numpy() for v in torso.variables if '/w' in v.name):
    area = np.prod(weights.shape[:-2])
    limit = np.sqrt(6 / (area * (weights.shape[-2] + weights.shape[-1])))
    assert 0.97 * limit < np.abs(weights).max() <= limit
  biases = [v.numpy() for v in torso.variables if '/b' in v.name]
  assert len(biases) == 4 and not any(b.any() for b in biases)


@pytest.mark.slow
@pytest.mark.parametrize('make', [image_torsos.NatureCNN, image_torsos.ImpalaResNet])
def test_in_bfloat16_weights_features_and_gradients_are_float32_and_nearly_the_same(make):
  tf.random.set_seed(2)  # how far bfloat16 is off depends on the weights
  image = np.random.default_rng(0).integers(0, 256, (32, 60, 52, 3)).astype(np.uint8)
  target = tf.random.stateless_normal([32, 64], (0, 1))
  exact, short = make(64), make(64, dtype=tf.bfloat16)
  exact(image), short(image)
  for one, other in zip(exact.variables, short.variables):
    other.assign(one)

  def run(torso):
    with tf.GradientTape() as tape:
      features = torso(image)
      loss = tf.reduce_mean(tf.square(features - target))
    return features, tape.gradient(loss, torso.trainable_variables)

  features, gradients = run(exact)
  short_features, short_gradients = run(short)
  assert short_features.dtype == tf.float32
  assert all(v.dtype == tf.float32 for v in short.variables)
  assert all(g.dtype == tf.float32 for g in short_gradients)
  assert 0 < _distance(features, short_features) < 0.02
  for gradient, short_gradient in zip(gradients, short_gradients):
    assert _distance(gradient, short_gradient) < 0.08


def _distance(exact, other):
  return float(tf.norm(exact - other) / tf.norm(exact))


@pytest.mark.parametrize('dtype', [tf.float32, tf.bfloat16])
def test_bytes_are_taken_exactly_and_scaled(dtype):
  """Multiples of 1/255 rounded to bfloat16 would change the image. Float pixels are not scaled."""
  torso = image_torsos.ImpalaShallow(16, dtype=dtype)
  image = np.random.default_rng(0).integers(0, 256, (4, 40, 40, 1)).astype(np.uint8)
  features = torso(image)
  scaled = torso(tf.cast(image, tf.float32) / 255.0)
  np.testing.assert_allclose(features, scaled, atol=1e-6 if dtype == tf.float32 else 0.02)
