"""What the on-policy agent learns from, and in how many passes."""

from __future__ import annotations

import functools

import tensorflow as tf
import tree

from seed_acme import multi_pass_learner
from seed_acme import types
from seed_acme.agents import burn_in
from seed_acme.agents.on_policy import advantages as advantages_lib
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import penalties as penalties_lib
from seed_acme.ops import transitions as transitions_lib


def passes(config: on_policy_config.OnPolicyConfig) -> multi_pass_learner.Passes:
  """Epochs and minibatches. Raises `types.UserError` for sizes that do not divide."""
  config.check()
  return multi_pass_learner.Passes(
    num_epochs=config.num_epochs,
    num_minibatches=on_policy_config.num_minibatches(config),
    num_elements=on_policy_config.num_elements(config),
    prepare=functools.partial(prepare, config=config),
    prepares_each_epoch=config.recompute_advantages == 'epoch',
    take=functools.partial(take, config=config),
    finish=functools.partial(finish, config=config),
  )


def prepare(
  network: network_lib.OnPolicyNetwork,
  sample: types.Sample,
  is_first: bool,
  config: on_policy_config.OnPolicyConfig,
) -> loss_lib.Minibatch:
  """The whole batch, with advantages and targets by the weights as they are.

  The statistics of the values change before the first pass only.
  """
  inputs, outputs = burn_in.learnt_rows(sample.unroll, config)
  state = burn_in.entering_state(network, sample.unroll, config)
  prediction, _ = network.unroll(inputs, state)
  params, values = prediction.policy_params[:-1], prediction.value
  actions = tree.map_structure(lambda x: x[:-1], outputs.action)
  behaviour = types.ActorCriticOutput(*tree.map_structure(lambda x: x[:-1], outputs.prediction))
  log_rhos = network.distribution.log_prob(params, actions) - network.distribution.log_prob(
    behaviour.policy_params, actions
  )
  steps = transitions_lib.transitions(inputs, gamma=config.discount)
  steps = steps._replace(rewards=advantages_lib.rewards_to_learn(steps.rewards, config))
  quantities = penalties_lib.quantities(
    network.distribution, params, behaviour.policy_params, config
  )
  estimates = loss_lib.estimate(network, values, steps, log_rhos, quantities, config)
  targets, advantages, behaviour_values = _in_learnt_units(
    network, estimates, behaviour.value, steps.mask, is_first, config
  )
  batch = loss_lib.Minibatch(
    inputs=inputs,
    initial_state=state,
    actions=actions,
    behaviour_params=behaviour.policy_params,
    behaviour_values=behaviour_values,
    rewards=steps.rewards,
    discounts=steps.discounts,
    mask=steps.mask,
    targets=targets,
    advantages=advantages,
  )
  return batch if config.minibatch_of == 'unrolls' else _as_transitions(batch)


def _in_learnt_units(
  network: network_lib.OnPolicyNetwork,
  estimates: advantages_lib.Estimates,
  behaviour_values: tf.Tensor,
  mask: tf.Tensor,
  is_first: bool,
  config: on_policy_config.OnPolicyConfig,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Targets, advantages and values when acting, `[T, B]`, in the units values are learnt in.

  The order is of targets and advantages. Values when acting are in the units that the network's
  output has by the time of the loss, after the statistics have changed.
  """
  changing = network.values if is_first else None
  if changing is not None and config.popart_order == 'statistics_first':
    changing.update(estimates.targets, mask)
  targets = network.normalized_value(estimates.targets)
  advantages = estimates.advantages / network.value_std()
  if changing is not None and config.popart_order == 'targets_first':
    changing.update(estimates.targets, mask)
  return targets, advantages, network.value_when_acting(behaviour_values)


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
  inputs, _ = burn_in.learnt_rows(sample.unroll, config)
  mask = transitions_lib.transitions(inputs, gamma=config.discount).mask
  if network.observations is not None:
    network.observations.update(tree.map_structure(lambda x: x[:-1], inputs.observation), mask)
  if network.values is None:
    return {}
  return {
    'value/normalizer_mean': network.values.mean(),
    'value/normalizer_std': network.values.std(),
  }
