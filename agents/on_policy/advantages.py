"""Parts that several algorithms share: reward scaling, estimators, and advantage preprocessing."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import algorithm
from seed_acme.ops import advantages as gae_lib
from seed_acme.ops import nstep as nstep_lib
from seed_acme.ops import transitions as transitions_lib

_EPSILON = 1e-8


def steps(
  inputs: types.AgentInput, *, discount: float, max_abs_reward: float, reward_scale: float
) -> transitions_lib.Transitions:
  """Rows `[T+1, B]` -> transitions `[T, B]`, rewards clipped (0 = no clipping) and then scaled."""
  result = transitions_lib.transitions(inputs, gamma=discount)
  rewards = transitions_lib.clip_rewards(result.rewards, max_abs_reward) * reward_scale
  return result._replace(rewards=rewards)


def gae(trace: algorithm.Trace, *, lambda_: float) -> algorithm.Estimates:
  """GAE: A_t of Schulman et al. 2016, target V_t + A_t. There is no off-policy correction."""
  return algorithm.Estimates(*gae_lib.gae(trace.values, *trace.steps, lambda_=lambda_))


def nstep(trace: algorithm.Trace, *, num_bootstrap_steps: int) -> algorithm.Estimates:
  """n-step returns: target G^n_t, A_t = G^n_t - V_t. There is no off-policy correction."""
  values, steps, _ = trace
  targets = nstep_lib.nstep_returns(values, *steps, n=num_bootstrap_steps)
  advantages = tf.stop_gradient(transitions_lib.select(steps.mask, targets - values[:-1]))
  return algorithm.Estimates(targets, advantages)


def with_preprocessed(
  policy_loss: Callable[[algorithm.Played], algorithm.PolicyLoss],
  played: algorithm.Played,
  *,
  normalize_advantages: bool,
  advantage_offset: float,
  keep_advantages: str,
  keep_form: str,
) -> algorithm.PolicyLoss:
  """Applies `policy_loss` to advantages that have been normalised, shifted and selected."""
  advantages, mask = played.advantages, played.mask
  if normalize_advantages:
    advantages = normalized(advantages, mask)
  shifted, kept = advantages + advantage_offset, mask
  if keep_advantages == 'positive':
    compared = shifted if keep_form == 'shifted' else advantages
    kept = tf.logical_and(mask, compared > 0)
  elif keep_advantages == 'top_half':
    kept = better_half(advantages, mask)
  result = policy_loss(played._replace(advantages=shifted, mask=kept))
  if keep_form == 'shifted':
    return result
  # Steps that are left out count as 0 in the mean.
  share = transitions_lib.masked_mean(tf.cast(kept, tf.float32), mask)
  return result._replace(loss=result.loss * share)


def normalized(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """Scales unmasked advantages `[...]` to mean 0 and standard deviation 1; masked ones become 0."""
  deviations = advantages - transitions_lib.masked_mean(advantages, mask)
  # Once more, because the mean of equal numbers is rounded, and what is left would be scaled up.
  deviations -= transitions_lib.masked_mean(deviations, mask)
  variance = transitions_lib.masked_mean(tf.square(deviations), mask)
  return transitions_lib.select(mask, deviations / (tf.sqrt(variance) + _EPSILON))


def better_half(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """`[...]` bool: the max(1, floor(n/2)) greatest of the n unmasked advantages, and all that tie
  with the last of these."""
  lowest = tf.fill(tf.shape(advantages), advantages.dtype.min)
  ordered = tf.sort(tf.reshape(tf.where(mask, advantages, lowest), [-1]), direction='DESCENDING')
  num_kept = tf.maximum(tf.reduce_sum(tf.cast(mask, tf.int32)) // 2, 1)
  # A gather, because XLA needs a slice's position at compile time and would recompile for each.
  return tf.logical_and(mask, advantages >= tf.gather(ordered, num_kept - 1))
