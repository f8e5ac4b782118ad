"""The losses of SAC (Haarnoja et al. 2018a, arXiv 1801.01290, section 4; 2018b, 1812.05905).

With a ~ pi(. | x) a fresh sample, Q_min the least of the critics, alpha the weight of the entropy:

  policy       mean( alpha log pi(a|x) - Q_min(x, a) ),  through the sample to the policy alone
               for discrete actions, which no gradient passes:  -mean( A log pi(a|x) ),  where A is
               Q_min(x, a) - alpha log pi(a|x) - V(x), scaled to mean 0 and standard deviation 1
  critics      sum_k mean( w 1/2 (Q_k(x_t, a_t) - y_t)^2 )
  state value  mean( 1/2 (V(x) - Q_min(x, a) + alpha log pi(a|x))^2 )
  alpha        alpha (mean H - H_target)

  y_t = r_t + d_t Q'_min(x_{t+1}, a') - d_t alpha log pi(a'|x_{t+1}),  or  r_t + d_t V'(x_{t+1})

A mean is over unmasked transitions. H = -log pi(a|x), in nats, is summed over the dimensions of the
action. A target of -D for D dimensions is -1 nat in each, the entropy of a uniform distribution
over an interval of length 1/e = 0.37 within [-1, 1].
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.agents import priorities as priorities_lib
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.agents.sac import config as sac_config
from seed_acme.agents.sac import network as network_lib
from seed_acme.networks import state_functions
from seed_acme.ops import distributions
from seed_acme.ops import lagrange
from seed_acme.ops import transitions as transitions_lib
from seed_acme.ops import uniforms as uniforms_lib

_LEAST_SPREAD = 1e-3  # added to the standard deviation of advantages


class Networks(NamedTuple):
  """All networks. The policy acts. The targets bootstrap, from the state value alone or the action
  values alone, and only `after_update` changes them."""

  policy: network_lib.PolicyNetwork
  critics: network_lib.Critics
  targets: network_lib.Critics
  entropy_weight: network_lib.EntropyWeight


class Fresh(NamedTuple):
  """A freshly sampled action for each row, `[T+1, N]`, its log-probability `[T+1, N]`, and the mean
  standard deviation of its Normal numbers `[T+1, N]`, None without any."""

  actions: types.Nest
  log_probs: tf.Tensor
  std: tf.Tensor | None


def losses(
  networks: Networks,
  distribution: distributions.Distribution,
  batch: batch_lib.Batch,
  key: tf.Tensor,
  config: sac_config.SACConfig,
) -> types.LossOutput:
  """Returns one loss per objective: policy, critics, and entropy_weight if it is learnt."""
  batch = batch._replace(
    inputs=networks.policy.normalized(batch.inputs),
    burn_in=_normalized_burn_in(networks.policy, batch),
  )
  weight = tf.stop_gradient(networks.entropy_weight())
  fresh = _fresh(networks.policy, distribution, batch, key)
  values = _values(networks.critics, batch, fresh)
  soft_values = values.fresh - weight * _without_last(fresh.log_probs)
  targets = _targets(networks.targets, batch, fresh, weight)
  errors = [transitions_lib.select(batch.mask, targets - played) for played in values.played]
  mean = lambda x: transitions_lib.masked_mean(x, batch.mask)
  found = {
    'policy': _policy_loss(distribution, fresh, soft_values, values.state, batch.mask),
    'critics': tf.add_n([0.5 * mean(batch.weights * tf.square(e)) for e in errors]),
  }
  if values.state is not None:
    found['critics'] += 0.5 * mean(tf.square(values.state - tf.stop_gradient(soft_values)))
  entropy = mean(-_without_last(fresh.log_probs))
  if config.target_entropy is not None:
    found['entropy_weight'] = lagrange.adjustment_loss(
      networks.entropy_weight(), entropy - config.target_entropy
    )
  metrics = {
    **{f'loss/{name}': loss for name, loss in found.items()},
    'q/mean': mean(values.played[0]),
    'q/target_mean': mean(targets),
    'q/td_error_abs': mean(tf.abs(errors[0])),
    'policy/entropy': entropy,
    **({} if fresh.std is None else {'policy/std': mean(_without_last(fresh.std))}),
    'policy/entropy_weight': weight,
  }
  return types.LossOutput(
    losses=found,
    metrics={name: tf.stop_gradient(x) for name, x in metrics.items()},
    priorities=_priorities(errors, batch.mask, config),
  )


def _normalized_burn_in(policy: network_lib.PolicyNetwork, batch: batch_lib.Batch) -> types.Nest:
  return policy.normalized(batch.burn_in) if batch.burn_in else ()


def _fresh(
  policy: network_lib.PolicyNetwork,
  distribution: distributions.Distribution,
  batch: batch_lib.Batch,
  key: tf.Tensor,
) -> Fresh:
  """Samples fresh actions; the policy's state starts from the one stored with the unroll."""
  remembered = _remembered(policy.function, batch, batch.policy_state)
  params = policy.function.over_rows(batch.inputs.observation, remembered)
  uniforms = uniforms_lib.draw(key, [*params.shape[:2], distribution.num_uniforms])
  actions, log_probs = distribution.sample_with_log_prob(params, uniforms)
  if not distribution.is_reparametrizable:
    # An action may have continuous parts besides discrete ones. The score function takes actions as
    # given, so no gradient may pass through the continuous parts.
    actions = tree.map_structure(tf.stop_gradient, actions)
    score = distribution.log_prob(params, actions)
    log_probs = tf.stop_gradient(log_probs - score) + score
  std = distribution.std(params)
  return Fresh(actions, log_probs, None if std is None else tf.reduce_mean(std, axis=-1))


