"""The Normal distribution of independent numbers, and its form clipped to [-1, 1]."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from seed_acme.ops import shapes
from seed_acme.ops import std_functions
from seed_acme.ops import straight_through

# |mean| <= 1e6 and 1e-6 <= std <= 1e6: within these bounds no square, quotient or gradient of the
# formulas below overflows float32. Gradients pass as if there were no bounds.
_LARGEST = 1e6
_SMALLEST_STD = 1e-6
_MIN_UNIFORM = 2.0**-24  # the quantiles 0 and 1 are infinite; these two are -5.3 and 5.3
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)
_FAR = 10.0  # from here on erfc approaches the smallest float32


class Normal(NamedTuple):
  """Means and standard deviations, `[..., D]` each."""

  mean: tf.Tensor
  std: tf.Tensor


class DiagonalNormal:
  """D independent Normal numbers, without bounds.

  params are D means, then D parameters that `std_function` maps to standard deviations; P = 2D
  and U = D.

  TFP's Normal has infinite quantiles at 0 and 1.
  """

  def __init__(self, num_actions: int, std_function: std_functions.StdFunction):
    if num_actions < 1:
      raise ValueError(f'num_actions ({num_actions}) must be at least 1')
    self._num_actions = num_actions
    self._std_function = std_function
    self.num_params = 2 * num_actions
    self.num_uniforms = num_actions
    self.is_std = np.repeat([False, True], num_actions)
    self.is_reparametrizable = True

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """params `[..., 2D]`, actions `[..., D]` -> `[...]`, the log of the density.

    log p(a) = sum_i -1/2 ((a_i - mean_i) / std_i)^2 - log std_i - 1/2 log 2 pi
    """
    normal = self.normal(params)
    actions = self.checked('actions', actions, params)
    return tf.reduce_sum(log_density(normal, actions), axis=-1)

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., 2D]` -> `[...]`,  H = sum_i log std_i + 1/2 log(2 pi e)."""
    return tf.reduce_sum(entropy(self.normal(params)), axis=-1)

  def kl(self, params: Any, other_params: Any) -> tf.Tensor:
    """params, other_params `[..., 2D]` -> `[...]`.

    KL = sum_i 1/2 (r_i^2 - 1) - log r_i + 1/2 ((mean_i - mean'_i) / std'_i)^2,
    r_i = std_i / std'_i
    """
    params, other_params = shapes.as_float(params), shapes.as_float(other_params)
    shapes.check_params(params, self.num_params, other_params)
    p, q = self.normal(params), self.normal(other_params)
    log_ratio = tf.math.log(p.std) - tf.math.log(q.std)
    # expm1 preserves the difference of two nearly equal policies, which r^2 - 1 would round away.
    spread = 0.5 * tf.math.expm1(2.0 * log_ratio) - log_ratio
    return tf.reduce_sum(spread + 0.5 * tf.square((p.mean - q.mean) / q.std), axis=-1)

  def std(self, params: Any) -> tf.Tensor:
    """params `[..., 2D]` -> `[..., D]`, the standard deviations."""
    return self.normal(params).std

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., 2D]` -> `[..., D]`, the means."""
    return self.normal(params).mean

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., 2D]`, uniforms `[..., D]` -> `[..., D]`, differentiable in params.

    a = mean + std z,  z the u-quantile of the standard Normal, |z| <= 5.3
    """
    normal = self.normal(params)
    return normal.mean + normal.std * self.quantiles(params, uniforms)

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """params `[..., 2D]`, uniforms `[..., D]` -> actions `[..., D]`, log p(a) `[...]`.

      log p(a) = sum_i -1/2 z_i^2 - log std_i - 1/2 log 2 pi

    z is the quantile itself, as (a - mean) / std would lose it to rounding if the mean is large.
    """
    normal, z = self.normal(params), self.quantiles(params, uniforms)
    return normal.mean + normal.std * z, tf.reduce_sum(log_density_of_z(normal, z), axis=-1)

  def quantiles(self, params: Any, uniforms: Any) -> tf.Tensor:
    """uniforms `[..., D]` -> z `[..., D]`, the u-quantiles of the standard Normal, |z| <= 5.3."""
    uniforms = self.checked('uniforms', uniforms, params)
    return tf.math.ndtri(tf.clip_by_value(uniforms, _MIN_UNIFORM, 1.0 - _MIN_UNIFORM))

  def normal(self, params: Any) -> Normal:
    """params `[..., 2D]` -> means and standard deviations `[..., D]`, bounded as above."""
    params = shapes.as_float(params)
    shapes.check_params(params, self.num_params)
    mean, std_params = tf.split(params, 2, axis=-1)
    return Normal(
      straight_through.clip(mean, -_LARGEST, _LARGEST),
      straight_through.clip(self._std_function(std_params), _SMALLEST_STD, _LARGEST),
    )

  def checked(self, name: str, x: Any, params: Any) -> tf.Tensor:
    """Returns `x` as float32; ValueError unless it is `[..., D]` for params `[..., 2D]`."""
    x = shapes.as_float(x)
    shapes.check_event(name, x, shapes.as_float(params), [self._num_actions])
    return x


class ClippedNormal(DiagonalNormal):
  """Normal numbers, clipped to [-1, 1] when they are sampled.

  log_prob is the density of the Normal *before* clipping, evaluated at the clipped action, as in
  SEED RL; the mass beyond a bound is not added to the bound. Entropy and KL are also the Normal's.
  So the ratio of two policies at a bound is an approximation, and the entropy has no upper bound;
  TanhNormal has neither fault. TFP has no clipped distribution, because a clip is not a bijector.
  """

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., 2D]` -> `[..., D]`, clip(mean)."""
    return tf.clip_by_value(super().mode(params), -1.0, 1.0)

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., 2D]`, uniforms `[..., D]` -> `[..., D]`, clip(mean + std z)."""
    return tf.clip_by_value(super().sample(params, uniforms), -1.0, 1.0)

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """params `[..., 2D]`, uniforms `[..., D]` -> actions `[..., D]`, log p(a) `[...]`.

    As in `log_prob`, log p is the density at the clipped action, so z is clipped.
    """
    normal = self.normal(params)
    lowest, highest = (-1.0 - normal.mean) / normal.std, (1.0 - normal.mean) / normal.std
    z = tf.maximum(tf.minimum(self.quantiles(params, uniforms), highest), lowest)
    log_prob = tf.reduce_sum(log_density_of_z(normal, z), axis=-1)
    return self.sample(params, uniforms), log_prob


def log_density(normal: Normal, x: tf.Tensor) -> tf.Tensor:
  """normal, x `[..., D]` -> `[..., D]`, the log density of each number."""
  return log_density_of_z(normal, (x - normal.mean) / normal.std)


def log_density_of_z(normal: Normal, z: tf.Tensor) -> tf.Tensor:
  """normal, z `[..., D]` -> `[..., D]`, `log_density` at mean + std z."""
  return -0.5 * tf.square(z) - tf.math.log(normal.std) - _HALF_LOG_2PI


def entropy(normal: Normal) -> tf.Tensor:
  """`[..., D]` -> `[..., D]`, the entropy of each number in nats."""
  return tf.math.log(normal.std) + (0.5 + _HALF_LOG_2PI)


def log_cdf(z: tf.Tensor) -> tf.Tensor:
  """Any shape -> log P(Z <= z) of a standard Normal, finite with its gradient for |z| <= 1e13.

    z > -10:  log(erfc(-z / sqrt 2) / 2)
    else:     -z^2/2 - log(-z sqrt(2 pi)) + log(1 - 1/z^2 + 3/z^4 - 15/z^6)

  The second is the asymptotic series (Abramowitz and Stegun 1964, 26.2.12), whose error there is
  below 1.1e-6.
  """
  near, far = tf.maximum(z, -_FAR), tf.minimum(z, -_FAR)
  log_near = tf.math.log(0.5 * tf.math.erfc(-near * math.sqrt(0.5)))
  w = 1.0 / tf.square(far)
  series = tf.math.log1p(-w * (1.0 - w * (3.0 - w * 15.0)))
  log_far = -0.5 * tf.square(far) - tf.math.log(-far) - _HALF_LOG_2PI + series
  return tf.where(z > -_FAR, log_near, log_far)
