"""How R2D2 learns: its online and target networks, and when the target is updated."""

from __future__ import annotations

import functools

import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import core
from seed_acme.agents import learnt_rows
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import loss as loss_lib


def make_learning(
  online: core.RecurrentNetwork, target: core.RecurrentNetwork, config: r2d2_config.R2D2Config
) -> agent_lib.Learning:
  """Returns R2D2's `Learning`; the target starts as a copy of the online network."""
  networks = loss_lib.Networks(online, target)
  copy(networks)
  return agent_lib.Learning(
    variables=agent_lib.named('target', target.variables),
    objectives={'q': agent_lib.Objective(online.trainable_variables, config.optimizer)},
    prepare=functools.partial(learnt_rows.prepare_sample, config=config),
    losses=lambda batch, key, progress: loss_lib.loss(networks, batch, config),
    after_update=functools.partial(renew_target, networks, period=config.target_period),
    copy_targets=functools.partial(copy, networks),
    keeps_observations=True,
  )


def copy(networks: loss_lib.Networks) -> None:
  """Copies all variables of the online network into the target."""
  for target, online in zip(networks.target.variables, networks.online.variables):
    target.assign(online)


def renew_target(networks: loss_lib.Networks, num_updates: tf.Tensor, *, period: int) -> None:
  """Copies after every `period`-th update, with `tf.where` because it is cheaper than `tf.cond`."""
  is_due = tf.equal(num_updates % period, 0)
  for target, online in zip(networks.target.variables, networks.online.variables):
    target.assign(tf.where(is_due, online, target))
