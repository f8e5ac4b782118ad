"""Dictionary settings that a configuration does not mention, given on the command line by name.

tyro makes options only for the keys that a dictionary already has.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

from seed_acme import config as config_lib

DICTIONARIES = ('environment.settings', 'network.torso_settings')


def add(
  config: config_lib.ExperimentConfig, words: Sequence[str]
) -> tuple[config_lib.ExperimentConfig, list[str]]:
  """Returns the configuration with the settings that `--config.environment.settings.NAME=VALUE`
  adds, and the other words. Validation checks later whether the environment has such a setting."""
  rest = []
  for argument in words:
    path, name, text = _split(argument)
    if not path:
      rest.append(argument)
      continue
    part, field = path.split('.')
    record = getattr(config, part)
    known = getattr(record, field)
    if name in known:  # tyro checks the value against the type that it has there
      rest.append(argument)
      continue
    record = dataclasses.replace(record, **{field: {**known, name: _value(text)}})
    config = dataclasses.replace(config, **{part: record})
  return config, rest


def _split(argument: str) -> tuple[str, str, str]:
  """Splits `--config.environment.settings.rows=10` into dictionary, name and value, or ''."""
  flag, equals, text = argument.partition('=')
  for path in DICTIONARIES:
    name = flag.removeprefix(f'--config.{path}.')
    if equals and name != flag and name.isidentifier():
      return path, name, text
  return '', '', ''


def _value(text: str) -> config_lib.Setting:
  """Parses a value: True or False, a number, or else a string."""
  if text in ('True', 'False'):
    return text == 'True'
  for kind in (int, float):
    try:
      return kind(text)
    except ValueError:
      continue
  return text
