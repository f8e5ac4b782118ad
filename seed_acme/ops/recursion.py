"""The backward recursion under V-trace and GAE."""
from __future__ import annotations

import tensorflow as tf


def backward_sums(x: tf.Tensor, decay: tf.Tensor) -> tf.Tensor:
  """`[T, B]` sums that run from the end; T must be known when traced.

    y_t = x_t + decay_t y_{t+1},  y_T = 0
  """
  num_steps = x.shape[0]
  if num_steps is None:
    raise ValueError(f'x has shape {x.shape}: the number of rows T must be static')
  span = 1
  while span < num_steps:
    padding = [[0, span], [0, 0]]
    x += decay * tf.pad(x[span:], padding)
    decay *= tf.pad(decay[span:], padding)
    span *= 2
  return x
