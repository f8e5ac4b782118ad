"""The loss of the on-policy agent on one minibatch."""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learnt_weights
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import penalties as penalties_lib
from seed_acme.agents.on_policy import policy_losses
from seed_acme.agents.on_policy import value_metrics
from seed_acme.ops import distributions
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib

LAST_DIVERGENCE = 'policy/kl_last_pass'


class Minibatch(NamedTuple):
  """M transitions, leaves `[M, ...]`, or M unrolls, time-major `[T, M, ...]`.

  inputs: the rows that actions were chosen in, of unrolls `[T+1, M, ...]`. initial_state:
  `[M, ...]`, `()` for transitions. actions, behaviour_params: of these rows. The rest is the
  result: rewards clipped and scaled, discounts and mask of `ops.transitions`; value targets and
  values when acting in the units that values are learnt in; advantages. Targets and advantages
  are `()` where the loss makes them itself.
  """

  inputs: types.AgentInput
  initial_state: types.Nest
  actions: types.Nest
  behaviour_params: tf.Tensor
  behaviour_values: tf.Tensor
  rewards: tf.Tensor
  discounts: tf.Tensor
  mask: tf.Tensor
  targets: types.Nest
  advantages: types.Nest


class Networks(NamedTuple):
  """acting: the actor-critic. weights: what only learning needs."""

  acting: network_lib.OnPolicyNetwork
  weights: learnt_weights.LearntWeights


def loss(
  networks: Networks, minibatch: Minibatch, config: on_policy_config.OnPolicyConfig
) -> types.LossOutput:
  """Scalar: policy loss + value_cost * value loss + penalties; means over unmasked steps.

    kl_cost mean( log mu(a_t|x_t) - log pi(a_t|x_t) )  is KL(mu || pi) by one sample

  Penalties that are in the rewards are no term of the loss; their weights are learnt all the same.
  """
  network, weights, mask = networks.acting, networks.weights, minibatch.mask
  distribution = network.distribution
  params, values, bootstrap = _predicted(network, minibatch, config)
  log_prob = distribution.log_prob(params, minibatch.actions)
  # What was stored in masked rows may be anything; 0 keeps it out of gradients.
  behaviour_params = tf.stop_gradient(
    transitions_lib.select(mask[..., tf.newaxis], minibatch.behaviour_params)
  )
  log_ratio = log_prob - distribution.log_prob(behaviour_params, minibatch.actions)
  quantities = penalties_lib.quantities(distribution, params, behaviour_params, config)
  targets, advantages = minibatch.targets, minibatch.advantages
  if advantages_lib.estimates_in_loss(config):
    assert bootstrap is not None
    steps = transitions_lib.Transitions(minibatch.rewards, minibatch.discounts, mask)
    estimates = estimate(networks, bootstrap, steps, log_ratio, quantities, config)
    targets = network.normalized_value(estimates.targets)
    advantages = estimates.advantages / network.value_std()
  policy = policy_losses.policy_loss(
    log_prob, log_ratio, advantages, mask, weights.temperature(), config
  )
  learnt_values, targets = network.normalized_value(values), tf.stop_gradient(targets)
  value = value_loss(learnt_values, targets, minibatch.behaviour_values, mask, config)
  penalty = penalties_lib.terms(quantities, weights.penalty_weights(), mask, config)
  losses = {
    'loss/policy': policy.loss,
    'loss/value': config.value_cost * value,
    'loss/penalties': (penalty.loss if config.penalties_in_rewards == 'none' else tf.zeros([])),
    'loss/sampled_kl': config.kl_cost * transitions_lib.masked_mean(-log_ratio, mask),
    'loss/adjustment': policy.adjustment + penalty.adjustment,
  }
  metrics = {
    **losses,
    **penalty.metrics,
    **_policy_metrics(distribution, params, behaviour_params, log_ratio, mask, config),
    'value/mean': transitions_lib.masked_mean(values, mask),
    **value_metrics.of_minibatch(learnt_values, targets, mask),
  }
  temperature = weights.temperature()
  if temperature is not None:
    metrics['policy/temperature'] = temperature
  return types.LossOutput(
    losses={'policy': tf.add_n(list(losses.values()))},
    metrics={name: tf.stop_gradient(x) for name, x in metrics.items()},
  )


