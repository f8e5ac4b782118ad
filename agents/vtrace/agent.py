"""The V-trace agent (IMPALA, Espeholt et al. 2018), as the runtime sees it."""

from __future__ import annotations

from seed_acme.agents import base
from seed_acme.agents.vtrace import config as vtrace_config
from seed_acme.agents.vtrace import loss
from seed_acme.agents.vtrace import network
from seed_acme.agents.vtrace import policy


def replay_spec(config: vtrace_config.VTraceConfig) -> base.ReplaySpec:
  """A queue: V-trace corrects for a few updates of lag, not for old data."""
  del config
  return base.ReplaySpec(kind='queue')


AGENT = base.Agent(
  make_network=network.make_network,
  select_actions=policy.select_actions,
  replay_spec=replay_spec,
  loss=loss.loss,
  initial_priorities=None,
  after_update=None,
  passes=None,
  num_uniforms=policy.num_uniforms,
)
