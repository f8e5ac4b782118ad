"""A positive weight that is learnt so that a quantity, an entropy or a KL, meets its target.

The weight is exp(k p) with one trainable number p, so that a step of the optimiser changes it
by a factor; k is the speed. |k p| <= 20 keeps it within [2e-9, 5e8].
"""

from __future__ import annotations

import math

import tensorflow as tf

from seed_acme import types

_MAX_LOG_WEIGHT = 20.0


def initial_parameter(weight: float, *, speed: float, weight_name: str, speed_name: str) -> float:
  """Returns p = log(weight) / k, clipped to [-20/k, 20/k]; 0 has no logarithm and is refused.

  *_name: names of the settings, for messages.
  """
  if not (math.isfinite(speed) and speed > 0):
    raise types.UserError(f'{speed_name} ({speed}) must be > 0')
  if not (math.isfinite(weight) and weight > 0):
    raise types.UserError(
      f'{weight_name} ({weight}) must be > 0 when it is learnt to meet a target: it is the '
      'weight that adjustment starts from, by factors. A small one, such as 1e-5, will do'
    )
  bound = _MAX_LOG_WEIGHT / speed
  return min(max(math.log(weight) / speed, -bound), bound)


def weight(parameter: tf.Tensor, *, speed: float) -> tf.Tensor:
  """Returns the scalar exp(k p), with p clipped to [-20/k, 20/k].

  Outside the bounds only a gradient that leads back inside passes, because a plain clip would hold
  p there for ever, and an unclipped gradient would move it ever further out.
  """
  return tf.exp(speed * _clip_with_way_back(parameter, _MAX_LOG_WEIGHT / speed))


def adjustment_loss(weight_: tf.Tensor, slack: tf.Tensor) -> tf.Tensor:
  """Returns a scalar whose gradient lowers the weight while the constraint holds with slack.

  weight_: scalar c = exp(k p). slack: scalar, positive where the constraint holds and the weight
    may shrink, such as mean(threshold - x) for x <= threshold; it gets no gradient.

    L = c * stop_gradient(slack),  dL/dp = k c slack
  """
  return weight_ * tf.stop_gradient(slack)


def _clip_with_way_back(x: tf.Tensor, bound: float) -> tf.Tensor:

  @tf.custom_gradient
  def clip(x):

    def gradient(upstream):
      outward = tf.logical_or(
        tf.logical_and(x > bound, upstream < 0), tf.logical_and(x < -bound, upstream > 0)
      )
      return tf.where(outward, tf.zeros_like(upstream), upstream)

    return tf.clip_by_value(x, -bound, bound), gradient

  return clip(tf.convert_to_tensor(x))
