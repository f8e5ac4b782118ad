"""What the on-policy agent learns from, and in how many passes."""

from __future__ import annotations

import functools

import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.agents import learnt_rows as rows_lib
from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learnt_weights
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import penalties as penalties_lib
from seed_acme.agents.on_policy import value_metrics
from seed_acme.ops import transitions as transitions_lib


def make_learning(
  network: network_lib.OnPolicyNetwork, config: on_policy_config.OnPolicyConfig
) -> agent_lib.Learning:
  """Around a network that acts."""
  return learning_of(loss_lib.Networks(network, learnt_weights.LearntWeights(config)), config)


def learning_of(
  networks: loss_lib.Networks, config: on_policy_config.OnPolicyConfig
) -> agent_lib.Learning:
  """One objective: the network, and the weights that are learnt with it, share an optimiser."""
  network, weights = networks
  return agent_lib.Learning(
    variables=agent_lib.named('weights', weights.variables),
    objectives={
      'policy': agent_lib.Objective(
        (*network.trainable_variables, *weights.trainable_variables), config.optimizer
      )
    },
    prepare=lambda sample, key, is_first: prepare(networks, sample, is_first, config),
    losses=lambda batch, key, progress: loss_lib.loss(networks, batch, config),
    passes=passes(config),
    finish=functools.partial(finish, network, config=config),
    of_row=value_metrics.of_row,
    watches=(value_metrics.WATCH,) if config.value_cost else (),
  )


def passes(config: on_policy_config.OnPolicyConfig) -> agent_lib.Passes | None:
  """Epochs and minibatches; None for a single gradient step."""
  if config.num_epochs == on_policy_config.num_minibatches(config) == 1:
    return None
  return agent_lib.Passes(
    num_epochs=config.num_epochs,
    num_minibatches=on_policy_config.num_minibatches(config),
    num_elements=on_policy_config.num_elements(config),
    prepares_each_epoch=config.recompute_advantages == 'epoch',
    take=functools.partial(take, config=config),
    of_first=value_metrics.OF_FIRST_PASS,
    of_last=(loss_lib.LAST_DIVERGENCE,),
    variances=value_metrics.variances(config),
  )


def prepare(
  networks: loss_lib.Networks,
  sample: types.Sample,
  is_first: bool,
  config: on_policy_config.OnPolicyConfig,
) -> agent_lib.Prepared:
  """The whole batch, with advantages and targets by the weights as they are.

  Where the loss makes them itself there is no forward pass here, unless the statistics of the
  values need one, which change before the first pass only.
  """
  inputs, outputs = rows_lib.learnt_rows(sample.unroll, config)
  state = rows_lib.entering_state(networks.acting, sample.unroll, config)
  steps = transitions_lib.transitions(inputs, gamma=config.discount)
  steps = steps._replace(rewards=advantages_lib.rewards_to_learn(steps.rewards, config))
  behaviour = types.ActorCriticOutput(*tree.map_structure(lambda x: x[:-1], outputs.prediction))
  batch = loss_lib.Minibatch(
    inputs=inputs,
    initial_state=state,
    actions=tree.map_structure(lambda x: x[:-1], outputs.action),
    behaviour_params=behaviour.policy_params,
    behaviour_values=behaviour.value,
    rewards=steps.rewards,
    discounts=steps.discounts,
    mask=steps.mask,
    targets=(),
    advantages=(),
  )
  changes_statistics = networks.acting.values is not None and is_first
  if changes_statistics or not advantages_lib.estimates_in_loss(config):
    batch = _with_estimates(networks, batch, is_first, config)
  batch = batch._replace(behaviour_values=networks.acting.value_when_acting(batch.behaviour_values))
  mask, version = rows_lib.learnt_transitions(sample.unroll, config)
  batch = batch if config.minibatch_of == 'unrolls' else _as_transitions(batch)
  return agent_lib.Prepared(batch, mask, version)


def _with_estimates(
  networks: loss_lib.Networks,
  batch: loss_lib.Minibatch,
  is_first: bool,
  config: on_policy_config.OnPolicyConfig,
) -> loss_lib.Minibatch:
  """With targets and advantages; may change the statistics of the values."""
  network = networks.acting
  prediction, _ = network.unroll(batch.inputs, batch.initial_state)
  params = prediction.policy_params[:-1]
  log_rhos = network.distribution.log_prob(params, batch.actions) - network.distribution.log_prob(
    batch.behaviour_params, batch.actions
  )
  quantities = penalties_lib.quantities(
    network.distribution, params, batch.behaviour_params, config
  )
  steps = transitions_lib.Transitions(batch.rewards, batch.discounts, batch.mask)
  estimates = loss_lib.estimate(networks, prediction.value, steps, log_rhos, quantities, config)
  targets, advantages = _in_learnt_units(network, estimates, batch.mask, is_first, config)
  return batch._replace(targets=targets, advantages=advantages)


def _in_learnt_units(
  network: network_lib.OnPolicyNetwork,
  estimates: advantages_lib.Estimates,
  mask: tf.Tensor,
  is_first: bool,
  config: on_policy_config.OnPolicyConfig,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Targets and advantages, `[T, B]`, in the units values are learnt in; renews these units.

  What the first spread there is has before it are no units.
  """
  before = _in_units_of_now(network, estimates)
  if network.values is None or not is_first:
    return before
  had_spread = network.values.has_spread()
  network.values.update(estimates.targets, mask)
  after = _in_units_of_now(network, estimates)
  if config.popart_order == 'targets_first':
    return tree.map_structure(functools.partial(tf.where, had_spread), before, after)
  return after


def _in_units_of_now(
  network: network_lib.OnPolicyNetwork, estimates: advantages_lib.Estimates
) -> tuple[tf.Tensor, tf.Tensor]:
  return network.normalized_value(estimates.targets), estimates.advantages / network.value_std()


def _as_transitions(batch: loss_lib.Minibatch) -> loss_lib.Minibatch:
  """Time-major leaves -> `[T*B, ...]`; the last row of an unroll starts no transition."""
  merge = lambda x: tf.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
  inputs = tree.map_structure(lambda x: x[:-1], batch.inputs)
  return tree.map_structure(merge, batch._replace(inputs=inputs, initial_state=()))


def take(
  batch: loss_lib.Minibatch, indices: tf.Tensor, config: on_policy_config.OnPolicyConfig
) -> loss_lib.Minibatch:
  """The transitions or unrolls `indices` `[M]` of a prepared batch."""
  axis = 0 if config.minibatch_of == 'transitions' else 1
  state = tree.map_structure(lambda x: tf.gather(x, indices), batch.initial_state)
  taken = tree.map_structure(
    lambda x: tf.gather(x, indices, axis=axis), batch._replace(initial_state=())
  )
  return taken._replace(initial_state=state)


def finish(
  network: network_lib.OnPolicyNetwork,
  sample: types.Sample,
  config: on_policy_config.OnPolicyConfig,
) -> dict[str, tf.Tensor]:
  """Observation statistics take in the batch only now: within an update, and in the ratio of
  policy and behaviour, nothing but gradients is to change what the network says.
  """
  inputs, _ = rows_lib.learnt_rows(sample.unroll, config)
  mask = transitions_lib.transitions(inputs, gamma=config.discount).mask
  if network.observations is not None:
    network.observations.update(tree.map_structure(lambda x: x[:-1], inputs.observation), mask)
  if network.values is None:
    return {}
  return {
    'value/normalizer_mean': network.values.mean(),
    'value/normalizer_std': network.values.std(),
  }
