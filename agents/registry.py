"""All agents, by the name that a configuration gives."""

from __future__ import annotations

import difflib

from seed_acme import types
from seed_acme.agents import base
from seed_acme.agents.on_policy import agent as on_policy
from seed_acme.agents.r2d2 import agent as r2d2
from seed_acme.agents.vtrace import agent as vtrace

AGENTS: dict[str, base.Agent] = {
  'on_policy': on_policy.AGENT,
  'r2d2': r2d2.AGENT,
  'vtrace': vtrace.AGENT,
}


def get(name: str) -> base.Agent:
  """The agent called `name`."""
  if name not in AGENTS:
    close = difflib.get_close_matches(name, AGENTS, n=3, cutoff=0.5)
    hint = f'; did you mean {" or ".join(close)}?' if close else ''
    raise types.UserError(f"agent ('{name}') is not known{hint}. Choose one of {', '.join(AGENTS)}")
  return AGENTS[name]
