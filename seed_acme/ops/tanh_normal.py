"""Continuous actions in (-1, 1): the tanh of Normal numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from seed_acme.ops import normal as normal_lib

# Stored actions round to 1 long before the underlying Normal number is large, so beyond this
# threshold, which is SEED RL's, the number is taken as unknown.
_EDGE = 0.999
# Largest error of the expectation in `entropy`, in nats, by std, for |mean| <= 3, compared with
# adaptive integration: 1e-7 (std <= 1), 1.7e-4 (<= 2), 2.7e-3 (<= 3). With 16 nodes it is
# 2.2e-2 at std 3, with 64 1.7e-4; beyond std 3 it grows to 0.16 at 10, where H is about -11.
_NUM_NODES = 32


class TanhNormal(normal_lib.DiagonalNormal):
  """a_i = tanh(x_i) with independent Normal x_i; D actions, P = 2D, U = D.

  params are D means, then D parameters that the standard deviation function is applied to.
  KL is that of the Normals, because no bijection changes it.

  TFP's tanh of a Normal has neither entropy nor mode, and no finite log p at the bounds.
  """

  def log_prob(self, params: Any, actions: Any) -> tf.Tensor:
    """params `[..., 2D]`, actions `[..., D]` in [-1, 1] -> `[...]`, the log of a density.

      |a| < 0.999:  log N(x; mean, std) - log tanh'(x),  x = atanh(a)
      a >= 0.999:   log( P(x >= atanh 0.999) / 0.001 ),  and likewise at a <= -0.999

    summed over the D actions. The density is constant in each edge, so that it integrates to 1. In
    the edges, its gradient in the action is that of the first formula at the threshold, because a
    constant would not lead an action back. It and its gradients are finite for every action and
    all finite params.
    """
    normal = self.normal(params)
    actions = self.checked('actions', actions, params)
    inner = tf.clip_by_value(actions, -_EDGE, _EDGE)
    x, x_edge, log_width = tf.atanh(inner), math.atanh(_EDGE), math.log(1.0 - _EDGE)
    inside = normal_lib.log_density(normal, x) - _log_slope(x)
    left = normal_lib.log_cdf((-x_edge - normal.mean) / normal.std) - log_width
    right = normal_lib.log_cdf((normal.mean - x_edge) / normal.std) - log_width
    edges = tf.where(inner < 0.0, left, right) + _slope_alone(normal, x, actions)
    return tf.reduce_sum(tf.where(tf.abs(inner) >= _EDGE, edges, inside), axis=-1)

  def entropy(self, params: Any) -> tf.Tensor:
    """params `[..., 2D]` -> `[...]`, the entropy of tanh(x) itself, without edges.

      H = sum_i H(x_i) + E[log tanh'(x_i)]

    The expectation is a Gauss-Hermite sum. SEED RL uses one sample instead, which is right only
    on average: its deviation is 0.9 nats per action at std 1, and 2.1 at std 2. The sum needs no
    random numbers, gives equal policies equal entropies, and adds no noise to the gradient
    or to an entropy cost that is adjusted to a target.
    """
    normal = self.normal(params)
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NUM_NODES)
    x = normal.mean[..., tf.newaxis] + normal.std[..., tf.newaxis] * nodes.astype(np.float32)
    weights = (weights / weights.sum()).astype(np.float32)
    log_slopes = tf.reduce_sum(_log_slope(x) * weights, axis=-1)
    return tf.reduce_sum(normal_lib.entropy(normal) + log_slopes, axis=-1)

  def mode(self, params: Any) -> tf.Tensor:
    """params `[..., 2D]` -> `[..., D]`, tanh(mean): the median, a better guess than the peak.

    The density of a wide policy peaks at the bounds, whatever its mean is.
    """
    return tf.tanh(super().mode(params))

  def sample(self, params: Any, uniforms: Any) -> tf.Tensor:
    """params `[..., 2D]`, uniforms `[..., D]` -> `[..., D]`, tanh(mean + std z)."""
    return tf.tanh(super().sample(params, uniforms))

  def sample_with_log_prob(self, params: Any, uniforms: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """params `[..., 2D]`, uniforms `[..., D]` -> actions `[..., D]`, log p(a) `[...]`.

      log p(a) = sum_i log N(x_i; mean_i, std_i) - log tanh'(x_i),  x = mean + std z

    It is computed from x, the number before the tanh, so nothing is lost however close a is to a
    bound, and no edges are needed. `log_prob` sees only the rounded action, and differs in them.
    """
    x, log_prob = super().sample_with_log_prob(params, uniforms)
    return tf.tanh(x), log_prob - tf.reduce_sum(_log_slope(x), axis=-1)


def _slope_alone(normal: normal_lib.Normal, x: tf.Tensor, actions: tf.Tensor) -> tf.Tensor:
  """Returns zeros `[..., D]` whose only gradient is that of log p(a) in the action at tanh(x).

  d log p / da = ( 2 tanh(x) - (x - mean) / std^2 ) / tanh'(x)
  """
  slope = (2.0 * tf.tanh(x) - (x - normal.mean) / tf.square(normal.std)) * tf.exp(-_log_slope(x))
  return tf.stop_gradient(slope) * (actions - tf.stop_gradient(actions))


def _log_slope(x: tf.Tensor) -> tf.Tensor:
  """Any shape -> log tanh'(x) = 2 (log 2 - |x| - log(1 + exp(-2 |x|))), for every finite x.

  Computed as log(1 - tanh(x)^2) it would be -inf from |x| = 9 on.
  """
  size = tf.abs(x)
  return 2.0 * (math.log(2.0) - size - tf.nn.softplus(-2.0 * size))
