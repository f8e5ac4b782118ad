"""The networks of DeepMind Lab, without and with instructions: variables, words, errors."""

import dataclasses

from dm_env import specs
import numpy as np
import pytest
import tensorflow as tf

from seed_acme import types
from seed_acme.configs import registry
from seed_acme.envs import instructions as word_ids
from seed_acme.networks import build
from seed_acme.networks import instructions

_IMAGE = specs.BoundedArray((72, 96, 3), np.uint8, 0, 255)
_ACTION = specs.DiscreteArray(9)
_PAIR = {'image': _IMAGE, 'instruction': word_ids.spec(16)}


def _config(torso):
  network = registry.load('dmlab_rooms_watermaze').network
  return dataclasses.replace(network, torso=torso)


def _shapes(network):
  return sorted(tuple(variable.shape) for variable in network.trainable_variables)


@pytest.mark.slow
def test_the_network_of_dmlab_has_39_variables():
  spec = types.EnvironmentSpec(_IMAGE, _ACTION)
  network = build.make_actor_critic(_config('impala_resnet'), spec, 9)
  assert len(network.trainable_variables) == 39
  shapes = _shapes(network)
  convolutions = [shape for shape in shapes if len(shape) == 4]
  assert len(convolutions) == 15
  assert convolutions.count((3, 3, 3, 16)) == 1 and convolutions.count((3, 3, 16, 16)) == 4
  assert convolutions.count((3, 3, 16, 32)) == 1 and convolutions.count((3, 3, 32, 32)) == 9
  # Three poolings of 72 x 96, the clipped reward and the nine actions, the heads.
  for shape in ((9 * 12 * 32, 256), (256 + 1 + 9, 4 * 256), (256, 9), (256, 1)):
    assert shape in shapes


@pytest.mark.slow
def test_with_instructions_there_are_an_embedding_and_an_lstm_more():
  spec = types.EnvironmentSpec(_PAIR, _ACTION)
  network = build.make_actor_critic(_config('impala_resnet_instruction'), spec, 9)
  assert len(network.trainable_variables) == 39 + 1 + 3
  shapes = _shapes(network)
  for shape in ((1001, 20), (20, 4 * 64), (64, 4 * 64), (256 + 64 + 1 + 9, 4 * 256)):
    assert shape in shapes


def _encode(encoder, *texts):
  return encoder(tf.stack([word_ids.encode(text, 8) for text in texts])).numpy()


def test_the_output_is_that_of_the_last_word_whatever_the_padding():
  encoder = instructions.InstructionEncoder(1001)
  padded = _encode(encoder, 'get the red hat')
  exact = encoder(word_ids.encode('get the red hat', 4)[np.newaxis]).numpy()
  np.testing.assert_allclose(padded, exact, rtol=1e-5, atol=1e-6)
  assert padded.shape == (1, 64)


def test_order_and_words_matter_and_no_words_are_zeros():
  encoder = instructions.InstructionEncoder(1001)
  first, second, third, none = _encode(encoder, 'red hat', 'hat red', 'red', '')
  assert np.abs(first - second).max() > 1e-3 and np.abs(first - third).max() > 1e-3
  assert (none == 0).all()


def test_rows_do_not_touch_each_other():
  encoder = instructions.InstructionEncoder(1001)
  together = _encode(encoder, 'get the red hat', 'no', '')
  for index, text in enumerate(('get the red hat', 'no', '')):
    np.testing.assert_allclose(together[index], _encode(encoder, text)[0], rtol=1e-5, atol=1e-6)


def test_the_gradient_reaches_the_embeddings_of_the_words_that_were_said():
  encoder = instructions.InstructionEncoder(1001)
  ids = word_ids.encode('red hat', 8)
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(encoder(ids[np.newaxis]))
  embeddings = next(v for v in encoder.trainable_variables if v.shape == (1001, 20))
  gradient = tf.convert_to_tensor(tape.gradient(loss, embeddings)).numpy()
  assert set(np.flatnonzero(np.abs(gradient).sum(axis=1))) == {ids[0], ids[1]}


@pytest.mark.parametrize(
  'observation',
  [
    _IMAGE,
    {'image': _IMAGE},
    {'image': _IMAGE, 'words': word_ids.spec(16)},
    {'image': _IMAGE, 'instruction': specs.Array((16,), np.float32)},
  ],
)
def test_another_observation_is_a_user_error(observation):
  spec = types.EnvironmentSpec(observation, _ACTION)
  with pytest.raises(types.UserError, match=r"needs the observation \{'image', 'instruction'\}"):
    build.make_actor_critic(_config('impala_resnet_instruction'), spec, 9)


def test_a_pair_without_the_torso_for_it_is_a_user_error():
  spec = types.EnvironmentSpec(_PAIR, _ACTION)
  with pytest.raises(types.UserError, match="'impala_resnet' needs one image"):
    build.make_actor_critic(_config('impala_resnet'), spec, 9)
