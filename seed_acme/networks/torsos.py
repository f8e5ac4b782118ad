"""From an observation to features: everything before the recurrent core.

A torso maps a nest of `[N, ...]` to `[N, F]`. Unless `DenseStyle` says otherwise, weights are
drawn uniformly with variance 2 / (fan_in + fan_out) and biases are 0, as Keras does and unlike
Sonnet's own default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import math
from typing import NamedTuple

from dm_env import specs as dm_specs
import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import requirements

_ACTIVATIONS = {'relu': tf.nn.relu, 'tanh': tf.tanh, 'swish': tf.nn.swish, 'elu': tf.nn.elu}


def weight_initializer(
  kind: str = 'glorot_uniform', gain: float = 1.0
) -> snt.initializers.Initializer:
  """Glorot and Bengio 2010 (uniform, variance gain^2 2 / (fan_in + fan_out)); `lecun_normal`
  (LeCun et al. 1998; normal, cut off at two deviations, variance gain^2 / fan_in); or `orthogonal`:
  gain times a matrix with orthonormal rows or columns (Saxe et al. 2014).
  """
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
  """A dense layer with the initialisers of this package."""
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
    """Elementwise."""
    return _ACTIVATIONS[self.activation](x)

  def hidden_initializer(self) -> snt.initializers.Initializer:
    """Of the gain that is set; else orthogonal layers before a rectifier make up for the half
    that it sets to 0.
    """
    keeps_all = self.initializer != 'orthogonal' or self.activation == 'tanh'
    gain = self.hidden_gain or (1.0 if keeps_all else math.sqrt(2.0))
    return weight_initializer(self.initializer, gain)

  def output_initializer(self, gain: float) -> snt.initializers.Initializer:
    """Of the last layer of a head."""
    return weight_initializer(self.initializer, gain)


def _conv(
  channels: int,
  size: int,
  stride: int,
  padding: str,
  name: str,
  w_init: snt.initializers.Initializer | None = None,
) -> snt.Conv2D:
  return snt.Conv2D(
    channels,
    size,
    stride,
    padding=padding,
    w_init=w_init or weight_initializer(),
    b_init=snt.initializers.Zeros(),
    name=name,
  )


def as_float(x: tf.Tensor) -> tf.Tensor:
  """float32 of any shape; uint8, an image, is scaled from [0, 255] to [0, 1]."""
  scaled = tf.cast(x, tf.float32)
  return scaled * (1.0 / 255.0) if x.dtype == tf.uint8 else scaled


def one_hot(num_values: Sequence[int] | np.ndarray, values: tf.Tensor) -> tf.Tensor:
  """Choices `[N, ...]`, K in each row -> `[N, sum of num_values]`, one block for each choice."""
  if len(num_values) == 1:
    return tf.one_hot(tf.reshape(tf.cast(values, tf.int32), [-1]), int(num_values[0]))
  block_of_column = np.repeat(np.arange(len(num_values)), num_values)
  value_of_column = np.concatenate([np.arange(n) for n in num_values])
  rows = tf.reshape(tf.cast(values, tf.int32), [-1, len(num_values)])
  return tf.cast(tf.equal(tf.gather(rows, block_of_column, axis=1), value_of_column), tf.float32)


def _flat(x: tf.Tensor, spec: dm_specs.Array | None) -> tf.Tensor:
  """One array of the observation, `[N, ...]` -> `[N, numbers]`. None: nothing is known of it."""
  sizes = None if spec is None else choices.num_values(spec)
  rows = snt.flatten(x) if len(x.shape) > 1 else x[:, tf.newaxis]
  if sizes is None:
    return as_float(rows)
  if sizes.sum() <= choices.MOST_ONE_HOT_VALUES:
    return one_hot(sizes, rows)
  return tf.cast(rows, tf.float32) / np.maximum(sizes - 1, 1).astype(np.float32)


class MLP(snt.Module):
  """Dense layers, each activated. A nested observation is flattened and concatenated.

  Choices, such as Discrete and MultiDiscrete observations, enter one-hot; those of an array that
  has more than `choices.MOST_ONE_HOT_VALUES` values in all as numbers from 0 to 1.
  """

  def __init__(
    self,
    sizes: Sequence[int],
    name: str = 'mlp',
    style: DenseStyle | None = None,
    observation_spec: types.Nest | None = None,
  ):
    """observation_spec: says which arrays hold choices; without it all are taken as numbers."""
    super().__init__(name=name)
    style = style or DenseStyle()
    self._style = style
    self._specs = None if observation_spec is None else tree.flatten(observation_spec)
    self._layers = [
      linear(size, f'linear_{i}', w_init=style.hidden_initializer()) for i, size in enumerate(sizes)
    ]

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """Nest of `[N, ...]` -> `[N, F]`; dicts in the order of their sorted keys."""
    leaves = [tf.convert_to_tensor(x) for x in tree.flatten(observation)]
    parts = [_flat(*pair) for pair in zip(leaves, self._specs or [None] * len(leaves))]
    features = parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)
    for layer in self._layers:
      features = self._style.activate(layer(features))
    return features


class _PlainCNN(snt.Module):
  """Convolutions without padding, then a dense layer; ReLU after each."""

  def __init__(self, layers: Sequence[tuple[int, int, int]], output_size: int, name: str):
    """layers: channels, size and stride of each convolution."""
    super().__init__(name=name)
    self._convolutions = [_conv(*layer, 'VALID', f'conv_{i}') for i, layer in enumerate(layers)]
    self._output = linear(output_size, 'output')

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, height, width, channels]` -> `[N, output_size]`; 84 x 84 in the papers."""
    features = _single_image(observation, self.name)
    for convolution in self._convolutions:
      features = tf.nn.relu(convolution(features))
    return tf.nn.relu(self._output(snt.flatten(features)))


