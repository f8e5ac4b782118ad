"""The loss of the on-policy agent on one minibatch."""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import NamedTuple

import tensorflow as tf

from seed_acme import types
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import minibatches
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import penalties as penalties_lib
from seed_acme.agents.on_policy import value_metrics
from seed_acme.ops import distributions
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib

LAST_DIVERGENCE = 'policy/kl_last_pass'


class Networks(NamedTuple):
  """acting: the actor-critic. weights: what only learning needs."""

  acting: network_lib.OnPolicyNetwork
  weights: network_lib.LearntWeights


def loss(
  algorithm: algorithm_lib.Algorithm,
  networks: Networks,
  minibatch: minibatches.Minibatch,
  key: tf.Tensor | None,
  progress: tf.Tensor | None = None,
) -> types.LossOutput:
  """Scalar: policy loss + value_cost * value loss + penalties; means over unmasked steps.

    kl_cost mean( log mu(a_t|x_t) - log pi(a_t|x_t) )  is KL(mu || pi) by one sample

  Penalties that are in the rewards are no term of the loss; their weights are learnt all the same.
  Nothing here is random or changes with the progress of the run.
  """
  del key, progress
  network, weights, mask = networks.acting, networks.weights, minibatch.mask
  distribution = network.distribution
  params, values, bootstrap = _predicted(algorithm, network, minibatch)
  log_prob = distribution.log_prob(params, minibatch.actions)
  # What was stored in masked rows may be anything; 0 keeps it out of gradients.
  behaviour_params = tf.stop_gradient(
    transitions_lib.select(mask[..., tf.newaxis], minibatch.behaviour_params)
  )
  log_ratio = log_prob - distribution.log_prob(behaviour_params, minibatch.actions)
  quantities = penalties_lib.quantities(distribution, params, behaviour_params, algorithm.penalties)
  targets, advantages = minibatch.targets, minibatch.advantages
  if algorithm.estimates_in_loss:
    assert bootstrap is not None
    steps = transitions_lib.Transitions(minibatch.rewards, minibatch.discounts, mask)
    estimates = estimate(algorithm, networks, bootstrap, steps, log_ratio, quantities)
    targets = network.normalized_value(estimates.targets)
    advantages = estimates.advantages / network.value_std()
  temperature = weights.temperature()
  policy = policy_loss(algorithm, log_prob, log_ratio, advantages, mask, temperature)
  learnt_values, targets = network.normalized_value(values), tf.stop_gradient(targets)
  value = algorithm.value_loss(learnt_values, targets, minibatch.behaviour_values, mask)
  penalty = penalties_lib.terms(quantities, weights.penalty_weights(), mask, algorithm.penalties)
  losses = {
    'loss/policy': policy.loss,
    'loss/value': algorithm.value_cost * value,
    'loss/penalties': tf.zeros([]) if algorithm.penalty_sign else penalty.loss,
    'loss/sampled_kl': algorithm.kl_cost * transitions_lib.masked_mean(-log_ratio, mask),
    'loss/adjustment': policy.adjustment + penalty.adjustment,
  }
  metrics = {
    **losses,
    **penalty.metrics,
    **_policy_metrics(algorithm, distribution, params, behaviour_params, log_ratio, mask),
    'value/mean': transitions_lib.masked_mean(values, mask),
    **_value_metrics(learnt_values, targets, mask),
  }
  if temperature is not None:
    metrics['policy/temperature'] = temperature
  return types.LossOutput(
    losses={'policy': tf.add_n(list(losses.values()))},
    metrics={name: tf.stop_gradient(x) for name, x in metrics.items()},
  )


def estimate(
  algorithm: algorithm_lib.Algorithm,
  networks: Networks,
  values: tf.Tensor,
  steps: transitions_lib.Transitions,
  log_rhos: tf.Tensor,
  quantities: dict[str, tf.Tensor],
) -> algorithm_lib.Estimates:
  """Values `[T+1, B]`; steps, log_rhos and quantities of the penalties `[T, B]`."""
  rewards = penalties_lib.in_rewards(
    steps.rewards, quantities, networks.weights.penalty_weights(), algorithm.penalty_sign
  )
  steps = steps._replace(rewards=transitions_lib.select(steps.mask, rewards))
  return algorithm.estimate(values, steps, log_rhos)


