"""The configuration as a command line gives it, for commands that take one."""

from __future__ import annotations

import dataclasses
import types as python_types
from typing import Any, NamedTuple

import tyro

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.configs import registry
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import line as line_lib
from seed_acme.programs.command_line import new_settings
from seed_acme.programs.command_line import parsing
from seed_acme.storage import trust as trust_lib

_PREFIX = '--config.'


@dataclasses.dataclass(frozen=True)
class Overrides:
  """The record that `--config.FIELD=VALUE` is parsed into."""

  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]


class Given(NamedTuple):
  """`--config=NAME` and `--config.FIELD=VALUE`.

  The command builds its configuration once it knows which one they change, such as a run folder's.
  overrides: the words that are none of the command's own arguments.
  """

  command: command_lib.Command
  line: line_lib.Line
  overrides: tuple[str, ...]

  @property
  def name(self) -> str:
    """The name of the configuration; '' = none is given."""
    return self.line.config

  @property
  def fields(self) -> frozenset[str]:
    """Dotted names of the fields that the command line sets."""
    return frozenset(
      word.partition('=')[0].removeprefix(_PREFIX).replace('-', '_')
      for word in self.overrides
      if word.startswith(_PREFIX)
    )

  def require_name(self) -> None:
    """Raises `types.UserError` if no configuration is named. For commands with `needs_config`."""
    if not self.name:
      raise types.UserError(f'{self.command.name}: --config {self.command.needs_config}')

  def trust(self, everything: bool) -> trust_lib.Trust:
    """Returns which code named by a run folder may be imported.

    Code that the command line names itself is always trusted.
    """
    return trust_lib.Trust(everything, self.fields)

  def config(self, base: config_lib.ExperimentConfig | None = None) -> config_lib.ExperimentConfig:
    """Returns the configuration with the overrides.

    base: the configuration that they change; None = the one that is named, or the command's
      default.
    """
    base = base or registry.load(self.name or self.command.config)
    base, words = new_settings.add(base, self.overrides)
    default = Overrides(base)
    kind = with_config(self.command.load(self.command.arguments))
    return parsing.parse(
      Overrides, words, self.command.name, default, all_of=kind, typed=self.line.words
    ).config


def split(command: command_lib.Command, line: line_lib.Line) -> tuple[Any, Given]:
  """Returns the command's own arguments, and what the line gives of the configuration."""
  kind = command.load(command.arguments)
  arguments, rest = parsing.parse(kind, line.words, command.name, return_unknown_args=True)
  return arguments, Given(command, line, tuple(rest))


def with_config(kind: type) -> type:
  """Returns a command's argument record extended by a field for the configuration."""
  return dataclasses.make_dataclass(
    kind.__name__,
    [('config', tyro.conf.FlagConversionOff[config_lib.ExperimentConfig])],
    bases=(kind,),
    namespace={'__doc__': kind.__doc__},
    frozen=True,
    kw_only=True,
  )


def described(command: command_lib.Command, name: str) -> tuple[type, Any]:
  """Returns the type of all arguments and an object with their defaults, for help and completion.

  name: of the configuration; '' = the command's default.
  """
  kind = command.load(command.arguments)
  if not command.config:
    return kind, None
  config = registry.load(name or command.config)
  return with_config(kind), python_types.SimpleNamespace(config=config)
