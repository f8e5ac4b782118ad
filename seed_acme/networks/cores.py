"""Recurrent cores, which carry state from row to row and reset it where a row is FIRST.

One row `[N, ...]` and many rows `[T, B, ...]` run through the same weights; `unroll` equals
calling the core row by row, in outputs and in state.
"""

from __future__ import annotations

from typing import Any, Protocol

import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.networks import torsos


class Core(Protocol):
  """Interface of a core. is_first is bool; a row where it is True starts from the zero state."""

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Returns the zero state `[batch_size, ...]`."""

  def __call__(
    self, features: tf.Tensor, is_first: tf.Tensor, state: types.Nest
  ) -> tuple[tf.Tensor, types.Nest]:
    """features `[N, F]`, is_first `[N]`, state `[N, ...]` -> outputs `[N, H]`, new state."""

  def unroll(
    self, features: tf.Tensor, is_first: tf.Tensor, state: types.Nest
  ) -> tuple[tf.Tensor, types.Nest]:
    """features `[T, B, F]`, is_first `[T, B]`, state `[B, ...]` -> `[T, B, H]`, last state."""


class GRU(snt.Module):
  """Gated recurrent unit (Cho et al. 2014), reset after the product as in cuDNN.

  z, r = sigmoid(W x + U h + b);  n = tanh(W x + b + r (U h + b_h))
  h' = (1 - z) n + z h
  """

  def __init__(self, size: int, name: str = 'gru'):
    super().__init__(name=name)
    self._size = size

  @snt.once
  def _create(self, input_size: int) -> None:
    size = self._size
    self._w_x, self._w_h = gate_weights(input_size, size, num_gates=3)
    self._bias = tf.Variable(tf.zeros([3 * size]), name='bias')
    self._bias_h = tf.Variable(tf.zeros([size]), name='bias_h')

  def initial_state(self, batch_size: Any) -> tf.Tensor:
    return tf.zeros([batch_size, self._size])

  def __call__(self, features, is_first, state):
    self._create(features.shape[-1])
    return self._step(project(features, self._w_x, self._bias), is_first, state)

  def _step(self, projected, is_first, state):
    hidden = reset_state(is_first, state)
    x_zr, x_n = tf.split(projected, [2 * self._size, self._size], axis=-1)
    h_zr, h_n = tf.split(tf.matmul(hidden, self._w_h), [2 * self._size, self._size], axis=-1)
    z, r = tf.split(tf.sigmoid(x_zr + h_zr), 2, axis=-1)
    candidate = tf.tanh(x_n + r * (h_n + self._bias_h))
    hidden = candidate + z * (hidden - candidate)
    return hidden, hidden

  def unroll(self, features, is_first, state):
    self._create(features.shape[-1])
    projected = project(features, self._w_x, self._bias)
    outputs = []
    for x, first in zip(tf.unstack(projected), tf.unstack(is_first)):
      output, state = self._step(x, first, state)
      outputs.append(output)
    return tf.stack(outputs), state


def gate_weights(input_size: int, size: int, num_gates: int) -> tuple[tf.Variable, tf.Variable]:
  """Makes variables w_x `[F, gates H]`, initialised as in `torsos`, and orthogonal w_h
  `[H, gates H]`."""
  width = num_gates * size
  return (
    tf.Variable(torsos.weight_initializer()([input_size, width], tf.float32), name='w_x'),
    tf.Variable(snt.initializers.Orthogonal()([size, width], tf.float32), name='w_h'),
  )


def reset_state(is_first: tf.Tensor, state: types.Nest) -> types.Nest:
  """Returns zeros where `is_first` `[N]`, else the state, a nest of `[N, H]`, which may be NaN."""
  # Select picks whole rows by a vector; tf.where would broadcast, which costs twice as much.
  return tf.nest.map_structure(
    lambda s: tf.raw_ops.Select(condition=is_first, x=tf.zeros_like(s), y=s), state
  )


def project(features: tf.Tensor, weights: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
  """Returns W x + b `[..., G]` for features `[..., F]`, in one product for all rows, as it needs no
  state."""
  flat = tf.reshape(features, [-1, features.shape[-1]])
  projected = tf.nn.bias_add(tf.matmul(flat, weights), bias)
  shape = tf.concat([tf.shape(features)[:-1], [weights.shape[-1]]], axis=0)
  return tf.ensure_shape(
    tf.reshape(projected, shape), features.shape[:-1].concatenate(weights.shape[-1:])
  )
