"""Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438)."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme.ops import shapes
from seed_acme.ops import transitions as transitions_lib


class AdvantageOutput(NamedTuple):
  """Value targets V_t + A_t, the lambda-returns, and advantages A_t, `[T, B]` without gradient."""

  targets: tf.Tensor
  advantages: tf.Tensor


def gae(values: Any, rewards: Any, discounts: Any, mask: Any, *, lambda_: float) -> AdvantageOutput:
  """Advantages A_t (Schulman et al. 2016, eq. 16) and the lambda-returns they imply.

  values: `[T+1, B]` V(x_t); the last row only bootstraps.
  rewards, discounts: `[T, B]` result of action t; discount 0 = terminated.
  mask: `[T, B]` False where row t is LAST; such rows have advantage 0 and target V_t, and
    their reward and discount may be NaN.

    A_t = m_t [ r_t + d_t V_{t+1} - V_t + d_t lambda A_{t+1} ],  A_T = 0

  Returns targets `[T, B]` and advantages `[T, B]`, both without gradient.
  """
  values, mask = shapes.as_float(values), tf.cast(mask, tf.bool)
  rewards, discounts = map(shapes.as_float, (rewards, discounts))
  shapes.check_transitions(values, rewards=rewards, discounts=discounts, mask=mask)
  rewards, discounts = (transitions_lib.select(mask, x) for x in (rewards, discounts))
  v_t, v_tp1 = values[:-1], values[1:]
  errors = transitions_lib.select(mask, rewards + discounts * v_tp1 - v_t)
  advantages = tf.stop_gradient(transitions_lib.backward_sums(errors, discounts * lambda_))
  return AdvantageOutput(targets=tf.stop_gradient(v_t + advantages), advantages=advantages)
