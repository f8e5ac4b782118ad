"""Convolutional torsos, which map an image to features.

Weights are initialised as in `torsos`, unless a torso is given another `w_init`. A torso computes
in its `dtype`, bfloat16 or float32. Its weights and features are float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.networks import precision
from seed_acme.networks import requirements
from seed_acme.networks import torsos
from seed_acme.ops import byte_scale


class _PlainCNN(snt.Module):
  """Convolutions without padding, then a dense layer; ReLU after each."""

  _KIND: str  # key of its convolutions in `requirements.CONVOLUTIONS`

  def __init__(
    self,
    output_size: int,
    name: str | None = None,
    w_init: snt.initializers.Initializer | None = None,
    dtype: tf.DType = tf.float32,
    divisor: float = byte_scale.BYTE,
  ):
    """w_init, divisor: as in `ImpalaResNet`."""
    super().__init__(name=name or self._KIND)
    layers = requirements.CONVOLUTIONS[self._KIND]
    self._dtype = dtype
    self._divisor = divisor
    self._convolutions = [
      precision.Convolution(*layer, 'VALID', f'conv_{i}', w_init) for i, layer in enumerate(layers)
    ]
    self._output = precision.Dense(output_size, 'output', w_init)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, height, width, channels]` -> `[N, output_size]`; 84 x 84 in the papers."""
    features, scale = _single_image(observation, self.name, self._dtype, self._divisor)
    for convolution in self._convolutions:
      features = tf.nn.relu(convolution(features, scale))
      scale = 1.0
    return tf.nn.relu(self._output(snt.flatten(features)))


class NatureCNN(_PlainCNN):
  """Three convolutions and a dense layer (Mnih et al. 2015, Methods, "Model architecture").

  With oneDNN on one core its products run at 87 to 108 GFLOP/s in float32, and a plain matrix
  product at 108. Neither making the first convolution a 2x2 one on `space_to_depth` nor smaller
  batches made it faster.
  """

  _KIND = 'nature_cnn'


class ImpalaShallow(_PlainCNN):
  """The shallow network (Espeholt et al. 2018, figure 3, left), for Atari 84 x 84.

  The figure does not give the padding. Without any, as in the network of Mnih et al. 2013
  that it is based on, 84 x 84 pixels become 20 x 20 and 9 x 9.
  """

  _KIND = 'impala_shallow'


class RLlib42(snt.Module):
  """RLlib's convolutions for Atari 42 x 42 (Liang et al. 2018, its `VisionNetwork`): 42 x 42 pixels
  become 21 x 21 and 11 x 11, and the last convolution covers its whole input.
  """

  def __init__(
    self,
    output_size: int,
    name: str = 'rllib_42',
    w_init: snt.initializers.Initializer | None = None,
    dtype: tf.DType = tf.float32,
    divisor: float = byte_scale.BYTE,
  ):
    """w_init, divisor: as in `ImpalaResNet`."""
    super().__init__(name=name)
    self._dtype = dtype
    self._divisor = divisor
    self._convolutions = [
      precision.Convolution(16, 4, 2, 'SAME', 'conv_0', w_init),
      precision.Convolution(32, 4, 2, 'SAME', 'conv_1', w_init),
      precision.Convolution(output_size, 11, 1, 'VALID', 'conv_2', w_init),
    ]

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, 42, 42, channels]` -> `[N, output_size]`."""
    features, scale = _single_image(observation, self.name, self._dtype, self._divisor)
    for convolution in self._convolutions:
      features = tf.nn.relu(convolution(features, scale))
      scale = 1.0
    return tf.cast(snt.flatten(features), tf.float32)


class _ResidualBlock(snt.Module):
  """x + conv(relu(conv(relu(x)))), 3x3, same size."""

  def __init__(self, channels: int, name: str, w_init: snt.initializers.Initializer | None):
    super().__init__(name=name)
    self._first = precision.Convolution(channels, 3, 1, 'SAME', 'conv_0', w_init)
    self._second = precision.Convolution(channels, 3, 1, 'SAME', 'conv_1', w_init)

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    return x + self._second(tf.nn.relu(self._first(tf.nn.relu(x))))


class _ResidualStack(snt.Module):
  """3x3 convolution, 3x3 max-pooling with stride 2, two residual blocks."""

  def __init__(self, channels: int, name: str, w_init: snt.initializers.Initializer | None):
    super().__init__(name=name)
    self._input = precision.Convolution(channels, 3, 1, 'SAME', 'conv', w_init)
    self._blocks = [_ResidualBlock(channels, f'block_{i}', w_init) for i in range(2)]

  def __call__(self, x: tf.Tensor, scale: float) -> tf.Tensor:
    x = tf.nn.max_pool2d(self._input(x, scale), 3, 2, 'SAME')
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
    dtype: tf.DType = tf.float32,
    divisor: float = byte_scale.BYTE,
  ):
    """channels: number of channels of each stack. w_init: initialiser of all weights; None = the
    default of `torsos`. divisor: number that an image of bytes is divided by."""
    super().__init__(name=name)
    self._dtype = dtype
    self._divisor = divisor
    self._stacks = [_ResidualStack(c, f'stack_{i}', w_init) for i, c in enumerate(channels)]
    self._output = precision.Dense(output_size, 'output', w_init)

  def __call__(self, observation: types.Nest) -> tf.Tensor:
    """`[N, height, width, channels]` -> `[N, output_size]`; 72 x 96 in the paper."""
    features, scale = _single_image(observation, self.name, self._dtype, self._divisor)
    for stack in self._stacks:
      features = stack(features, scale)
      scale = 1.0
    return tf.nn.relu(self._output(snt.flatten(tf.nn.relu(features))))


class FootballResNet(ImpalaResNet):
  """Football's residual network: four stacks of 16, 32, 32 and 32 channels (Espeholt et al. 2019).
  The default of `w_init` is LeCun's."""

  def __init__(
    self,
    output_size: int,
    name: str = 'football_resnet',
    w_init: snt.initializers.Initializer | None = None,
    dtype: tf.DType = tf.float32,
    divisor: float = byte_scale.BYTE,
  ):
    w_init = w_init or torsos.weight_initializer('lecun_normal')
    super().__init__(output_size, name, (16, 32, 32, 32), w_init, dtype, divisor)


def _single_image(
  observation: types.Nest, torso: str, dtype: tf.DType, divisor: float
) -> tuple[tf.Tensor, float]:
  """Returns the observation's only array, `[N, height, width, channels]` of `dtype`, and its scale.

  Bytes are not scaled here, because bfloat16 represents each of them exactly, but few of their
  255ths.
  """
  leaves = tree.flatten(observation)
  requirements.check_image([x.shape[1:] for x in leaves], torso)
  image = tf.convert_to_tensor(leaves[0])
  scale = 1.0 / divisor if image.dtype == tf.uint8 else 1.0
  image = tf.cast(image, dtype)
  return (image[..., tf.newaxis] if len(image.shape) == 3 else image), scale
