"""The network of the V-trace agent: an actor-critic, and the entropy weight if it is learnt."""

from __future__ import annotations

from typing import Any

import sonnet as snt
import tensorflow as tf

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.vtrace import config as vtrace_config
from seed_acme.networks import build
from seed_acme.ops import lagrange


def make_network(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  config: vtrace_config.VTraceConfig,
) -> core.RecurrentNetwork:
  """With `target_entropy` set the network also holds the parameter of the entropy weight."""
  num_params = types.num_discrete_actions(spec)
  network = build.make_actor_critic(network_config, spec, num_params)
  if config.target_entropy is None:
    return network
  parameter = lagrange.initial_parameter(
    config.entropy_cost,
    speed=config.entropy_adjustment_speed,
    weight_name='agent.entropy_cost',
    speed_name='agent.entropy_adjustment_speed',
  )
  return EntropyWeightedNetwork(network, parameter)


class EntropyWeightedNetwork(snt.Module):
  """Any network, and beside it one trainable number, p of the entropy weight exp(k p).

  It lives here so that the one optimiser, the checkpoints and the published copies carry it
  without knowing of it.
  """

  def __init__(
    self, network: core.RecurrentNetwork, initial_parameter: float, name: str = 'entropy_weighted'
  ):
    super().__init__(name=name)
    self._network = network
    self.entropy_parameter = tf.Variable(
      initial_parameter, dtype=tf.float32, name='entropy_parameter'
    )

  @property
  def variables(self) -> tuple[tf.Variable, ...]:
    """The inner network's, in its order, then the entropy parameter."""
    return (*self._network.variables, self.entropy_parameter)

  @property
  def trainable_variables(self) -> tuple[tf.Variable, ...]:
    """The inner network's, in its order, then the entropy parameter."""
    return (*self._network.trainable_variables, self.entropy_parameter)

  def initial_state(self, batch_size: Any) -> types.Nest:
    """As the inner network."""
    return self._network.initial_state(batch_size)

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """As the inner network."""
    return self._network(inputs, state)

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """As the inner network."""
    return self._network.unroll(inputs, state)
