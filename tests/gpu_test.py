"""Tests that need an NVIDIA GPU: `pytest -m gpu`. Passed on an H200 (docs/performance.md)."""

import numpy as np
import pytest
import tensorflow as tf

from seed_acme.networks import image_torsos
from seed_acme.parallel import devices
from seed_acme.tensors import graph_function

pytestmark = [
  pytest.mark.gpu,
  pytest.mark.skipif(not tf.config.list_physical_devices('GPU'), reason='no GPU is here'),
]


def _on(device, function):
  with tf.device(device):
    return [np.asarray(x) for x in tf.nest.flatten(function())]


def test_the_card_trains_a_convolution():
  devices.check_gpus(print)


@pytest.mark.parametrize('make', [image_torsos.NatureCNN, image_torsos.ImpalaResNet])
def test_a_torso_and_its_gradients_are_those_of_the_cpu(make):
  rng = np.random.default_rng(0)
  screens = tf.constant(rng.integers(0, 256, (8, 84, 84, 4)), tf.uint8)
  torso = make(32)
  torso(screens)

  def answers():
    with tf.GradientTape() as tape:
      features = torso(screens)
      loss = tf.reduce_sum(features**2)
    return features, tape.gradient(loss, torso.trainable_variables)

  for on_cpu, on_gpu in zip(_on('cpu:0', answers), _on('gpu:0', answers)):
    # Matrix products on recent GPUs have the ten bits of TF32.
    np.testing.assert_allclose(on_gpu, on_cpu, rtol=0.02, atol=0.02 * np.abs(on_cpu).max())


def test_a_graph_function_takes_and_gives_arrays_of_the_host():
  weights = tf.Variable(tf.ones([4, 3]))
  function = graph_function.GraphFunction(
    lambda x: tf.matmul(x, weights), (tf.TensorSpec([None, 4], tf.float32),)
  )
  for rows in (1, 7, 512):
    with graph_function.serial_execution():
      found = function.numpy(np.ones((rows, 4), np.float32))
    np.testing.assert_allclose(found, np.full((rows, 3), 4.0), rtol=1e-3)
