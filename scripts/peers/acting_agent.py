"""An agent that acts as V-trace does and trains nothing, to measure what acting costs."""

from __future__ import annotations

import dataclasses
from typing import Any

import tensorflow as tf

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.on_policy import agent as on_policy


def make_agent(
  spec: types.EnvironmentSpec, network_config: config_lib.NetworkConfig, config: Any
) -> agent_lib.Agent:
  """Returns the on-policy agent, whose unrolls are recorded, batched and thrown away."""
  agent = on_policy.make_agent(spec, network_config, config)

  def make_learning(network: core.RecurrentNetwork) -> agent_lib.Learning:
    learning = agent.make_learning(network)

    def losses(batch: types.Nest, key: tf.Tensor, progress: tf.Tensor) -> types.LossOutput:
      del batch, key, progress
      variables = [v for objective in learning.objectives.values() for v in objective.variables]
      nothing = 0.0 * tf.add_n([tf.reduce_sum(variable) for variable in variables])
      return types.LossOutput(losses={'policy': nothing}, metrics={'loss/nothing': nothing})

    return dataclasses.replace(learning, losses=losses, of_row=None, watches=())

  return dataclasses.replace(agent, make_learning=make_learning)
