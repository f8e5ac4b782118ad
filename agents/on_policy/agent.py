"""The configurable on-policy agent, as the runtime sees it."""

from __future__ import annotations

from seed_acme.agents import base
from seed_acme.agents.on_policy import config as on_policy_config
from seed_acme.agents.on_policy import learner
from seed_acme.agents.on_policy import loss
from seed_acme.agents.on_policy import network
from seed_acme.agents.on_policy import policy


def replay_spec(config: on_policy_config.OnPolicyConfig) -> base.ReplaySpec:
  """A queue: every unroll is learnt in one update and then gone."""
  del config
  return base.ReplaySpec(kind='queue')


AGENT = base.Agent(
  make_network=network.make_network,
  select_actions=policy.select_actions,
  replay_spec=replay_spec,
  loss=loss.loss,
  initial_priorities=None,
  after_update=None,
  passes=learner.passes,
  num_uniforms=policy.num_uniforms,
)
