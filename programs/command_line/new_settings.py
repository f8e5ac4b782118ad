"""Dictionary settings that a configuration does not mention, given on the command line.

tyro makes options only for the keys that a dictionary already has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import dataclasses
import itertools

from seed_acme import config as config_lib
from seed_acme import types

DICTIONARIES = ('environment.settings', 'network.torso_settings')


def add(
  config: config_lib.ExperimentConfig, words: Sequence[str]
) -> tuple[config_lib.ExperimentConfig, list[str]]:
  """Returns the configuration with the settings that `--config.environment.settings.NAME=VALUE`
  adds, and the other words. Validation checks later whether the environment has such a setting.

  Raises `types.UserError` for a new setting `true` or `false`, which would be a string.
  """
  for name, text in _pairs(words):
    _value(name, text)
  rest: list[str] = []
  for argument in words:
    path, name, text = _split(argument)
    if not path:
      rest.append(argument)
      continue
    part, field = path.split('.')
    record = getattr(config, part)
    known = getattr(record, field)
    is_number = type(known.get(name)) is int and _is_fraction(text)
    if name in known and not is_number:  # tyro checks it against the type that it has there
      rest.append(argument)
      continue
    flag = f'--config.{path}.{name}='
    rest = [earlier for earlier in rest if not earlier.startswith(flag)]  # the last one counts
    record = dataclasses.replace(record, **{field: {**known, name: _value(name, text)}})
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


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
  """Returns the names and values of `--config.environment.settings rows 10 columns 5`."""
  for path in DICTIONARIES:
    flag = f'--config.{path}'
    if flag in words:
      after = words[words.index(flag) + 1 :]
      given = list(itertools.takewhile(lambda word: not word.startswith('--'), after))
      yield from zip(given[::2], given[1::2])


def _is_fraction(text: str) -> bool:
  """Whether the text is a number that is not whole, as that of a configuration may become."""
  try:
    return float(text) % 1 > 0  # False for NaN and infinities
  except ValueError:
    return False


def _value(name: str, text: str) -> config_lib.Setting:
  """Parses the value of a setting: True or False, a number, or else a string."""
  if text.lower() in ('true', 'false') and text != text.capitalize():
    raise types.UserError(
      f'the setting {name} ({text!r}) would be a string: write {text.capitalize()}'
    )
  if text in ('True', 'False'):
    return text == 'True'
  for kind in (int, float):
    try:
      return kind(text)
    except ValueError:
      continue
  return text
