"""Torsos: scaling, nests, initial weights."""

from dm_env import specs
import numpy as np
import tensorflow as tf

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


def test_initial_weights_are_glorot_uniform_and_biases_zero():
  tf.random.set_seed(0)
  layer = torsos.linear(300, 'layer')
  layer(tf.zeros([1, 100]))
  limit = np.sqrt(6 / 400)
  weights = layer.w.numpy()
  assert 0.99 * limit < np.abs(weights).max() <= limit
  np.testing.assert_allclose(weights.std(), limit / np.sqrt(3), rtol=0.02)
  np.testing.assert_array_equal(layer.b, np.zeros(300))
