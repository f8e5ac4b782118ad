"""The loss of the V-trace agent (Espeholt et al. 2018, sections 4.1 and 4.2)."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import tensorflow as tf

from seed_acme import core
from seed_acme import types
from seed_acme.agents import burn_in
from seed_acme.agents.vtrace import config as vtrace_config
from seed_acme.ops import distributions
from seed_acme.ops import lagrange
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib

_MAX_REPORTED_LOG_RHO = 20.0  # keeps one hopeless ratio from turning the metric infinite


class _EntropyTerms(NamedTuple):
  """Scalars: the entropy bonus as a loss, the loss of its weight, and the weight."""

  bonus: tf.Tensor
  adjustment: tf.Tensor
  weight: tf.Tensor


def loss(
  network: core.RecurrentNetwork, sample: types.Sample, config: vtrace_config.VTraceConfig
) -> types.LossOutput:
  """Scalar loss of B unrolls of `overlap + T + 1` rows; every mean is over unmasked rows.

    L = -mean(A_t log pi(a_t|x_t)) + value_cost 1/2 mean((v_t - V_t)^2)
        - c_H mean(H(pi)) + kl_cost mean(log mu(a_t) - log pi(a_t))

  v_t, A_t: `ops.vtrace`, from V of this network, the last row included. c_H: fixed or learnt.
  """
  inputs, outputs = burn_in.learnt_rows(sample.unroll, config)
  state = burn_in.entering_state(network, sample.unroll, config)
  prediction, _ = network.unroll(inputs, state)
  rewards, discounts, mask = transitions_lib.transitions(inputs, gamma=config.discount)
  rewards = transitions_lib.clip_rewards(rewards, config.max_abs_reward)
  values, actions = prediction.value, outputs.action[:-1]
  params = prediction.policy_params[:-1]
  policy = distributions.Categorical(params.shape[-1])
  behaviour_params = tf.stop_gradient(outputs.prediction.policy_params[:-1])
  log_probs = policy.log_prob(params, actions)
  log_rhos = log_probs - policy.log_prob(behaviour_params, actions)
  targets, advantages = vtrace_lib.vtrace(
    values,
    rewards,
    discounts,
    log_rhos,
    mask,
    lambda_=config.lambda_,
    rho_clip=config.rho_clip,
    c_clip=config.c_clip,
    policy_rho_clip=config.policy_rho_clip,
    advantage_lambda=1.0,
  )
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  entropies = policy.entropy(params)
  entropy = _entropy_terms(network, entropies, mask, config)
  losses = {
    'loss/policy': -mean(advantages * log_probs),
    'loss/value': config.value_cost * 0.5 * mean(tf.square(targets - values[:-1])),
    'loss/entropy': entropy.bonus,
    'loss/entropy_adjustment': entropy.adjustment,
    'loss/kl': config.kl_cost * mean(-log_rhos),
  }
  total = tf.add_n(list(losses.values()))
  metrics = {
    **losses,
    'loss/total': total,
    'policy/entropy': mean(entropies),
    'policy/entropy_cost': entropy.weight,
    'policy/kl_behaviour': mean(policy.kl(behaviour_params, params)),
    'value/mean': mean(values[:-1]),
    'value/target_mean': mean(targets),
    **_ratio_metrics(log_rhos, mask, config),
  }
  return types.LossOutput(
    loss=total, metrics={name: tf.stop_gradient(x) for name, x in metrics.items()}
  )


def _ratio_metrics(
  log_rhos: tf.Tensor, mask: tf.Tensor, config: vtrace_config.VTraceConfig
) -> dict[str, tf.Tensor]:
  """How far the learner's policy is from the one that acted; log_rhos, mask `[T, B]`."""
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  return {
    'vtrace/rho_mean': mean(tf.exp(tf.minimum(log_rhos, _MAX_REPORTED_LOG_RHO))),
    'vtrace/rho_clipped_share': mean(tf.exp(log_rhos) > config.rho_clip),
  }


def _entropy_terms(
  network: Any, entropies: tf.Tensor, mask: tf.Tensor, config: vtrace_config.VTraceConfig
) -> _EntropyTerms:
  """entropies, mask `[T, B]`. A target of 0 is a target: None alone means a fixed weight."""
  mean_entropy = transitions_lib.masked_mean(entropies, mask)
  if config.target_entropy is None:
    weight = tf.constant(config.entropy_cost, tf.float32)
    return _EntropyTerms(-weight * mean_entropy, tf.zeros([]), weight)
  weight = lagrange.weight(network.entropy_parameter, speed=config.entropy_adjustment_speed)
  # The mean of the difference, not the difference of means: an all-masked batch moves nothing.
  excess = transitions_lib.masked_mean(entropies - config.target_entropy, mask)
  return _EntropyTerms(
    bonus=-tf.stop_gradient(weight) * mean_entropy,
    adjustment=lagrange.adjustment_loss(weight, excess),
    weight=weight,
  )
