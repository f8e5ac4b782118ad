"""`seed-acme list`: configurations, agents, environments."""

from __future__ import annotations

import dataclasses
import json

from seed_acme.agents import registry as agent_registry
from seed_acme.configs import registry as configs
from seed_acme.envs import registry as environment_registry
from seed_acme.envs import suite
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote

_TIMEOUT_S = 60.0  # for another interpreter's answer


@dataclasses.dataclass(frozen=True)
class ListArguments:
  """Show configurations, agents and environments, and what is installed.

  json: print JSON.
  python: show what there is under the interpreter at this path (actor.python).
  """

  json: bool = False
  python: str = ''


def _known(python: str) -> list[suite.KnownEnvironments]:
  if interpreter.is_this_one(python):
    return environment_registry.known_environments()
  return remote.known_environments(python, _TIMEOUT_S)


def show(arguments: ListArguments) -> int:
  """Prints it; returns the exit code."""
  loaded = {name: configs.load(name) for name in configs.names()}
  agents = sorted(agent_registry.AGENTS)
  known = _known(arguments.python)
  if arguments.json:
    records = [environment._asdict() for environment in known]
    print(json.dumps({'configs': list(loaded), 'agents': agents, 'environments': records}))
    return 0
  print('Configurations (seed-acme train --config=NAME):')
  for name, config in loaded.items():
    print(
      f'  {name:24} {config.agent.agent} on {config.environment.id}, {config.total_steps:,} steps'
    )
  print(f'Agents:\n  {", ".join(agents)}\nEnvironments (--config.environment.id=ID):')
  for environment in known:
    state = 'installed' if environment.is_available else f'missing: {environment.install}'
    settings = f' (settings: {", ".join(environment.settings)})' if environment.settings else ''
    print(f'  {environment.id:24} {environment.description}{settings} [{state}]')
  return 0
