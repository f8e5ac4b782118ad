"""What a command line says of the configuration, for the command that asks for it."""

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
  """What `--config.FIELD=VALUE` is parsed into."""

  config: tyro.conf.FlagConversionOff[config_lib.ExperimentConfig]


class Given(NamedTuple):
  """`--config=NAME` and `--config.FIELD=VALUE`.

  A command asks for its configuration when it knows what they change: that of a run folder, say.
  overrides: the words that are none of the command's own arguments.
  """

  command: command_lib.Command
  line: line_lib.Line
  overrides: tuple[str, ...]

  @property
  def name(self) -> str:
    """Of the configuration; '' = none is given."""
    return self.line.config

  @property
  def fields(self) -> frozenset[str]:
    """Dotted names of the fields that are given."""
    return frozenset(
      word.partition('=')[0].removeprefix(_PREFIX).replace('-', '_')
      for word in self.overrides
      if word.startswith(_PREFIX)
    )

  def require_name(self, why: str = '') -> None:
    """Raises `types.UserError` where no configuration is named."""
    if not self.name:
      raise types.UserError(f'{self.command.name} needs --config=NAME_OR_PATH{why}')

  def trust(self, everything: bool) -> trust_lib.Trust:
    """In the code that a run folder names. What the command line names itself is trusted, too."""
    return trust_lib.Trust(everything, self.fields)

  def config(self, base: config_lib.ExperimentConfig | None = None) -> config_lib.ExperimentConfig:
    """base: what the overrides change; None = the configuration that is named, or the command's."""
    base = base or registry.load(self.name or self.command.config)
    base, words = new_settings.add(base, self.overrides)
    default = Overrides(base)
    kind = with_config(self.command.load(self.command.arguments))
    return parsing.parse(
      Overrides, words, self.command.name, default, all_of=kind, typed=self.line.words
    ).config


def split(command: command_lib.Command, line: line_lib.Line) -> tuple[Any, Given]:
  """The command's own arguments, and what is given of the configuration."""
  kind = command.load(command.arguments)
  arguments, rest = parsing.parse(kind, line.words, command.name, return_unknown_args=True)
  return arguments, Given(command, line, tuple(rest))


def with_config(kind: type) -> type:
  """The record of a command's own arguments with the configuration beside them."""
  return dataclasses.make_dataclass(
    kind.__name__,
    [('config', tyro.conf.FlagConversionOff[config_lib.ExperimentConfig])],
    bases=(kind,),
    namespace={'__doc__': kind.__doc__},
    frozen=True,
    kw_only=True,
  )


def described(command: command_lib.Command, name: str) -> tuple[type, Any]:
  """The record of all arguments, and something with the values that they have, for help and
  completion. name: of the configuration; '' = the command's."""
  kind = command.load(command.arguments)
  if not command.config:
    return kind, None
  config = registry.load(name or command.config)
  return with_config(kind), python_types.SimpleNamespace(config=config)
