"""How the on-policy agent learns: its objective, and the preparation of a sample for the loss."""

from __future__ import annotations

import functools

import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.agents import learnt_rows as rows_lib
from seed_acme.agents.on_policy import algorithm as algorithm_lib
from seed_acme.agents.on_policy import loss as loss_lib
from seed_acme.agents.on_policy import network as network_lib
from seed_acme.agents.on_policy import value_metrics


def make_learning(
  network: network_lib.OnPolicyNetwork, algorithm: algorithm_lib.Algorithm
) -> agent_lib.Learning:
  """Returns the `Learning` of a network that also acts."""
  weights = network_lib.LearntWeights(algorithm.penalties, algorithm.temperature)
  return learning_of(algorithm, loss_lib.Networks(network, weights))


def learning_of(
  algorithm: algorithm_lib.Algorithm, networks: loss_lib.Networks
) -> agent_lib.Learning:
  """Returns a `Learning` with one objective: network and learnt weights share an optimiser."""
  network, weights = networks
  return agent_lib.Learning(
    variables=agent_lib.named('weights', weights.variables),
    objectives={
      'policy': agent_lib.Objective(
        (*network.trainable_variables, *weights.trainable_variables), algorithm.optimizer
      )
    },
    prepare=lambda sample, key, is_first: prepare(algorithm, networks, sample, is_first),
    losses=functools.partial(loss_lib.loss, algorithm, networks),
    passes=algorithm.passes,
    finish=functools.partial(finish, algorithm, network),
    of_row=value_metrics.of_row,
    watches=(value_metrics.WATCH,) if algorithm.value_cost else (),
    keeps_observations=not (algorithm.passes or algorithm.by_transitions or network.observations),
  )


def prepare(
  algorithm: algorithm_lib.Algorithm,
  networks: loss_lib.Networks,
  sample: types.Sample,
  is_first: bool,
) -> agent_lib.Prepared:
  """Returns the whole batch, with advantages and targets computed with the current weights.

  If the loss computes them itself, there is no forward pass here, except where the statistics of
  the values need one: they change before the first pass only.
  """
  inputs, outputs = rows_lib.learnt_rows(sample.unroll, algorithm)
  state = rows_lib.entering_state(networks.acting, sample.unroll, algorithm)
  steps = algorithm.steps(inputs)
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
  if changes_statistics or not algorithm.estimates_in_loss:
    batch = _with_estimates(algorithm, networks, batch, is_first)
  # After the statistics were updated, because it converts values by those from before.
  batch = batch._replace(behaviour_values=networks.acting.value_when_acting(batch.behaviour_values))
  mask, version = rows_lib.learnt_transitions(sample.unroll, algorithm)
  batch = _as_transitions(batch) if algorithm.by_transitions else batch
  return agent_lib.Prepared(batch, mask, version)


def _with_estimates(
  algorithm: algorithm_lib.Algorithm,
  networks: loss_lib.Networks,
  batch: loss_lib.Minibatch,
  is_first: bool,
) -> loss_lib.Minibatch:
  """Adds targets and advantages to a batch. The first pass also updates the values' statistics."""
  outputs = loss_lib.forward(algorithm, networks, batch)
  estimates = loss_lib.estimate(algorithm, networks, batch, outputs)
  targets, advantages = _normalize_and_update_popart(
    algorithm, networks.acting, estimates, batch.mask, is_first
  )
  return batch._replace(targets=targets, advantages=advantages)


def _normalize_and_update_popart(
  algorithm: algorithm_lib.Algorithm,
  network: network_lib.OnPolicyNetwork,
  estimates: algorithm_lib.Estimates,
  mask: tf.Tensor,
  is_first: bool,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns targets and advantages `[T, B]` in the units that values are learnt in. In the first
  pass the targets also enter PopArt's statistics, which define these units.

  Unless the statistics are to be renewed first (`popart_order`), the units are those from before
  this batch. Until these have a spread the new ones are used, because a division by a spread close
  to 0 would make the targets enormous.
  """
  before = loss_lib.in_learnt_units(network, estimates)
  if network.values is None or not is_first:
    return before
  had_spread = network.values.has_spread()
  network.values.update(estimates.targets, mask)
  after = loss_lib.in_learnt_units(network, estimates)
  if algorithm.renews_before_normalizing:
    return after
  return tree.map_structure(functools.partial(tf.where, had_spread), before, after)


def _as_transitions(batch: loss_lib.Minibatch) -> loss_lib.Minibatch:
  """Time-major leaves -> `[T*B, ...]`; the last row of an unroll starts no transition."""
  merge = lambda x: tf.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
  inputs = tree.map_structure(lambda x: x[:-1], batch.inputs)
  return tree.map_structure(merge, batch._replace(inputs=inputs, initial_state=()))


def take(batch: loss_lib.Minibatch, indices: tf.Tensor, *, axis: int) -> loss_lib.Minibatch:
  """The transitions (axis 0) or unrolls (axis 1) `indices` `[M]` of a prepared batch."""
  state = tree.map_structure(lambda x: tf.gather(x, indices), batch.initial_state)
  taken = tree.map_structure(
    lambda x: tf.gather(x, indices, axis=axis), batch._replace(initial_state=())
  )
  return taken._replace(initial_state=state)


def finish(
  algorithm: algorithm_lib.Algorithm, network: network_lib.OnPolicyNetwork, sample: types.Sample
) -> dict[str, tf.Tensor]:
  """Updates the observation statistics with the batch, and returns metrics of the value statistics.

  The update of the statistics comes last, because within an update, and in the ratio of policy and
  behaviour, only gradients may change the network's output.
  """
  if network.observations is not None:
    inputs, _ = rows_lib.learnt_rows(sample.unroll, algorithm)
    mask, _ = rows_lib.learnt_transitions(sample.unroll, algorithm)
    network.observations.update(tree.map_structure(lambda x: x[:-1], inputs.observation), mask)
  if network.values is None:
    return {}
  return {
    'value/normalizer_mean': network.values.mean(),
    value_metrics.NORMALIZER_STD: network.values.std(),
  }
