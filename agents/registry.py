"""All agents by their name in a configuration. Importing this module does not load TensorFlow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from seed_acme import config as config_lib
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
# The type of configuration that each of them takes, and a configuration that has one.
_CONFIGS: dict[str, tuple[str, str]] = {
  'on_policy': ('seed_acme.agents.on_policy.config:OnPolicyConfig', 'catch_vtrace'),
  'r2d2': ('seed_acme.agents.r2d2.config:R2D2Config', 'catch_r2d2'),
  'sac': ('seed_acme.agents.sac.config:SACConfig', 'pendulum_sac'),
}


def check(name: str) -> None:
  """Raises `types.UserError` if `name` is neither an agent's name nor a dotted path."""
  if name not in AGENTS and ':' not in name:
    raise types.UserError(
      f"agent ('{name}') is not known{near_names.hint(name, AGENTS)}. "
      f'Choose one of {", ".join(AGENTS)}, or package.module:make_agent of your own'
    )


def check_config(config: config_lib.AgentConfig) -> None:
  """Raises `types.UserError` if the named agent does not exist or takes other configurations."""
  check(config.agent)
  if config.agent not in _CONFIGS:
    return
  module, _, name = _CONFIGS[config.agent][0].partition(':')
  kind = getattr(importlib.import_module(module), name)
  if not isinstance(config, kind):
    raise types.UserError(
      f"agent.agent ('{config.agent}') needs {kind.__name__}, and this configuration has "
      f'{type(config).__name__}: {how_to_choose(config.agent)}'
    )


def how_to_choose(name: str) -> str:
  """Says how to configure a named agent."""
  path, example = _CONFIGS[name]
  return (
    f'start from a configuration of that agent, such as --config={example}, or set '
    f'agent={path.partition(":")[2]}(...) in a configuration of your own'
  )


def get(name: str) -> agent_lib.MakeAgent:
  """Returns `make_agent` of a named agent, or the user's own from `package.module:make_agent`."""
  check(name)
  if name in AGENTS:
    return importlib.import_module(AGENTS[name]).make_agent
  return dotted_path.load_object(name, 'agent.agent')
