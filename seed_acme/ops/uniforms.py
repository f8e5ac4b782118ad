"""Uniform random numbers from a key that do not depend on how the graph is compiled.

On a CPU, TensorFlow's stateless operations give different numbers with XLA than without it:
floats always, integers if the key contains a negative number. So these functions draw integer
bits, and remove the signs of keys. TensorFlow Probability's samplers call the same operations.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_NUM_BITS = 23


def draw(key: Any, shape: Any) -> tf.Tensor:
  """Draws float32 in (0, 1) of a shape, a function of the key alone.

  key: `[2]` int32. One key gives one tensor; `split` it for more. shape: a list or an integer
    tensor.

    u = (k + 1/2) / 2^23,  k uniform over 0 ... 2^23 - 1

  These numbers are exact in float32, so 0 and 1 are never among them.
  """
  bits = tf.random.stateless_uniform(
    shape, _without_signs(key), minval=None, maxval=None, dtype=tf.int32
  )
  k = tf.bitwise.bitwise_and(bits, 2**_NUM_BITS - 1)
  return (tf.cast(k, tf.float32) + 0.5) * 2.0**-_NUM_BITS


def split(key: Any, num: int) -> list[tf.Tensor]:
  """Returns `num` keys, `[2]` int32 each, for mutually independent numbers."""
  return tf.unstack(tf.random.experimental.stateless_split(_without_signs(key), num))


def fold_in(key: Any, number: int) -> tf.Tensor:
  """Returns another key `[2]` int32, for one of several independent users of the same key."""
  return tf.random.experimental.stateless_fold_in(_without_signs(key), number)


def _without_signs(key: Any) -> tf.Tensor:
  return tf.bitwise.bitwise_and(tf.convert_to_tensor(key, tf.int32), 2**31 - 1)