class NatureCNN(_PlainCNN):
  """Three convolutions and a dense layer (Mnih et al. 2015, Methods, "Model architecture").

  With oneDNN on one core its products run at 87 to 108 GFLOP/s, a plain matrix product at
  108. Neither the first convolution as 2x2 on `space_to_depth`, nor the scale 1/255 in its
  weights, nor smaller batches made it faster.
  """

  def __init__(self, output_size: int, name: str = 'nature_cnn'):
    super().__init__(requirements.CONVOLUTIONS['nature_cnn'], output_size, name)


class ImpalaShallow(_PlainCNN):
  """The shallow network (Espeholt et al. 2018, figure 3, left), for Atari 84 x 84.

  The figure does not give the padding; without any, as in the network of Mnih et al. 2013
  that it goes back to, 84 x 84 pixels become 20 x 20 and 9 x 9.
  """

  def __init__(self, output_size: int, name: str = 'impala_shallow'):
    super().__init__(requirements.CONVOLUTIONS['impala_shallow'], output_size, name)


class _ResidualBlock(snt.Module):
  """x + conv(relu(conv(relu(x)))), 3x3, same size."""

  def __init__(self, channels: int, name: str, w_init: snt.initializers.Initializer | None):
    super().__init__(name=name)
    self._first = _conv(channels, 3, 1, 'SAME', 'conv_0', w_init)
    self._second = _conv(channels, 3, 1, 'SAME', 'conv_1', w_init)

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    return x + self._second(tf.nn.relu(self._first(tf.nn.relu(x))))


class _ResidualStack(snt.Module):
  """3x3 convolution, 3x3 max-pooling with stride 2, two residual blocks."""

  def __init__(self, channels: int, name: str, w_init: snt.initializers.Initializer | None):
    super().__init__(name=name)
    self._input = _conv(channels, 3, 1, 'SAME', 'conv', w_init)
    self._blocks = [_ResidualBlock(channels, f'block_{i}', w_init) for i in range(2)]

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    x = tf.nn.max_pool2d(self._input(x), 3, 2, 'SAME')
    for block in self._blocks:
      x = block(x)
    return x


class ImpalaResNet(snt.Module):
  """The deep residual network (Espeholt et al. 2018, figure 3, right)."""

  def __init__(
    self,
    output_size: int,
    name: str = 'impala_resnet',
    channels: Sequence[int] = (16, 32, 32),
    w_init: snt.initializers.Initializer | None = None,
  ):
    """channels: of each stack. w_init: of all weights; None = as everywhere here."""
    super().__init__(name=name)
    self._stacks = [_ResidualStack(c, f'stack_{i}', w_init) for i, c in enumerate(channels)]
    self._output = linear(output_size, 'output', w_init=w_init)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, height, width, channels]` -> `[N, output_size]`; 72 x 96 in the paper."""
    features = _single_image(observation, self.name)
    for stack in self._stacks:
      features = stack(features)
    return tf.nn.relu(self._output(snt.flatten(tf.nn.relu(features))))


class FootballResNet(ImpalaResNet):
  """Football's: four stacks of 16, 32, 32 and 32 channels, LeCun's initialiser (Espeholt et al.
  2019)."""

  def __init__(self, output_size: int, name: str = 'football_resnet'):
    super().__init__(output_size, name, (16, 32, 32, 32), weight_initializer('lecun_normal'))


def unpack_planes(packed: tf.Tensor, num_planes: int) -> tf.Tensor:
  """`[N, height, width, 1]` of `packed_planes.pack` -> `[N, height, width, num_planes]` float32 of
  0 and 1: bit i becomes plane i."""
  bits = tf.bitwise.right_shift(tf.cast(packed, tf.int32), tf.range(num_planes))
  return tf.cast(tf.bitwise.bitwise_and(bits, 1), tf.float32)


def of_packed_planes(torso: Torso, num_planes: int) -> Torso:
  """The torso with its planes unpacked; itself where the observation is not packed (0)."""
  if not num_planes:
    return torso
  return _Unpacked(torso, num_planes)


class _Unpacked(snt.Module):
  """In front of a torso, which remains the owner of the variables."""

  def __init__(self, torso: Torso, num_planes: int):
    super().__init__(name='unpacked')
    self._torso = torso
    self._num_planes = num_planes

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, height, width, 1]` uint16 -> the torso's features."""
    [packed] = tree.flatten(observation)
    return self._torso(unpack_planes(tf.convert_to_tensor(packed), self._num_planes))


def _single_image(observation: types.Nest, torso: str) -> tf.Tensor:
  """The only array of the observation as float `[N, height, width, channels]`."""
  leaves = tree.flatten(observation)
  requirements.check_image([x.shape[1:] for x in leaves], torso)
  image = as_float(tf.convert_to_tensor(leaves[0]))
  return image[..., tf.newaxis] if len(image.shape) == 3 else image