def policy_loss(
  algorithm: algorithm_lib.Algorithm,
  log_prob: tf.Tensor,
  log_ratio: tf.Tensor,
  advantages: tf.Tensor,
  mask: tf.Tensor,
  temperature: tf.Tensor | None,
) -> algorithm_lib.PolicyLoss:
  """All of one shape `[...]`; what is masked may be anything. See `algorithm.Played`."""
  advantages = transitions_lib.select(mask, tf.stop_gradient(advantages))
  log_prob, log_ratio = (transitions_lib.select(mask, x) for x in (log_prob, log_ratio))
  return algorithm.policy_loss(
    algorithm_lib.Played(log_prob, log_ratio, advantages, mask, temperature)
  )


def _policy_metrics(
  algorithm: algorithm_lib.Algorithm,
  distribution: distributions.Distribution,
  params: tf.Tensor,
  behaviour_params: tf.Tensor,
  log_ratio: tf.Tensor,
  mask: tf.Tensor,
) -> dict[str, tf.Tensor]:
  """How far the policy is from the one that acted. The same divergence appears twice, because
  `Algorithm.passes` has one of the two reported of the last pass alone.
  """
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  ratio = vtrace_lib.importance_ratios(log_ratio)
  lower, upper = algorithm.ratio_bounds
  divergence = mean(distribution.kl(behaviour_params, params))
  return {
    'policy/entropy': mean(distribution.entropy(params)),
    'policy/kl_behaviour': divergence,
    LAST_DIVERGENCE: divergence,
    'policy/ratio_mean': mean(ratio),
    'policy/ratio_clipped_share': mean(tf.logical_or(ratio < lower, ratio > upper)),
    'policy/rho_clipped_share': mean(ratio > algorithm.rho_clip),
  }


def _value_metrics(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> dict[str, tf.Tensor]:
  """Means over unmasked steps; values and targets `[...]` in the units that values are learnt in.

    squared_error = mean( (target - V)^2 ),  target_variance = mean( (target - mean(target))^2 )

  Neither knows of `value_loss`, `value_clip` or `value_cost`.
  """
  mean = transitions_lib.masked_mean(targets, mask)
  return {
    value_metrics.ERROR: transitions_lib.masked_mean(tf.square(targets - values), mask),
    value_metrics.VARIANCE: transitions_lib.masked_mean(tf.square(targets - mean), mask),
    value_metrics.MEAN: mean,
  }


def _predicted(
  algorithm: algorithm_lib.Algorithm,
  network: network_lib.OnPolicyNetwork,
  minibatch: minibatches.Minibatch,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
  """Policy params and values of the steps, and, of unrolls, all values `[T+1, M]`."""
  if algorithm.by_transitions:
    prediction, _ = network(minibatch.inputs, minibatch.initial_state)
    return prediction.policy_params, prediction.value, None
  prediction, _ = network.unroll(minibatch.inputs, minibatch.initial_state)
  return prediction.policy_params[:-1], prediction.value[:-1], prediction.value


def value_loss(
  values: tf.Tensor,
  targets: tf.Tensor,
  behaviour_values: tf.Tensor,
  mask: tf.Tensor,
  *,
  of_errors: Callable[[tf.Tensor], tf.Tensor],
  clip: float,
) -> tf.Tensor:
  """Scalar mean of l(V), all `[...]` in the units that values are learnt in.

  of_errors: l, elementwise, of e = target - V. clip: PPO's; 0 = none.
  clipped: max( l(V), l(V_old + clip(V - V_old, -c, c)) )
  """
  values, targets, behaviour_values = (
    transitions_lib.select(mask, x) for x in (values, targets, behaviour_values)
  )
  result = of_errors(targets - values)
  if clip:
    change = tf.clip_by_value(values - behaviour_values, -clip, clip)
    result = tf.maximum(result, of_errors(targets - (behaviour_values + change)))
  return transitions_lib.masked_mean(result, mask)


def half_squared(errors: tf.Tensor) -> tf.Tensor:
  """e^2/2, elementwise."""
  return 0.5 * tf.square(errors)


def huber(errors: tf.Tensor, *, delta: float) -> tf.Tensor:
  """e^2/2 up to |e| = delta, then delta (|e| - delta/2), elementwise."""
  absolute = tf.abs(errors)
  return tf.where(absolute <= delta, 0.5 * tf.square(errors), delta * (absolute - 0.5 * delta))
