"""The R2D2 agent (Kapturowski et al. 2019), as the runtime sees it."""

from __future__ import annotations

import functools

from seed_acme import agent as agent_lib
from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import learner
from seed_acme.agents.r2d2 import loss
from seed_acme.agents.r2d2 import policy
from seed_acme.networks import build


def make_agent(
  spec: types.EnvironmentSpec,
  network_config: config_lib.NetworkConfig,
  config: r2d2_config.R2D2Config,
) -> agent_lib.Agent:
  """Makes the R2D2 agent: one Q network acts, and a second one, its target, only bootstraps."""
  num_actions = types.num_discrete_actions(spec)  # raises if the actions are not discrete
  make_network = functools.partial(build.make_q_network, network_config, spec)
  select_actions = functools.partial(policy.select_actions, num_actions=num_actions, config=config)

  def make_learning(online: core.RecurrentNetwork) -> agent_lib.Learning:
    return learner.make_learning(online, make_network(), config)

  return agent_lib.Agent(
    acting=agent_lib.Acting(
      make=make_network, select_actions=select_actions, num_uniforms=policy.NUM_UNIFORMS
    ),
    make_learning=make_learning,
    initial_priorities=functools.partial(loss.initial_priorities, config=config),
  )