def estimate(
  networks: Networks,
  values: tf.Tensor,
  steps: transitions_lib.Transitions,
  log_rhos: tf.Tensor,
  quantities: dict[str, tf.Tensor],
  config: on_policy_config.OnPolicyConfig,
) -> advantages_lib.Estimates:
  """Values `[T+1, B]`; steps, log_rhos and quantities of the penalties `[T, B]`."""
  penalties = penalties_lib.in_rewards(
    quantities, networks.weights.penalty_weights(), steps.rewards
  )
  rewards = advantages_lib.penalized(steps.rewards, penalties, config)
  return advantages_lib.estimate(
    values, steps._replace(rewards=transitions_lib.select(steps.mask, rewards)), log_rhos, config
  )


def _policy_metrics(
  distribution: distributions.Distribution,
  params: tf.Tensor,
  behaviour_params: tf.Tensor,
  log_ratio: tf.Tensor,
  mask: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> dict[str, tf.Tensor]:
  """How far the policy is from the one that acted. The same divergence appears twice, because
  `learner.passes` has one of the two reported of the last pass alone.
  """
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  ratio = vtrace_lib.importance_ratios(log_ratio)
  lower, upper = policy_losses.ppo_bounds(config)
  divergence = mean(distribution.kl(behaviour_params, params))
  return {
    'policy/entropy': mean(distribution.entropy(params)),
    'policy/kl_behaviour': divergence,
    LAST_DIVERGENCE: divergence,
    'policy/ratio_mean': mean(ratio),
    'policy/ratio_clipped_share': mean(tf.logical_or(ratio < lower, ratio > upper)),
    'policy/rho_clipped_share': mean(ratio > config.rho_clip),
  }


def _predicted(
  network: network_lib.OnPolicyNetwork,
  minibatch: Minibatch,
  config: on_policy_config.OnPolicyConfig,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
  """Policy params and values of the steps, and, of unrolls, all values `[T+1, M]`."""
  if config.minibatch_of == 'transitions':
    prediction, _ = network(minibatch.inputs, minibatch.initial_state)
    return prediction.policy_params, prediction.value, None
  prediction, _ = network.unroll(minibatch.inputs, minibatch.initial_state)
  return prediction.policy_params[:-1], prediction.value[:-1], prediction.value


def value_loss(
  values: tf.Tensor,
  targets: tf.Tensor,
  behaviour_values: tf.Tensor,
  mask: tf.Tensor,
  config: on_policy_config.OnPolicyConfig,
) -> tf.Tensor:
  """Scalar mean of l(V), all `[...]` in the units that values are learnt in.

  mse: l = e^2/2.  huber: e^2/2 up to |e| = delta, then delta (|e| - delta/2).  e = target - V
  clipped: max( l(V), l(V_old + clip(V - V_old, -c, c)) )
  """
  values, targets, behaviour_values = (
    transitions_lib.select(mask, x) for x in (values, targets, behaviour_values)
  )
  result = _of_errors(targets - values, config)
  if config.value_clip:
    change = tf.clip_by_value(values - behaviour_values, -config.value_clip, config.value_clip)
    result = tf.maximum(result, _of_errors(targets - (behaviour_values + change), config))
  return transitions_lib.masked_mean(result, mask)


def _of_errors(errors: tf.Tensor, config: on_policy_config.OnPolicyConfig) -> tf.Tensor:
  """l of `value_loss`, elementwise."""
  if config.value_loss == 'mse':
    return 0.5 * tf.square(errors)
  delta, absolute = config.huber_delta, tf.abs(errors)
  return tf.where(absolute <= delta, 0.5 * tf.square(errors), delta * (absolute - 0.5 * delta))
