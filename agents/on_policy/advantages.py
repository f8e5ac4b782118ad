"""What several algorithms share: rewards to learn, estimators, and which advantages are learnt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

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
  """Rows `[T+1, B]` -> transitions `[T, B]`, rewards clipped (0 = not) and then scaled."""
  result = transitions_lib.transitions(inputs, gamma=discount)
  rewards = transitions_lib.clip_rewards(result.rewards, max_abs_reward) * reward_scale
  return result._replace(rewards=rewards)


def gae(
  values: tf.Tensor, steps: transitions_lib.Transitions, log_rhos: tf.Tensor, *, lambda_: float
) -> algorithm.Estimates:
  """A_t of Schulman et al. 2016, target V_t + A_t. Does not correct for the behaviour."""
  del log_rhos
  rewards, discounts, mask = steps
  return algorithm.Estimates(*gae_lib.gae(values, rewards, discounts, mask, lambda_=lambda_))


def nstep(
  values: tf.Tensor, steps: transitions_lib.Transitions, log_rhos: tf.Tensor, *, n: int
) -> algorithm.Estimates:
  """Target G^n_t, A_t = G^n_t - V_t. Does not correct for the behaviour."""
  del log_rhos
  rewards, discounts, mask = steps
  targets = nstep_lib.nstep_returns(values, rewards, discounts, mask, n=n)
  advantages = tf.stop_gradient(transitions_lib.select(mask, targets - values[:-1]))
  return algorithm.Estimates(targets, advantages)


def with_preprocessed(
  played: algorithm.Played,
  *,
  policy_loss: Callable[[algorithm.Played], algorithm.PolicyLoss],
  normalize: bool,
  offset: float,
  keep: Literal['all', 'positive', 'top_half'],
  keep_form: Literal['shifted', 'original'],
) -> algorithm.PolicyLoss:
  """`policy_loss` of the advantages that `preprocess` makes, and of those that it keeps."""
  advantages, kept = preprocess(
    played.advantages,
    played.mask,
    normalize=normalize,
    offset=offset,
    keep=keep,
    keep_form=keep_form,
  )
  result = policy_loss(played._replace(advantages=advantages, mask=kept))
  if keep_form == 'shifted':
    return result
  # Those that are left out count as 0 in the mean.
  share = transitions_lib.masked_mean(tf.cast(kept, tf.float32), played.mask)
  return result._replace(loss=result.loss * share)


def preprocess(
  advantages: tf.Tensor,
  mask: tf.Tensor,
  *,
  normalize: bool,
  offset: float,
  keep: Literal['all', 'positive', 'top_half'],
  keep_form: Literal['shifted', 'original'],
) -> tuple[tf.Tensor, tf.Tensor]:
  """Normalised and shifted advantages, and the mask of those that the loss is to see."""
  if normalize:
    mean = transitions_lib.masked_mean(advantages, mask)
    variance = transitions_lib.masked_mean(tf.square(advantages - mean), mask)
    advantages = transitions_lib.select(mask, (advantages - mean) / (tf.sqrt(variance) + _EPSILON))
  shifted = advantages + offset
  if keep == 'positive':
    compared = shifted if keep_form == 'shifted' else advantages
    mask = tf.logical_and(mask, compared > 0)
  elif keep == 'top_half':
    mask = better_half(advantages, mask)
  return shifted, mask


def better_half(advantages: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
  """`[...]` bool: the floor(n/2) greatest of the n unmasked advantages, ties with the last kept."""
  lowest = tf.fill(tf.shape(advantages), advantages.dtype.min)
  ordered = tf.sort(tf.reshape(tf.where(mask, advantages, lowest), [-1]), direction='DESCENDING')
  num_kept = tf.maximum(tf.reduce_sum(tf.cast(mask, tf.int32)) // 2, 1)
  # XLA needs the position of a slice beforehand, and would compile anew for each.
  return tf.logical_and(mask, advantages >= tf.gather(ordered, num_kept - 1))
