"""The configurable on-policy agent, as the runtime sees it."""

from __future__ import annotations

import functools

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import network
from seed_acme.agents.on_policy import policy
from seed_acme.agents.on_policy import resolve


def make_agent(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  config: on_policy_config.OnPolicyConfig,
) -> agent_lib.Agent:
  """Makes the on-policy agent. Raises `types.UserError` for options that cannot be combined."""
  distribution = network.make_distribution(spec, config)
  return agent_lib.Agent(
    acting=agent_lib.Acting(
      make=functools.partial(network.make_network, spec, network_config, distribution, config),
      select_actions=functools.partial(policy.select_actions, distribution=distribution),
      num_uniforms=distribution.num_uniforms,
    ),
    make_learning=functools.partial(learner.make_learning, algorithm=resolve.algorithm(config)),
  )
