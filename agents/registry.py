"""All agents by their name in a configuration. Importing this module does not load TensorFlow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import near_names

if TYPE_CHECKING:
  from seed_acme import agent as agent_lib

# Where `make_agent` is defined; it is imported on use.
AGENTS: dict[str, str] = {
  'on_policy': 'seed_acme.agents.on_policy.agent',
  'r2d2': 'seed_acme.agents.r2d2.agent',
  'sac': 'seed_acme.agents.sac.agent',
}


def check(name: str) -> None:
  """Raises `types.UserError` if `name` is neither an agent's name nor a dotted path."""
  if name not in AGENTS and ':' not in name:
    raise types.UserError(
      f"agent ('{name}') is not known{near_names.hint(name, AGENTS)}. "
      f'Choose one of {", ".join(AGENTS)}, or package.module:make_agent of your own'
    )


def get(name: str) -> agent_lib.MakeAgent:
  """Returns `make_agent` of a named agent, or the user's own from `package.module:make_agent`."""
  check(name)
  if name in AGENTS:
    return importlib.import_module(AGENTS[name]).make_agent
  return dotted_path.load_object(name, 'agent.agent')
