"""Sonnet's Adam and RMSProp, with one of TensorFlow's kernels for each variable.

Sonnet builds a step from some fifteen operations for each variable, each of which reads and writes
an array of its size. For a small network that is a third of the operations of an update, and of the
time that tracing takes. The variables are Sonnet's, so checkpoints are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sonnet as snt
import tensorflow as tf


class Adam(snt.optimizers.Adam):
  """Algorithm 1 of Kingma and Ba (2015). Equals Sonnet's up to rounding."""

  def apply(self, updates: Sequence[Any], parameters: Sequence[tf.Variable]) -> None:
    """Steps by gradients of the shapes of `parameters`."""
    if _any_is_sparse(updates):
      super().apply(updates, parameters)
      return
    self._initialize(parameters)
    self.step.assign_add(1)
    step = tf.cast(self.step, tf.float32)
    # The kernel has the algorithm's faster form, in which epsilon is not divided by the root of
    # the second correction. Both corrections are in the rate and in epsilon instead:
    #   a m / c1 / (sqrt(v / c2) + e) = (a sqrt(c2) / c1) m / (sqrt(v) + e sqrt(c2)).
    beta1, beta2, zero = (tf.constant(x, tf.float32) for x in (self.beta1, self.beta2, 0.0))
    root = tf.sqrt(1.0 - tf.pow(beta2, step))
    rate = self.learning_rate * root / (1.0 - tf.pow(beta1, step))
    epsilon = self.epsilon * root
    for update, parameter, m, v in zip(updates, parameters, self.m, self.v, strict=True):
      tf.raw_ops.ResourceApplyAdam(
        var=parameter.handle,
        m=m.handle,
        v=v.handle,
        beta1_power=zero,
        beta2_power=zero,
        lr=rate,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        grad=update,
      )


class RMSProp(snt.optimizers.RMSProp):
  """Tieleman and Hinton (2012), with epsilon inside the root. Equals Sonnet's up to rounding."""

  def apply(self, updates: Sequence[Any], parameters: Sequence[tf.Variable]) -> None:
    """Steps by gradients of the shapes of `parameters`."""
    if self.centered or _any_is_sparse(updates):
      super().apply(updates, parameters)
      return
    self._initialize(parameters)
    rate = tf.convert_to_tensor(self.learning_rate)
    decay, momentum, epsilon = (
      tf.constant(x, tf.float32) for x in (self.decay, self.momentum, self.epsilon)
    )
    for update, parameter, mom, ms in zip(updates, parameters, self.mom, self.ms, strict=True):
      tf.raw_ops.ResourceApplyRMSProp(
        var=parameter.handle,
        ms=ms.handle,
        mom=mom.handle,
        lr=rate,
        rho=decay,
        momentum=momentum,
        epsilon=epsilon,
        grad=update,
      )


def _any_is_sparse(updates: Sequence[Any]) -> bool:
  """Whether a gradient is that of a gather, of which Sonnet updates the gathered rows alone."""
  return any(isinstance(update, tf.IndexedSlices) for update in updates)
