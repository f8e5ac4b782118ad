"""The R2D2 agent (Kapturowski et al. 2019), as the runtime sees it."""

from __future__ import annotations

from seed_acme.agents import base
from seed_acme.agents.r2d2 import config as r2d2_config
from seed_acme.agents.r2d2 import learner
from seed_acme.agents.r2d2 import loss
from seed_acme.agents.r2d2 import network
from seed_acme.agents.r2d2 import policy


def replay_spec(config: r2d2_config.R2D2Config) -> base.ReplaySpec:
  """A memory, drawn from by priority or uniformly."""
  return base.ReplaySpec(kind=config.replay, memory=config)


AGENT = base.Agent(
  make_network=network.make_network,
  select_actions=policy.select_actions,
  replay_spec=replay_spec,
  loss=loss.loss,
  initial_priorities=loss.initial_priorities,
  after_update=learner.after_update,
  passes=None,
  num_uniforms=policy.num_uniforms,
)
