"""Policy losses: what becomes of log-probabilities and advantages.

All arguments are of one shape `[...]`; every mean is over unmasked elements. Gradients flow
through the policy's log-probability `log_prob` alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import tensorflow as tf

from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib

_EPSILON = 1e-8


class PolicyLoss(NamedTuple):
  """Scalars. adjustment: the loss of a parameter that the policy loss learns, or 0."""

  loss: tf.Tensor
  adjustment: tf.Tensor


def policy_loss(
  log_prob: tf.Tensor,
  log_ratio: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  temperature: tf.Tensor | None,
  config: on_policy_config.OnPolicyConfig,
) -> PolicyLoss:
  """log_ratio: log pi(a|x) - log mu(a|x). temperature: scalar eta of `vmpo`, else None."""
  advantages = transitions_lib.select(mask, tf.stop_gradient(advantages))
  log_prob, log_ratio = (transitions_lib.select(mask, x) for x in (log_prob, log_ratio))
  advantages, kept = preprocess(advantages, mask, config)
  if config.policy_loss == 'vmpo':
    assert temperature is not None
    return vmpo(log_prob, advantages, kept, temperature, config)
  loss = _loss_of_kept(log_prob, log_ratio, advantages, kept, config)
  if config.keep_form == 'original':  # those that are left out count as 0 in the mean
    loss *= transitions_lib.masked_mean(tf.cast(kept, tf.float32), mask)
  return PolicyLoss(loss, tf.zeros([]))


def _loss_of_kept(
  log_prob: tf.Tensor,
  log_ratio: tf.Tensor,
  advantages: tf.Tensor,
  kept: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> tf.Tensor:
  """Scalar, a mean over what is kept, by any policy loss but `vmpo`."""
  if config.policy_loss == 'ppo':
    return ppo(log_ratio, advantages, kept, config)
  weights = _weights(log_ratio, advantages, config)
  return -transitions_lib.masked_mean(tf.stop_gradient(weights) * log_prob, kept)


def _weights(
  log_ratio: tf.Tensor, advantages: tf.Tensor, config: on_policy_config.OnPolicyConfig
) -> tf.Tensor:
  """w of L = -mean(w log pi(a|x)).

  vpg: A.  vtrace: min(rho_max, pi/mu) A.  awr: min(w_max, exp(A / beta)).
  repeat_positive: 1 where A > 0, else 0 (beta -> 0, w_max = 1).  behaviour_cloning: 1.
  """
  if config.policy_loss == 'vpg':
    return advantages
  if config.policy_loss == 'vtrace':
    return vtrace_lib.truncated_ratios(log_ratio, config.policy_rho_clip) * advantages
  if config.policy_loss == 'awr':
    return tf.exp(tf.minimum(advantages / config.awr_beta, math.log(config.awr_max_weight)))
  if config.policy_loss == 'repeat_positive':
    return tf.cast(advantages > 0, tf.float32)
  return tf.ones_like(advantages)


def ppo(
  log_ratio: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> tf.Tensor:
  """Schulman et al. 2017, eq. 7, with r the ratio pi/mu.

    L = -mean( min( r A, clip(r, lower, 1 + epsilon) A ) )

  lower: see `ppo_bounds`.
  """
  ratio = vtrace_lib.importance_ratios(log_ratio)
  clipped = tf.clip_by_value(ratio, *ppo_bounds(config))
  return -transitions_lib.masked_mean(tf.minimum(ratio * advantages, clipped * advantages), mask)


def ppo_bounds(config: on_policy_config.OnPolicyConfig) -> tuple[float, float]:
  """Of the ratio: from 1 - epsilon (paper) or 1 / (1 + epsilon) (SEED RL) to 1 + epsilon."""
  upper = 1.0 + config.ppo_epsilon
  return 1.0 - config.ppo_epsilon if config.ppo_lower_bound == 'linear' else 1.0 / upper, upper


def vmpo(
  log_prob: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  temperature: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> PolicyLoss:
  """Song et al. 2020, eq. 3 and 4. D is the better half of the batch.

    psi_i = exp(A_i / eta) / sum_{j in D} exp(A_j / eta),  L = -sum_{i in D} psi_i log pi_i
    L_eta = eta epsilon + eta log( 1/|D| sum_{i in D} exp(A_i / eta) )

  The original SEED RL counts the worse half as exp(0) in the sum of psi, takes a mean over
  the batch where there is a sum here, and lets L_eta act as eta sg(epsilon - log mean exp).
  """
  keep = better_half(advantages, mask)
  count = tf.maximum(tf.reduce_sum(tf.cast(keep, tf.float32)), 1.0)
  scaled = tf.where(keep, advantages / temperature, tf.fill(tf.shape(advantages), -1e30))
  log_sum = tf.reduce_logsumexp(scaled)
  log_mean = log_sum - tf.math.log(count)
  if config.vmpo_form == 'paper':
    psi = tf.stop_gradient(tf.exp(scaled - log_sum))
    loss = -tf.reduce_sum(psi * log_prob)
    adjustment = temperature * (config.vmpo_epsilon + log_mean)
  else:
    dropped = tf.reduce_sum(tf.cast(tf.logical_and(mask, tf.logical_not(keep)), tf.float32))
    log_total = tf.reduce_logsumexp(tf.stack([log_sum, tf.math.log(dropped + 1e-30)]))
    psi = tf.stop_gradient(tf.exp(scaled - log_total))
    loss = -transitions_lib.masked_mean(psi * log_prob, mask)
    adjustment = temperature * tf.stop_gradient(config.vmpo_epsilon - log_mean)
  is_empty = tf.logical_not(tf.reduce_any(keep))
  return PolicyLoss(tf.where(is_empty, 0.0, loss), tf.where(is_empty, 0.0, adjustment))


def better_half(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """`[...]` bool: the floor(n/2) greatest of the n unmasked advantages, ties with the last kept."""
  lowest = tf.fill(tf.shape(advantages), advantages.dtype.min)
  ordered = tf.sort(tf.reshape(tf.where(mask, advantages, lowest), [-1]), direction='DESCENDING')
  num_kept = tf.maximum(tf.reduce_sum(tf.cast(mask, tf.int32)) // 2, 1)
  # XLA needs the position of a slice beforehand, and would compile anew for each.
  return tf.logical_and(mask, advantages >= tf.gather(ordered, num_kept - 1))


def preprocess(
  advantages: tf.Tensor, mask: tf.Tensor, config: on_policy_config.OnPolicyConfig
) -> tuple[tf.Tensor, tf.Tensor]:
  """Normalised and shifted advantages, and the mask of those that the loss is to see."""
  if config.normalize_advantages:
    mean = transitions_lib.masked_mean(advantages, mask)
    variance = transitions_lib.masked_mean(tf.square(advantages - mean), mask)
    advantages = transitions_lib.select(mask, (advantages - mean) / (tf.sqrt(variance) + _EPSILON))
  shifted = advantages + config.advantage_offset
  if config.keep_advantages == 'positive':
    compared = shifted if config.keep_form == 'shifted' else advantages
    mask = tf.logical_and(mask, compared > 0)
  elif config.keep_advantages == 'top_half':
    mask = better_half(advantages, mask)
  return shifted, mask
