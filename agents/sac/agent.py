"""The SAC agent (Haarnoja et al. 2018), as the runtime sees it."""

from __future__ import annotations

import functools

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.sac import config as sac_config
from seed_acme.agents.sac import learner
from seed_acme.agents.sac import network
from seed_acme.agents.sac import policy


def make_agent(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  config: sac_config.SACConfig,
) -> agent_lib.Agent:
  """Makes the SAC agent. Only the policy acts; the critics are needed in training alone."""
  distribution = network.make_distribution(spec, config)
  make_critics = functools.partial(network.make_critics, spec, network_config)

  def make_learning(acting: core.RecurrentNetwork) -> agent_lib.Learning:
    return learner.make_learning(network.policy_of(acting), make_critics, distribution, config)

  acting = agent_lib.Acting(
    make=functools.partial(network.make_policy, spec, network_config, distribution, config),
    select_actions=functools.partial(
      policy.select_actions, distribution=distribution, action_spec=spec.action, config=config
    ),
    num_uniforms=distribution.num_uniforms,
  )
  return agent_lib.Agent(acting, make_learning)
