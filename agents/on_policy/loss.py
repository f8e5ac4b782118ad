"""The loss of the on-policy agent on one minibatch."""

from __future__ import annotations

import functools
from typing import NamedTuple

import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import penalties as penalties_lib
from seed_acme.agents.on_policy import value_metrics
from seed_acme.ops import distributions
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import vtrace as vtrace_lib

LAST_DIVERGENCE = 'policy/kl_last_pass'


class Minibatch(NamedTuple):
  """M transitions, leaves `[M, ...]`, or M unrolls, time-major `[T, M, ...]`.

  inputs: the rows in which actions were chosen; unrolls have one more, `[T+1, M, ...]`.
  initial_state: network state before the first row, `[M, ...]`; `()` for transitions.
  actions, behaviour_params: the action of each row, and the parameters of its distribution.
  behaviour_values: values predicted when acting, in the units that values are learnt in.
  rewards: what the actions brought, clipped and scaled. discounts, mask: as in `ops.transitions`.
  targets, advantages: value targets, in the units that values are learnt in, and advantages; both
    `()` if the loss computes them itself.
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
  """acting: the actor-critic. weights: learnt weights of the loss, which only training needs."""

  acting: network_lib.OnPolicyNetwork
  weights: network_lib.LearntWeights


class Forward(NamedTuple):
  """Outputs of policy and behaviour for the steps of a minibatch, `[...]` each, params `[..., P]`.

  all_values: for unrolls `[T+1, M]`, with the values of the last rows, which have no gradient;
    otherwise `values`.
  penalties: x of each penalty, by name.
  """

  params: tf.Tensor
  behaviour_params: tf.Tensor
  log_prob: tf.Tensor
  log_ratio: tf.Tensor
  values: tf.Tensor
  all_values: tf.Tensor
  penalties: dict[str, tf.Tensor]


def loss(
  algorithm: algorithm_lib.Algorithm,
  networks: Networks,
  minibatch: Minibatch,
  key: tf.Tensor | None,
  progress: tf.Tensor | None = None,
) -> types.LossOutput:
  """Scalar: policy loss + value_cost * value loss + penalties; means over unmasked steps.

    kl_cost mean( log mu(a_t|x_t) - log pi(a_t|x_t) )  is KL(mu || pi) by one sample

  Penalties that enter the rewards are not a term of the loss, but their weights are still learnt.
  `key` and `progress` are not used.
  """
  del key, progress
  network, weights, mask = networks.acting, networks.weights, minibatch.mask
  outputs, temperature = forward(algorithm, networks, minibatch), weights.temperature()
  targets, advantages = minibatch.targets, minibatch.advantages
  if algorithm.estimates_in_loss:
    estimates = estimate(algorithm, networks, minibatch, outputs)
    targets, advantages = in_learnt_units(network, estimates)
  played = algorithm_lib.Played(outputs.log_prob, outputs.log_ratio, advantages, mask, temperature)
  policy = policy_loss(algorithm, played)
  learnt_values, targets = network.normalized_value(outputs.values), tf.stop_gradient(targets)
  value = algorithm.value_loss(learnt_values, targets, minibatch.behaviour_values, mask)
  penalty = penalties_lib.terms(
    outputs.penalties, weights.penalty_weights(), mask, algorithm.penalties
  )
  losses = {
    'loss/policy': policy.loss,
    'loss/value': algorithm.value_cost * value,
    'loss/penalties': tf.zeros([]) if algorithm.penalty_sign else penalty.loss,
    'loss/sampled_kl': algorithm.kl_cost * transitions_lib.masked_mean(-outputs.log_ratio, mask),
    'loss/adjustment': policy.adjustment + penalty.adjustment,
  }
  metrics = {
    **losses,
    **penalty.metrics,
    **_policy_metrics(algorithm, network.distribution, outputs, mask),
    'value/mean': transitions_lib.masked_mean(outputs.values, mask),
    **_value_metrics(learnt_values, targets, mask),
  }
  if temperature is not None:
    metrics['policy/temperature'] = temperature
  return types.LossOutput(
    losses={'policy': tf.add_n(list(losses.values()))},
    metrics={name: tf.stop_gradient(x) for name, x in metrics.items()},
  )


def forward(
  algorithm: algorithm_lib.Algorithm, networks: Networks, minibatch: Minibatch
) -> Forward:
  """Runs the network on transitions, whose mask is `[M]`, or on unrolls, whose mask is `[T, M]`."""
  network, distribution = networks.acting, networks.acting.distribution
  if minibatch.mask.shape.rank == 1:
    (params, values), _ = network(minibatch.inputs, minibatch.initial_state)
    all_values = values
  else:
    acted = tree.map_structure(lambda x: x[:-1], minibatch.inputs)
    last = tree.map_structure(lambda x: x[-1], minibatch.inputs)
    (params, values), state = network.unroll(acted, minibatch.initial_state)
    # The rows after the last actions only say what to bootstrap from. Values are bootstrapped from
    # without a gradient, so these rows need no backward pass.
    bootstrap, _ = network(last, state)
    all_values = tf.concat([values, tf.stop_gradient(bootstrap.value)[tf.newaxis]], axis=0)
  # Masked rows may hold any stored value; 0 keeps it out of the gradients.
  behaviour_params = tf.stop_gradient(
    transitions_lib.select(minibatch.mask[..., tf.newaxis], minibatch.behaviour_params)
  )
  log_prob = distribution.log_prob(params, minibatch.actions)
  log_ratio = log_prob - distribution.log_prob(behaviour_params, minibatch.actions)
  x = penalties_lib.quantities(distribution, params, behaviour_params, algorithm.penalties)
  return Forward(params, behaviour_params, log_prob, log_ratio, values, all_values, x)


def estimate(
  algorithm: algorithm_lib.Algorithm, networks: Networks, minibatch: Minibatch, outputs: Forward
) -> algorithm_lib.Estimates:
  """Returns targets and advantages `[T, M]` of a minibatch of unrolls."""
  weights = networks.weights.penalty_weights()
  rewards = penalties_lib.in_rewards(
    minibatch.rewards, outputs.penalties, weights, algorithm.penalty_sign
  )
  steps = transitions_lib.Transitions(
    transitions_lib.select(minibatch.mask, rewards), minibatch.discounts, minibatch.mask
  )
  return algorithm.estimate(algorithm_lib.Trace(outputs.all_values, steps, outputs.log_ratio))


def in_learnt_units(
  network: network_lib.OnPolicyNetwork, estimates: algorithm_lib.Estimates
) -> tuple[tf.Tensor, tf.Tensor]:
  """Converts targets and advantages from the rewards' units to those that values are learnt in."""
  return network.normalized_value(estimates.targets), estimates.advantages / network.value_std()


