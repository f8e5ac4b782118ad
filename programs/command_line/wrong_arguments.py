"""What tyro says of wrong arguments, in our words: the bad value, and how it is written."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import difflib
import os
import re
import shlex
from typing import Any

from seed_acme.programs.front_end import launches

_MAX_NEAR = 3
_MIN_RATIO = 0.6  # of `difflib`, below which two names have little in common
_UNRECOGNIZED = 'Unrecognized options: '
# Words of other programs whose name here does not resemble them.
_OTHER_WORDS = {
  'env': 'environment.id',
  'env_id': 'environment.id',
  'game': 'environment.id',
  'epochs': 'num_epochs',
  'gamma': 'discount',
  'hidden_sizes': 'mlp_sizes',
  'num_envs': 'environments_per_actor',
  'num_workers': 'num_actors',
  'total_timesteps': 'total_steps',
  'workers': 'num_actors',
}


def describe(boxed: str, kind: type, default: Any, argv: list[str], command: str) -> str:
  """boxed: the error as tyro prints it. kind, default: of the record that `argv` was parsed into,
  None = it has no default. At most three lines.
  """
  message = _first_section(boxed)
  if message.startswith(_UNRECOGNIZED):
    lines = _unrecognized(_first_unknown(message, argv), list(_options(kind, default)))
  else:
    lines = [_unreadable(message, argv, command)]
  return '\n'.join([*lines, f'see: seed-acme {command} --help'])


def _first_section(boxed: str) -> str:
  """The text of the first part of the box, on one line."""
  plain = re.sub(r'\x1b\[[0-9;]*m', '', boxed)
  lines = [line.strip('│ ') for line in plain.splitlines() if not line.startswith('╭')]
  sections: list[list[str]] = [[]]
  for line in lines:
    if re.fullmatch('[─╰╯-]{4,}', line):
      sections.append([])
    else:
      sections[-1].append(line)
  # Where tyro draws with plain letters, its title is a section of its own.
  message = ' '.join(sections[0 if '╭' in plain else min(1, len(sections) - 1)]).split()
  return ' '.join(message) or 'wrong arguments'


def _options(kind: Any, value: Any, path: str = '') -> Iterator[tuple[str, bool]]:
  """(dotted name, whether it is written without `--`) of every argument."""
  for field in dataclasses.fields(kind):
    inner = field.default if value is None else getattr(value, field.name)
    name = f'{path}{field.name}'
    if dataclasses.is_dataclass(inner):
      yield from _options(type(inner), inner, f'{name}.')
    elif isinstance(inner, dict) and inner:
      yield from ((f'{name}.{key}', False) for key in inner)
    else:
      yield name, 'Positional' in str(field.type)


def _first_unknown(message: str, argv: list[str]) -> str:
  """As it was given; the box breaks long ones into lines."""
  listed = message.removeprefix(_UNRECOGNIZED)
  compact = ''.join(listed.split())
  found = [text for text in argv if text and compact.startswith(''.join(text.split()))]
  return max(found, key=len, default=listed.split(', ')[0])


def _unrecognized(given: str, options: list[tuple[str, bool]]) -> list[str]:
  name, equals, value = given.partition('=')
  if not name.startswith('--'):
    return [f'{given!r} is no argument', *_instead_of_word(given, options)]
  lines = [f'unknown option {given}']
  wanted = name.strip('-').replace('-', '_')
  by_itself = [
    path
    for path, is_positional in options
    if is_positional and path.rstrip('s') == wanted.rstrip('s')
  ]
  if by_itself:
    return [*lines, f'write {value or "it"} without {name}{equals}']
  found = near(wanted, [path for path, _ in options])
  return [*lines, 'did you mean ' + ', '.join(f'--{path}' for path in found)] if found else lines


def _instead_of_word(word: str, options: list[tuple[str, bool]]) -> list[str]:
  names = {path.partition('.')[0] for path, _ in options}
  if not re.match(r'[\w./]*[A-Za-z]', word):
    return []
  if 'config' in names and not os.path.isdir(word):
    return [f'a configuration is chosen by {shlex.quote(f"--config={word}")}']
  return [f'a run is chosen by {shlex.quote(f"--run_dir={word}")}'] if 'run_dir' in names else []


def near(wanted: str, names: list[str]) -> list[str]:
  """The dotted names that `wanted`, dotted or not, may stand for, best first."""
  below = [name for name in names if name.startswith(f'{wanted}.')]
  if below:
    return below[:_MAX_NEAR]
  ranked = []
  for index, name in enumerate(names):
    rank = _rank(wanted, name)
    if rank is not None:
      apart = -difflib.SequenceMatcher(None, wanted, name).ratio()
      ranked.append((rank, apart, index, name))
  ranked.sort()
  return [name for rank, _, _, name in ranked if rank == ranked[0][0]][:_MAX_NEAR]


def _rank(wanted: str, name: str) -> int | None:
  """How sure it is that `name` is meant, 0 the surest; None if it has little in common."""
  asked, own = (path.rpartition('.')[2].rstrip('_') for path in (wanted, name))
  if asked == own or f'.{name}'.endswith(f'.{_OTHER_WORDS.get(asked, "?")}'):
    return 0
  words = own.split('_')
  if len(words) > 1 and asked == ''.join(word[:1] for word in words):
    return 1
  if difflib.SequenceMatcher(None, asked, own).ratio() >= _MIN_RATIO + 0.2:
    return 2
  if set(asked.split('_')) <= set(words):
    return 3
  return 4 if difflib.SequenceMatcher(None, asked, own).ratio() >= _MIN_RATIO else None


def _unreadable(message: str, argv: list[str], command: str) -> str:
  missing = re.match(r'Missing from .*?: \{(.*)\} (\w+) \(required\)', message)
  if missing:
    return (
      f'{command} needs its {missing[2]}: one of '
      f'{", ".join(missing[1].split(","))}, such as '
      f'seed-acme {command} {missing[1].split(",")[0]}'
    )
  if re.match(r"invalid choice '?local_mt'? ", message):
    return f'--launch={launches.THREADS_ARE_GONE}'
  parsing = re.match(r'Error parsing (--\S+): (.*)', message)
  if not parsing:
    return message
  flag, reason = parsing[1], parsing[2]
  values = _values(flag, argv)
  shown = ' '.join(values)
  if 'key-value pairs' in reason:
    return _no_pairs(flag, values)
  if reason.startswith('invalid literal for int'):
    return f'{flag} ({shown}) must be a whole number{_whole(shown)}'
  if reason.startswith('could not convert string to float'):
    return f'{flag} ({shown}) must be a number'
  if reason.startswith('Could not find valid parse'):
    split = [part for value in values for part in re.split(r'[,\s\[\]()]+', value) if part]
    apart = f': write its values apart, {flag} {" ".join(split)}' if split != values else ''
    return f'{flag} cannot be {shown!r}{apart}'
  return message


def _values(flag: str, argv: list[str]) -> list[str]:
  """What the command line gives to a flag; the last time counts."""
  for i, argument in reversed(list(enumerate(argv))):
    name, equals, value = argument.partition('=')
    if name.replace('-', '_') != flag.replace('-', '_'):
      continue
    if equals:
      return [value]
    rest = argv[i + 1 :]
    end = next((j for j, text in enumerate(rest) if text.startswith('--')), len(rest))
    return rest[:end]
  return []


def _no_pairs(flag: str, values: list[str]) -> str:
  pairs = ' '.join(value.replace('=', ' ').replace(':', ' ') for value in values)
  if len(pairs.split()) % 2:
    pairs += ' VALUE'
  return (
    f'{flag} takes names and values in turn, not {" ".join(values)!r}: '
    f'write {flag} {pairs or "NAME VALUE"}'
  )


def _whole(text: str) -> str:
  """`, such as 1000000` where a whole number was written in another way."""
  try:
    number = float(text.replace(',', ''))
  except ValueError:
    return ''
  return f', such as {int(number)}' if number.is_integer() else ''
