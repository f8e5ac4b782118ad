"""The number format that convolutional torsos compute in, and their layers.

Weights, the optimiser's gradients, and features are float32 whatever the format.
"""

from __future__ import annotations

import functools
from typing import Any

import sonnet as snt
import tensorflow as tf

from seed_acme.networks import torsos


@functools.cache
def has_fast_bfloat16() -> bool:
  """Whether the CPU multiplies bfloat16 natively (avx512_bf16), and there is no GPU."""
  if tf.config.list_physical_devices('GPU'):
    return False
  try:
    with open('/proc/cpuinfo', encoding='utf-8') as handle:
      flags = next((line for line in handle if line.startswith('flags')), '')
  except OSError:
    return False
  return 'avx512_bf16' in flags.split()


def compute_dtype(precision: str) -> tf.DType:
  """Returns the dtype to compute in. precision: see `NetworkConfig.precision`."""
  is_short = precision == 'bfloat16' or (precision == 'auto' and has_fast_bfloat16())
  return tf.bfloat16 if is_short else tf.float32


class Convolution(snt.Module):
  """y = scale (w * x) + b, computed in the format of x; w and b are float32 variables.

  Sonnet's layer needs w in the format of x, so that the optimiser would round each step.
  """

  def __init__(
    self,
    channels: int,
    size: int,
    stride: int,
    padding: str,
    name: str,
    w_init: snt.initializers.Initializer | None = None,
  ):
    """size: side of the square kernel. padding: `VALID` or `SAME`."""
    super().__init__(name=name)
    self._channels = channels
    self._size = size
    self._stride = stride
    self._padding = padding
    self._w_init = w_init or torsos.weight_initializer()

  @snt.once
  def _create(self, input_channels: int) -> None:
    shape = [self._size, self._size, input_channels, self._channels]
    self._w = tf.Variable(self._w_init(shape, tf.float32), name='w')
    self._b = tf.Variable(tf.zeros([self._channels]), name='b')

  def __call__(self, x: tf.Tensor, scale: float = 1.0) -> tf.Tensor:
    """x: `[N, height, width, channels]`. scale: applied to the weights, as they are fewer than
    pixels."""
    self._create(x.shape[-1])
    w = self._w if scale == 1.0 else self._w * scale
    y = tf.nn.conv2d(x, tf.cast(w, x.dtype), self._stride, self._padding)
    return tf.nn.bias_add(y, self._b) if x.dtype == tf.float32 else _add_bias(y, self._b)


@tf.custom_gradient
def _add_bias(y: tf.Tensor, bias: tf.Tensor) -> tuple[tf.Tensor, Any]:
  """y `[N, height, width, C]` bfloat16, bias `[C]` float32 -> their sum in bfloat16.

  TensorFlow (2.15) sums the gradient of a bias in the format of y, where 256 + 1 = 256. A product
  with ones sums in float32, and is faster.
  """

  def gradient(d_sum: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    rows = tf.reshape(d_sum, [-1, d_sum.shape[-1]])
    [d_bias] = tf.unstack(tf.matmul(tf.ones([1, tf.shape(rows)[0]], rows.dtype), rows))
    return d_sum, tf.cast(d_bias, tf.float32)

  return tf.nn.bias_add(y, tf.cast(bias, y.dtype)), gradient


class Dense(snt.Module):
  """y = x w + b, with the product in the format of x and all else in float32.

  The gradient of a bias in bfloat16 would be a sum over the batch that is rounded at every term.
  """

  def __init__(
    self, output_size: int, name: str, w_init: snt.initializers.Initializer | None = None
  ):
    super().__init__(name=name)
    self._output_size = output_size
    self._w_init = w_init or torsos.weight_initializer()

  @snt.once
  def _create(self, input_size: int) -> None:
    self._w = tf.Variable(self._w_init([input_size, self._output_size], tf.float32), name='w')
    self._b = tf.Variable(tf.zeros([self._output_size]), name='b')

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    """x: `[N, F]` -> `[N, output_size]` float32."""
    self._create(x.shape[-1])
    product = tf.matmul(x, tf.cast(self._w, x.dtype))
    return tf.nn.bias_add(tf.cast(product, tf.float32), self._b)
