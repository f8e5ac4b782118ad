"""The network of R2D2: the one that acts and learns, and its target copy."""

from __future__ import annotations

from typing import Any

import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.networks import build


def make_network(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  config: r2d2_config.R2D2Config,
) -> core.RecurrentNetwork:
  """Two networks of the same build; the target starts as a copy."""
  del config
  with tf.name_scope('online'):
    online = build.make_q_network(network_config, spec)
  with tf.name_scope('target'):
    target = build.make_q_network(network_config, spec)
  network = OnlineAndTarget(online, target)
  network.copy_to_target()
  return network


class OnlineAndTarget(snt.Module):
  """Acts and unrolls as `online`; `target` bootstraps, and only `copy_to_target` changes it.

  Both are variables of one network, so that checkpoints carry the target too.
  """

  def __init__(
    self,
    online: core.RecurrentNetwork,
    target: core.RecurrentNetwork,
    name: str = 'online_and_target',
  ):
    super().__init__(name=name)
    self.online = online
    self.target = target

  @property
  def variables(self) -> tuple[tf.Variable, ...]:
    """The online network's, then the target's."""
    return (*self.online.variables, *self.target.variables)

  @property
  def trainable_variables(self) -> tuple[tf.Variable, ...]:
    """The online network's."""
    return tuple(self.online.trainable_variables)

  def copy_to_target(self) -> None:
    """Hard copy of all variables."""
    for target, online in zip(self.target.variables, self.online.variables):
      target.assign(online)

  def initial_state(self, batch_size: Any) -> types.Nest:
    """As the online network."""
    return self.online.initial_state(batch_size)

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """As the online network."""
    return self.online(inputs, state)

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """As the online network."""
    return self.online.unroll(inputs, state)
