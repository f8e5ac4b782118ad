"""V-trace, the off-policy correction of IMPALA (Espeholt et al. 2018, arXiv 1802.01561)."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme.ops import shapes
from seed_acme.ops import transitions as transitions_lib

_MAX_LOG_RATIO = 20.0  # larger ratios are useless, and exp(89) is infinite


class VTraceOutput(NamedTuple):
  """Results of V-trace, `[T, B]` each, without gradient.

  targets: v_t. advantages: A_t, already weighted by the clipped importance ratio w_t.
  """

  targets: tf.Tensor
  advantages: tf.Tensor


def importance_ratios(log_rhos: tf.Tensor) -> tf.Tensor:
  """Returns pi/mu `[...]` from its logarithm, which is clipped to [-20, 20]."""
  return tf.exp(tf.clip_by_value(log_rhos, -_MAX_LOG_RATIO, _MAX_LOG_RATIO))


def truncated_ratios(log_rhos: tf.Tensor, bound: float) -> tf.Tensor:
  """min(bound, pi/mu), `[...]`; bound inf = not truncated."""
  return tf.minimum(importance_ratios(log_rhos), bound)


def vtrace(
  values: Any,
  rewards: Any,
  discounts: Any,
  log_rhos: Any,
  mask: Any,
  *,
  lambda_: float,
  rho_clip: float,
  c_clip: float,
  policy_rho_clip: float | None,
  advantage_lambda: float,
) -> VTraceOutput:
  """V-trace targets and policy-gradient advantages (Espeholt et al. 2018, eq. 1, sec. 4.2).

  values: `[T+1, B]` V(x_t) of the learner; the last row only bootstraps.
  rewards, discounts: `[T, B]` result of action t; discount 0 = terminated.
  log_rhos: `[T, B]` log pi(a_t|x_t) - log mu(a_t|x_t), learner over behaviour.
  mask: `[T, B]` False where row t is LAST; such rows pass no error backwards, have target
    V_t and advantage 0, and their reward, discount and ratio may be NaN.
  lambda_: multiplies c_t. *_clip: upper bounds of the ratios; policy_rho_clip None leaves the
    advantages unweighted (w_t = 1), for policy losses that weight them themselves in every pass.
  advantage_lambda: l below; 1 in the paper, lambda gives advantages of the form of GAE.

    rho_t = min(rho_clip, pi/mu),  c_t = lambda min(c_clip, pi/mu),  w_t = min(policy_clip, pi/mu)
    e_t = m_t [ rho_t (r_t + d_t V_{t+1} - V_t) + d_t c_t e_{t+1} ],  e_T = 0
    v_t = V_t + e_t,  v_T = V_T
    A_t = m_t w_t (r_t + d_t [V_{t+1} + l (v_{t+1} - V_{t+1})] - V_t)

  Returns targets `[T, B]` and advantages `[T, B]`, both without gradient.
  """
  values, mask = shapes.as_float(values), tf.cast(mask, tf.bool)
  rewards, discounts, log_rhos = map(shapes.as_float, (rewards, discounts, log_rhos))
  shapes.check_transitions(
    values, rewards=rewards, discounts=discounts, log_rhos=log_rhos, mask=mask
  )
  rewards, discounts, log_rhos = (
    transitions_lib.select(mask, x) for x in (rewards, discounts, log_rhos)
  )
  v_t, v_tp1 = values[:-1], values[1:]
  errors = truncated_ratios(log_rhos, rho_clip) * (rewards + discounts * v_tp1 - v_t)
  # 0 where masked, as discounts are.
  decays = discounts * lambda_ * truncated_ratios(log_rhos, c_clip)
  corrections = transitions_lib.backward_sums(transitions_lib.select(mask, errors), decays)
  targets = v_t + corrections
  next_targets = tf.concat([targets[1:], values[-1:]], axis=0)
  if advantage_lambda != 1.0:
    next_targets = v_tp1 + advantage_lambda * (next_targets - v_tp1)
  advantages = rewards + discounts * next_targets - v_t
  if policy_rho_clip is not None:
    advantages *= truncated_ratios(log_rhos, policy_rho_clip)
  return VTraceOutput(
    targets=tf.stop_gradient(targets),
    advantages=tf.stop_gradient(transitions_lib.select(mask, advantages)),
  )
