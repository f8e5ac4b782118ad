"""`seed-acme list`: prints configurations, agents and environments."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import shutil
import sys
import textwrap

import tyro

from seed_acme import types
from seed_acme.agents import registry as agent_registry
from seed_acme.configs import registry as configs
from seed_acme.envs import registry as environment_registry
from seed_acme.envs import suite
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote
from seed_acme.programs.command_line import command as command_lib

_TIMEOUT_S = 60.0  # for another interpreter's answer
_SHOWN = 110  # characters per line on a terminal of unknown width
_LEAST = 40  # characters per line beside a name, at least


@dataclasses.dataclass(frozen=True)
class ListArguments:
  """Show configurations, agents and environments, and what is installed.

  suite: show the ids of this suite instead, such as atari, envpool or dm_control; can be left out.
  json: print JSON.
  python: show what is installed under the interpreter at this path (actor.python).
  """

  suite: tyro.conf.Positional[str] = ''
  json: bool = False
  python: str = ''


def _known(python: str) -> list[suite.KnownEnvironments]:
  if interpreter.is_this_one(python):
    return environment_registry.known_environments()
  return remote.known_environments(python, _TIMEOUT_S)


def _ids(suite_name: str, python: str) -> list[str]:
  if not interpreter.is_this_one(python):
    return remote.known_ids(suite_name, python, _TIMEOUT_S)
  try:
    return environment_registry.known_ids(suite_name)
  except types.MissingPackage as error:
    raise types.UserError(
      f'{error}\nWhat another Python has: seed-acme list {suite_name} --python=PATH'
    ) from error


def show(arguments: ListArguments) -> command_lib.Answer:
  """Lists everything, or the ids of a suite; raises `UserError` if there is no such suite."""
  if arguments.suite:
    ids = _ids(arguments.suite, arguments.python)
    return command_lib.Answer({'suite': arguments.suite, 'ids': ids}, '\n'.join(ids))
  loaded = {name: configs.load(name) for name in configs.names()}
  agents = sorted(agent_registry.AGENTS)
  known = _known(arguments.python)
  of_configs = {
    name: f'{config.agent.agent} on {config.environment.id}, {config.total_steps:,} steps'
    for name, config in loaded.items()
  }
  of_environments = {environment.id: _described(environment) for environment in known}
  lines = [
    'Configurations (seed-acme train --config=NAME):',
    *columns(of_configs, _width()),
    f'Agents:\n  {", ".join(agents)}\nEnvironments (--config.environment.id=ID):',
    *columns(of_environments, _width()),
    'Ids of a suite: seed-acme list SUITE, such as atari, envpool or dm_control',
  ]
  records = [environment._asdict() for environment in known]
  record = {'configs': list(loaded), 'agents': agents, 'environments': records}
  return command_lib.Answer(record, '\n'.join(lines))


def _described(environment: suite.KnownEnvironments) -> str:
  state = 'installed' if environment.is_available else f'missing: {environment.install}'
  settings = f' (settings: {", ".join(environment.settings)})' if environment.settings else ''
  return f'{environment.description}{settings} [{state}]'


def columns(rows: Mapping[str, str], width: int | None) -> list[str]:
  """Returns lines `  NAME  TEXT`, with all texts in one column.

  width: line width at which texts wrap; None = one line each.
  """
  indent = 2 + max(map(len, rows)) + 2
  lines = []
  for name, text in rows.items():
    wrapped = [text] if width is None else _wrapped(text, max(_LEAST, width - indent))
    lines.append(f'  {name}'.ljust(indent) + wrapped[0])
    lines += [' ' * indent + line for line in wrapped[1:]]
  return lines


def _wrapped(text: str, width: int) -> list[str]:
  """Wraps text without breaking commands and addresses."""
  return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _width() -> int | None:
  """Returns the terminal's width; None without a terminal, so that `grep` finds whole lines."""
  return shutil.get_terminal_size((_SHOWN, 0)).columns if sys.stdout.isatty() else None
