"""From rewards and values to advantages and value targets, by the configured estimator."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.ops import advantages as gae_lib
from seed_acme.ops import nstep
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib


class Estimates(NamedTuple):
  """`[T, B]` each, without gradient, in the units of the rewards."""

  targets: tf.Tensor
  advantages: tf.Tensor


def estimate(
  values: tf.Tensor,
  steps: transitions_lib.Transitions,
  log_rhos: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> Estimates:
  """values `[T+1, B]`, log_rhos `[T, B]` of the policy over the behaviour.

  gae:    A_t of Schulman et al. 2016, target V_t + A_t
  vtrace: targets of Espeholt et al. 2018; A_t by `advantage_form`, not weighted by the
          ratio, which the policy loss does
  nstep:  target G^n_t, A_t = G^n_t - V_t
  """
  rewards, discounts, mask = steps
  if config.advantage == 'gae':
    return Estimates(*gae_lib.gae(values, rewards, discounts, mask, lambda_=config.lambda_))
  if config.advantage == 'vtrace':
    return Estimates(
      *vtrace_lib.vtrace(
        values,
        rewards,
        discounts,
        log_rhos,
        mask,
        lambda_=config.lambda_,
        rho_clip=config.rho_clip,
        c_clip=config.c_clip,
        policy_rho_clip=None,
        advantage_lambda=1.0 if config.advantage_form == 'paper' else config.lambda_,
      )
    )
  targets = nstep.nstep_returns(values, rewards, discounts, mask, n=config.num_bootstrap_steps)
  return Estimates(targets, tf.stop_gradient(transitions_lib.select(mask, targets - values[:-1])))


def estimates_in_loss(config: on_policy_config.OnPolicyConfig) -> bool:
  """Whether advantages and targets come from the forward pass of the loss itself, and not from
  one before it: where they are to be those of each minibatch, or where a single gradient step
  takes them at the same weights. Normalised values need one before it.
  """
  is_one_step = config.num_epochs == on_policy_config.num_minibatches(config) == 1
  return config.recompute_advantages == 'minibatch' or (
    is_one_step and config.minibatch_of == 'unrolls' and config.values.statistics == 'none'
  )


def rewards_to_learn(rewards: tf.Tensor, config: on_policy_config.OnPolicyConfig) -> tf.Tensor:
  """`[T, B]`, clipped and scaled."""
  return transitions_lib.clip_rewards(rewards, config.max_abs_reward) * config.reward_scale


def penalized(
  rewards: tf.Tensor, penalties: tf.Tensor, config: on_policy_config.OnPolicyConfig
) -> tf.Tensor:
  """Rewards `[T, B]` to learn, less (or, as the original, more) the penalties `[T, B]`."""
  if config.penalties_in_rewards == 'none':
    return rewards
  sign = -1.0 if config.penalties_in_rewards == 'subtracted' else 1.0
  return rewards + sign * tf.stop_gradient(penalties)
