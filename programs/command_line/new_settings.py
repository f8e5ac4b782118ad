"""Settings that a configuration leaves at their defaults, given on the command line by name.

tyro makes an option of every name that a dictionary has, and of no other.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from seed_acme import config as config_lib

_DICTIONARIES = ('environment.settings', 'network.torso_settings')


def add(default: Any, argv: list[str]) -> tuple[Any, list[str]]:
  """The record with the settings that `--config.environment.settings.NAME=VALUE` adds to it, and
  the other arguments. Whether an environment has such a setting is checked with all others.

  default: a record of arguments; one without a configuration is returned as it is.
  """
  config = getattr(default, 'config', None)
  if not isinstance(config, config_lib.ExperimentConfig):
    return default, argv
  rest = []
  for argument in argv:
    path, name, text = _split(argument)
    if not path:
      rest.append(argument)
      continue
    part, field = path.split('.')
    record = getattr(config, part)
    known = getattr(record, field)
    if name in known:  # has its type there, which tyro holds the value against
      rest.append(argument)
      continue
    record = dataclasses.replace(record, **{field: {**known, name: _value(text)}})
    config = dataclasses.replace(config, **{part: record})
  return dataclasses.replace(default, config=config), rest


def _split(argument: str) -> tuple[str, str, str]:
  """`--config.environment.settings.rows=10` -> its dictionary, name and value; else '' each."""
  flag, equals, text = argument.partition('=')
  for path in _DICTIONARIES:
    name = flag.removeprefix(f'--config.{path}.')
    if equals and name != flag and name.isidentifier():
      return path, name, text
  return '', '', ''


def _value(text: str) -> config_lib.Setting:
  """What it reads as: True or False, a number, else itself."""
  if text in ('True', 'False'):
    return text == 'True'
  for kind in (int, float):
    try:
      return kind(text)
    except ValueError:
      continue
  return text
