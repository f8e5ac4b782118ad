"""Torsos for an image and an instruction in words, like IMPALA's for DMLab-30."""

from __future__ import annotations

import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.networks import lstm
from seed_acme.networks import torsos

_EMBEDDING_SIZE, _LSTM_SIZE = 20, 64


class InstructionEncoder(snt.Module):
  """Embeds words and runs them through an LSTM; returns its output at the last word.

  Espeholt et al. 2018, figure 3, right: embedding 20, LSTM 64. Without words it returns zeros.
  """

  def __init__(self, num_ids: int, name: str = 'instruction_encoder'):
    """num_ids: number of word ids, including 0, the padding after the last word."""
    super().__init__(name=name)
    self._embeddings = tf.Variable(
      torsos.weight_initializer()([num_ids, _EMBEDDING_SIZE], tf.float32), name='embeddings'
    )
    self._lstm = lstm.LSTM(_LSTM_SIZE)

  def __call__(self, word_ids: tf.Tensor) -> tf.Tensor:
    """`[N, words]` integers -> `[N, 64]`."""
    words = tf.transpose(tf.gather(self._embeddings, word_ids), [1, 0, 2])
    num_rows = tf.shape(word_ids)[0]
    is_first = tf.zeros(tf.shape(words)[:2], tf.bool)  # the state is zero anyway
    is_first = tf.ensure_shape(is_first, words.shape[:2])
    outputs, _ = self._lstm.unroll(words, is_first, self._lstm.initial_state(num_rows))
    lengths = tf.reduce_sum(tf.cast(tf.not_equal(word_ids, 0), tf.int32), axis=-1)
    last = tf.gather_nd(
      outputs, tf.stack([tf.maximum(lengths - 1, 0), tf.range(num_rows)], axis=-1)
    )
    return last * tf.cast(lengths > 0, tf.float32)[:, tf.newaxis]


class ImageAndInstruction(snt.Module):
  """Concatenates the features of the image and those of the instruction."""

  def __init__(self, image_torso: torsos.Torso, num_ids: int, name: str = 'image_and_instruction'):
    super().__init__(name=name)
    self._image_torso = image_torso
    self._encoder = InstructionEncoder(num_ids)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`{'image': [N, H, W, C], 'instruction': [N, words]}` -> `[N, F + 64]`."""
    image = self._image_torso(observation['image'])
    return tf.concat([image, self._encoder(tf.convert_to_tensor(observation['instruction']))], -1)
