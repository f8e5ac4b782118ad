"""How SAC learns: the policy, the critics and their targets, and the weight of the entropy."""

from __future__ import annotations

from collections.abc import Callable
import functools

import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import types
from seed_acme.agents import learnt_rows as rows_lib
from seed_acme.agents.sac import batch as batch_lib
from seed_acme.agents.sac import config as sac_config
from seed_acme.agents.sac import hindsight
from seed_acme.agents.sac import loss as loss_lib
from seed_acme.agents.sac import network as network_lib
from seed_acme.checks import dotted_path
from seed_acme.ops import distributions

# Number of action values, whether there is a state value -> critics.
MakeCritics = Callable[[int, bool], network_lib.Critics]


def make_learning(
  policy: network_lib.PolicyNetwork,
  make_critics: MakeCritics,
  distribution: distributions.Distribution,
  config: sac_config.SACConfig,
) -> agent_lib.Learning:
  """Returns SAC's `Learning` for the policy that acts; makes all other networks."""
  networks = _make_networks(policy, make_critics, distribution.is_reparametrizable, config)
  return agent_lib.Learning(
    variables=_variables(networks),
    objectives=_objectives(networks, config),
    prepare=functools.partial(batch_lib.prepare, goal_outcome=_goal_outcome(config), config=config),
    losses=lambda batch, key, progress: loss_lib.losses(networks, distribution, batch, key, config),
    after_update=functools.partial(renew_targets, networks, config=config),
    copy_targets=functools.partial(_move, networks, 1.0),
    finish=functools.partial(finish, policy, config=config),
  )


def _make_networks(
  policy: network_lib.PolicyNetwork,
  make_critics: MakeCritics,
  is_reparametrizable: bool,
  config: sac_config.SACConfig,
) -> loss_lib.Networks:
  """Makes all networks; the targets start as copies of the critics that bootstrap.

  Discrete actions, which no gradient passes, need a state value as a baseline, whatever bootstraps.
  """
  from_state = config.bootstrap == 'state_value'
  critics = make_critics(config.num_critics, from_state or not is_reparametrizable)
  targets = make_critics(0 if from_state else config.num_critics, from_state)
  networks = loss_lib.Networks(policy, critics, targets, network_lib.EntropyWeight(config))
  _move(networks, 1.0)
  return networks


def _variables(networks: loss_lib.Networks) -> dict[str, tf.Variable]:
  found = {
    **agent_lib.named('critics', networks.critics.variables),
    **agent_lib.named('targets', networks.targets.variables),
  }
  return {**found, **agent_lib.named('entropy_weight', networks.entropy_weight.parameters)}


def _objectives(
  networks: loss_lib.Networks, config: sac_config.SACConfig
) -> dict[str, agent_lib.Objective]:
  found = {
    'policy': agent_lib.Objective(networks.policy.trainable_variables, config.optimizer),
    'critics': agent_lib.Objective(networks.critics.trainable_variables, config.critic_optimizer),
  }
  if networks.entropy_weight.parameters:
    found['entropy_weight'] = agent_lib.Objective(
      networks.entropy_weight.parameters, config.entropy_optimizer
    )
  return found


def _goal_outcome(config: sac_config.SACConfig) -> hindsight.GoalOutcomeFunction | None:
  """Imports the configured function, in the learner only; the environment is not needed for it."""
  if not config.hindsight.probability:
    return None
  return dotted_path.load_object(config.hindsight.goal_outcome, 'agent.hindsight.goal_outcome')


def renew_targets(
  networks: loss_lib.Networks, num_updates: tf.Tensor, *, config: sac_config.SACConfig
) -> None:
  """theta' <- theta' + target_step (theta - theta'), after every `target_period`-th update."""
  is_due = tf.equal(num_updates % config.target_period, 0)
  _move(networks, tf.where(is_due, config.target_step, 0.0))


def _move(networks: loss_lib.Networks, share: tf.Tensor | float) -> None:
  learnt, targets = networks.critics, networks.targets
  pairs = list(zip(targets.action_values, learnt.action_values))
  if targets.state_value is not None and learnt.state_value is not None:
    pairs.append((targets.state_value, learnt.state_value))
  for target, source in pairs:
    for old, new in zip(target.variables, source.variables):
      # A mean of both is exact for shares 0 and 1, while old + (new - old) may not equal new.
      old.assign((1.0 - share) * old + share * new)


def finish(
  policy: network_lib.PolicyNetwork, sample: types.Sample, config: sac_config.SACConfig
) -> dict[str, tf.Tensor]:
  """Updates the observation statistics with the sample, after the update that used the old ones."""
  if policy.observations is not None:
    inputs, _ = rows_lib.learnt_rows(sample.unroll, config)
    mask, _ = rows_lib.learnt_transitions(sample.unroll, config)
    policy.observations.update(tree.map_structure(lambda x: x[:-1], inputs.observation), mask)
  return {}
