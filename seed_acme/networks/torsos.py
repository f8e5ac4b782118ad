"""Torsos, which map an observation to features: everything before the recurrent core.

A torso maps a nest of `[N, ...]` to `[N, F]`. Unless `DenseStyle` says otherwise, weights are
drawn uniformly with variance 2 / (fan_in + fan_out) and biases are 0, as in Keras and unlike
Sonnet's default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import NamedTuple

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.ops import byte_scale

_ACTIVATIONS = {'relu': tf.nn.relu, 'tanh': tf.tanh, 'swish': tf.nn.swish, 'elu': tf.nn.elu}


def weight_initializer(
  kind: str = 'glorot_uniform', gain: float = 1.0
) -> snt.initializers.Initializer:
  """Returns `glorot_uniform` (Glorot and Bengio 2010; variance gain^2 2 / (fan_in + fan_out)),
  `lecun_normal` (LeCun et al. 1998; truncated at two deviations, variance gain^2 / fan_in), or
  `orthogonal`: gain times a matrix with orthonormal rows or columns (Saxe et al. 2014). A gain of 0
  gives zeros.
  """
  if gain == 0:
    return snt.initializers.Zeros()
  if kind == 'lecun_normal':
    return snt.initializers.VarianceScaling(gain * gain, 'fan_in', 'truncated_normal')
  if kind == 'orthogonal':
    return snt.initializers.Orthogonal(gain)
  return snt.initializers.VarianceScaling(gain * gain, 'fan_avg', 'uniform')


def linear(
  output_size: int,
  name: str,
  with_bias: bool = True,
  w_init: snt.initializers.Initializer | None = None,
) -> snt.Linear:
  """Makes a dense layer with the initialisers of this package."""
  return snt.Linear(
    output_size,
    with_bias,
    w_init=w_init or weight_initializer(),
    b_init=snt.initializers.Zeros() if with_bias else None,
    name=name,
  )


Torso = Callable[[types.Nest], tf.Tensor]


class DenseStyle(NamedTuple):
  """Activation, initialiser and gain of hidden dense layers, as in `NetworkConfig`."""

  activation: str = 'relu'
  initializer: str = 'glorot_uniform'
  hidden_gain: float = 0.0

  def activate(self, x: tf.Tensor) -> tf.Tensor:
    """Applies the activation elementwise."""
    return _ACTIVATIONS[self.activation](x)

  def hidden_initializer(self) -> snt.initializers.Initializer:
    """Returns the initialiser with the configured gain. By default, orthogonal layers before a
    rectifier compensate for the half that it sets to 0.
    """
    keeps_all = self.initializer != 'orthogonal' or self.activation == 'tanh'
    gain = self.hidden_gain or (1.0 if keeps_all else math.sqrt(2.0))
    return weight_initializer(self.initializer, gain)

  def output_initializer(self, gain: float) -> snt.initializers.Initializer:
    """Returns the initialiser of the last layer of a head."""
    return weight_initializer(self.initializer, gain)


def as_float(x: tf.Tensor, divisor: byte_scale.Divisor = byte_scale.BYTE) -> tf.Tensor:
  """Casts to float32; uint8 is divided by 255, which scales an image from [0, 255] to [0, 1], or by
  another divisor, a number or one for each of the numbers `[..., K]`."""
  scaled = tf.cast(x, tf.float32)
  return scaled * np.float32(1.0 / divisor) if x.dtype == tf.uint8 else scaled


def one_hot(num_values: Sequence[int] | np.ndarray, values: tf.Tensor) -> tf.Tensor:
  """Encodes choices `[N, ...]`, K per row, as `[N, sum of num_values]`, one block per choice."""
  if len(num_values) == 1:
    return tf.one_hot(tf.reshape(tf.cast(values, tf.int32), [-1]), int(num_values[0]))
  block_of_column = np.repeat(np.arange(len(num_values)), num_values)
  value_of_column = np.concatenate([np.arange(n) for n in num_values])
  rows = tf.reshape(tf.cast(values, tf.int32), [-1, len(num_values)])
  return tf.cast(tf.equal(tf.gather(rows, block_of_column, axis=1), value_of_column), tf.float32)


def _flat(x: tf.Tensor, sizes: np.ndarray | None, divisor: byte_scale.Divisor) -> tf.Tensor:
  """Flattens an array of the observation, `[N, ...]` -> `[N, numbers]`. sizes: see
  `choices.num_values`."""
  rows = snt.flatten(x) if len(x.shape) > 1 else x[:, tf.newaxis]
  if sizes is None:
    return as_float(rows, divisor)
  if sizes.sum() <= choices.MOST_ONE_HOT_VALUES:
    return one_hot(sizes, rows)
  return tf.cast(rows, tf.float32) / np.maximum(sizes - 1, 1).astype(np.float32)


class MLP(snt.Module):
  """Dense layers, each with an activation. A nested observation is flattened and concatenated.

  Choices, such as Discrete and MultiDiscrete observations, are encoded one-hot; if an array has
  more than `choices.MOST_ONE_HOT_VALUES` values in all, as numbers from 0 to 1.
  """

  def __init__(
    self,
    sizes: Sequence[int],
    name: str = 'mlp',
    style: DenseStyle | None = None,
    observation_spec: types.Nest | None = None,
    divisors: Sequence[byte_scale.Divisor] | None = None,
  ):
    """observation_spec: tells which arrays hold choices; without it all are taken as numbers.

    divisors: for each array, in case its numbers are bytes; None = 255.
    """
    super().__init__(name=name)
    style = style or DenseStyle()
    self._style = style
    specs = [] if observation_spec is None else tree.flatten(observation_spec)
    self._sizes = [choices.num_values(spec) for spec in specs]
    self._divisors = divisors
    self._layers = [
      linear(size, f'linear_{i}', w_init=style.hidden_initializer()) for i, size in enumerate(sizes)
    ]

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Nest of `[N, ...]` -> `[N, F]`; dicts in the order of their sorted keys."""
    leaves = [tf.convert_to_tensor(x) for x in tree.flatten(observation)]
    sizes = self._sizes or [None] * len(leaves)
    divisors = self._divisors or [byte_scale.BYTE] * len(leaves)
    parts = [_flat(*array) for array in zip(leaves, sizes, divisors)]
    features = parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)
    for layer in self._layers:
      features = self._style.activate(layer(features))
    return features


def unpack_planes(packed: tf.Tensor, num_planes: int) -> tf.Tensor:
  """Unpacks `[N, height, width, 1]` of `packed_planes.pack` to `[N, height, width, num_planes]`
  float32 of 0 and 1: bit i becomes plane i."""
  bits = tf.bitwise.right_shift(tf.cast(packed, tf.int32), tf.range(num_planes))
  return tf.cast(tf.bitwise.bitwise_and(bits, 1), tf.float32)


def of_packed_planes(torso: Torso, num_planes: int) -> Torso:
  """Returns a torso that unpacks planes first; the torso itself if there are none (0)."""
  if not num_planes:
    return torso
  return _Unpacked(torso, num_planes)


class _Unpacked(snt.Module):
  """Unpacks planes for a torso, which owns the variables."""

  def __init__(self, torso: Torso, num_planes: int):
    super().__init__(name='unpacked')
    self._torso = torso
    self._num_planes = num_planes

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, height, width, 1]` uint16 -> the torso's features."""
    [packed] = tree.flatten(observation)
    return self._torso(unpack_planes(tf.convert_to_tensor(packed), self._num_planes))
