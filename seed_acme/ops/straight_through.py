"""A clip that lets gradients through."""

from __future__ import annotations

import tensorflow as tf


def clip(x: tf.Tensor, low: float, high: float) -> tf.Tensor:
  """Any shape -> x clipped to [low, high], with the gradient of the identity everywhere.

  A plain clip has gradient 0 outside, so a value that got there would stay. It is a constant
  plus a difference that is exactly 0, so that no size of x costs precision, while TFP's
  clip_by_value_preserve_gradient adds the difference to x and turns 3e38 into 0.
  """
  return tf.stop_gradient(tf.clip_by_value(x, low, high)) + (x - tf.stop_gradient(x))