def policy_loss(
  algorithm: algorithm_lib.Algorithm, played: algorithm_lib.Played
) -> algorithm_lib.PolicyLoss:
  """Computes the policy loss. Masked steps may hold anything; advantages get no gradient."""
  mask, advantages = played.mask, tf.stop_gradient(played.advantages)
  log_prob, log_ratio, advantages = (
    transitions_lib.select(mask, x) for x in (played.log_prob, played.log_ratio, advantages)
  )
  return algorithm.policy_loss(
    played._replace(log_prob=log_prob, log_ratio=log_ratio, advantages=advantages)
  )


def _policy_metrics(
  algorithm: algorithm_lib.Algorithm,
  distribution: distributions.Distribution,
  outputs: Forward,
  mask: tf.Tensor,
) -> dict[str, tf.Tensor]:
  """Measures how far the policy is from the one that acted. The same divergence appears twice,
  because `Algorithm.passes` reports one of the two for the last pass only.
  """
  mean = functools.partial(transitions_lib.masked_mean, mask=mask)
  ratio = vtrace_lib.importance_ratios(outputs.log_ratio)
  lower, upper = algorithm.ratio_bounds
  divergence = mean(distribution.kl(outputs.behaviour_params, outputs.params))
  std = distribution.std(outputs.params)
  return {
    **({} if std is None else {'policy/std': mean(tf.reduce_mean(std, axis=-1))}),
    'policy/entropy': mean(distribution.entropy(outputs.params)),
    'policy/kl_behaviour': divergence,
    LAST_DIVERGENCE: divergence,
    'policy/ratio_mean': mean(ratio),
    'policy/ratio_clipped_share': mean(tf.logical_or(ratio < lower, ratio > upper)),
    'policy/rho_clipped_share': mean(ratio > algorithm.rho_clip),
  }


def _value_metrics(values: tf.Tensor, targets: tf.Tensor, mask: tf.Tensor) -> dict[str, tf.Tensor]:
  """Means over unmasked steps; values and targets `[...]` in the units that values are learnt in.

    squared_error = mean( (target - V)^2 ),  target_variance = mean( (target - mean(target))^2 )

  Neither depends on `value_loss`, `value_clip` or `value_cost`.
  """
  mean = transitions_lib.masked_mean(targets, mask)
  return {
    value_metrics.ERROR: transitions_lib.masked_mean(tf.square(targets - values), mask),
    value_metrics.VARIANCE: transitions_lib.masked_mean(tf.square(targets - mean), mask),
    value_metrics.MEAN: mean,
  }


def value_loss(
  values: tf.Tensor,
  targets: tf.Tensor,
  behaviour_values: tf.Tensor,
  mask: tf.Tensor,
  *,
  value_loss: str,
  huber_delta: float,
  value_clip: float,
) -> tf.Tensor:
  """Scalar mean of l(V), all `[...]` in the units that values are learnt in.

  mse: l = e^2/2.  huber: e^2/2 up to |e| = delta, then delta (|e| - delta/2).  e = target - V
  clipped: max( l(V), l(V_old + clip(V - V_old, -c, c)) )
  """
  values, targets, behaviour_values = (
    transitions_lib.select(mask, x) for x in (values, targets, behaviour_values)
  )
  delta = huber_delta if value_loss == 'huber' else None
  of_errors = functools.partial(_of_errors, delta=delta)
  result = of_errors(targets - values)
  if value_clip:
    change = tf.clip_by_value(values - behaviour_values, -value_clip, value_clip)
    result = tf.maximum(result, of_errors(targets - (behaviour_values + change)))
  return transitions_lib.masked_mean(result, mask)


def _of_errors(errors: tf.Tensor, delta: float | None) -> tf.Tensor:
  """Computes l of `value_loss` elementwise; delta None = mse."""
  if delta is None:
    return 0.5 * tf.square(errors)
  absolute = tf.abs(errors)
  return tf.where(absolute <= delta, 0.5 * tf.square(errors), delta * (absolute - 0.5 * delta))