def _remembered(
  function: state_functions.StateFunction, batch: batch_lib.Batch, state: types.Nest
) -> types.Nest:
  """Returns core outputs `[T+1, N, H]`; no gradient flows into the burn-in before them."""
  if batch.burn_in:
    _, state = function.remember_unroll(batch.burn_in, state)
    state = tf.nest.map_structure(tf.stop_gradient, state)
  return function.remember_unroll(batch.inputs, state)[0]


def _critics_memory(function: state_functions.StateFunction, batch: batch_lib.Batch) -> types.Nest:
  """Returns a critic's core outputs from an initial state, as critics store none when acting."""
  return _remembered(function, batch, function.initial_state(batch.mask.shape[1]))


class _Values(NamedTuple):
  """Values, `[T, N]` each. played: each critic's, at the actions that were played. fresh: the least
  of the critics' at the fresh actions. state: the state value's, if there is one."""

  played: list[tf.Tensor]
  fresh: tf.Tensor
  state: tf.Tensor | None


def _values(critics: network_lib.Critics, batch: batch_lib.Batch, fresh: Fresh) -> _Values:
  observation = tree.map_structure(_without_last, batch.inputs.observation)
  actions = tree.map_structure(_without_last, fresh.actions)
  played, at_fresh = [], []
  for critic in critics.action_values:
    remembered = tree.map_structure(_without_last, _critics_memory(critic, batch))
    played.append(critic.over_rows(observation, remembered, batch.actions)[..., 0])
    at_fresh.append(critic.over_rows(observation, remembered, actions)[..., 0])
  state = None
  if critics.state_value is not None:
    remembered = tree.map_structure(_without_last, _critics_memory(critics.state_value, batch))
    state = critics.state_value.over_rows(observation, remembered)[..., 0]
  return _Values(played, _least(at_fresh), state)


def _targets(
  targets: network_lib.Critics, batch: batch_lib.Batch, fresh: Fresh, weight: tf.Tensor
) -> tf.Tensor:
  """Returns the critics' targets `[T, N]`, without gradient."""
  bootstrap = _bootstrap(targets, batch, fresh, weight)
  # After a termination nothing follows, whatever the networks predict there.
  to_come = batch.discounts * transitions_lib.select(batch.discounts > 0, bootstrap)
  return tf.stop_gradient(batch.rewards + to_come)


def _bootstrap(
  targets: network_lib.Critics, batch: batch_lib.Batch, fresh: Fresh, weight: tf.Tensor
) -> tf.Tensor:
  """Returns the value `[T, N]` of each transition's second row."""
  observation = tree.map_structure(_without_first, batch.inputs.observation)
  if targets.state_value is not None:
    remembered = tree.map_structure(_without_first, _critics_memory(targets.state_value, batch))
    return targets.state_value.over_rows(observation, remembered)[..., 0]
  actions = tree.map_structure(_without_first, fresh.actions)
  at_fresh = []
  for critic in targets.action_values:
    remembered = tree.map_structure(_without_first, _critics_memory(critic, batch))
    at_fresh.append(critic.over_rows(observation, remembered, actions)[..., 0])
  return _least(at_fresh) - weight * _without_first(fresh.log_probs)


def _policy_loss(
  distribution: distributions.Distribution,
  fresh: Fresh,
  soft_values: tf.Tensor,
  state_values: tf.Tensor | None,
  mask: tf.Tensor,
) -> tf.Tensor:
  """Computes the policy's loss from soft_values `[T, N]`, Q_min(x, a) - alpha log pi(a|x) of the
  fresh actions."""
  mean = lambda x: transitions_lib.masked_mean(x, mask)
  if distribution.is_reparametrizable:
    return -mean(soft_values)
  assert state_values is not None
  advantages = tf.stop_gradient(transitions_lib.select(mask, soft_values - state_values))
  centred = transitions_lib.select(mask, advantages - mean(advantages))
  spread = tf.sqrt(mean(tf.square(centred)))
  return -mean(centred / (spread + _LEAST_SPREAD) * _without_last(fresh.log_probs))


def _priorities(
  errors: list[tf.Tensor], mask: tf.Tensor, config: sac_config.SACConfig
) -> tf.Tensor | None:
  """Returns priorities `[B]` of the unrolls, from the largest error of any critic; None for uniform
  replay.

  An unroll of which only places between two episodes were taken keeps its priority. With 0 it would
  never be drawn again.
  """
  if config.replay == 'uniform':
    return None
  largest = tf.reduce_max(tf.abs(tf.stack(errors)), axis=0)
  by_unroll = lambda x: tf.reshape(x, [-1, config.batch_size])
  priorities = tf.stop_gradient(
    priorities_lib.mixed_priorities(
      by_unroll(largest), by_unroll(mask), max_share=config.max_priority_share
    )
  )
  if config.transitions_per_unroll in (0, config.unroll_length):
    return priorities
  is_known = tf.reduce_any(by_unroll(mask), axis=0)
  return tf.where(is_known, priorities, tf.constant(float('nan')))


def _least(values: list[tf.Tensor]) -> tf.Tensor:
  return tf.reduce_min(tf.stack(values), axis=0)


def _without_last(x: tf.Tensor) -> tf.Tensor:
  return x[:-1]


def _without_first(x: tf.Tensor) -> tf.Tensor:
  return x[1:]
