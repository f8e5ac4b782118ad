"""Messages for tyro's parse errors, each with the bad value and how to write it.

The events come from `tyro._errors`, a private module; parsing.py works without it.
"""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import difflib
import operator
import os
import re
import shlex
from typing import Any

from seed_acme.agents import registry as agents_lib
from seed_acme.checks import near_names
from seed_acme.configs import registry
from seed_acme.programs.command_line import new_settings
from seed_acme.programs.command_line import options as options_lib

_AGENT = 'config.agent.'
_MAX_NEAR = 3
_MIN_RATIO = 0.6  # of `difflib`; below it two names have little in common
# Names that other programs use for fields which are called quite differently here.
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
# What other programs call to resume a run.
_RESUMES = ('load', 'restore', 'resume', 'resume_from', 'resume_from_checkpoint')
# Choices of earlier versions.
GONE = {
  'local_mt': (
    'local_mt, all nodes as threads of one process, is gone: single_process runs everything in '
    'one thread, which a debugger can follow'
  )
}


def describe(
  event: Any, options: Sequence[options_lib.Option], words: Sequence[str], command: str
) -> str | None:
  """Returns at most three lines on a `tyro._errors.ParseErrorEvent`; None for an unknown kind.

  options: all options of the command. words: the arguments that were parsed.
  """
  kind = type(event).__name__
  if kind == 'UnrecognizedArgs':
    lines = _unrecognized(event.tokens[0], options, words)
  elif kind == 'MissingArgs':
    lines = [_missing(event.missing_arguments[0].arg.display_name(), options, command)]
  elif kind == 'InvalidChoice':
    lines = [_invalid_choice(event.argument.display_name(), event.value, event.choices)]
  elif kind == 'BadValue':
    flag = event.argument.display_name()
    lines = [f'{flag} needs a value: write {flag}=VALUE']
  elif kind == 'InstantiationFailure' and event.argument is not None:
    lines = [_unreadable(event.argument.display_name(), event.message, options, words)]
  else:
    return None
  return '\n'.join([*lines, f'see: seed-acme {command} --help'])


def _unrecognized(
  given: str, options: Sequence[options_lib.Option], words: Sequence[str]
) -> list[str]:
  name, equals, value = given.partition('=')
  if not name.startswith('--'):
    return _of_word(given, options, words)
  lines = [f'unknown option {given}']
  wanted = name.strip('-').replace('-', '_')
  for option in options:
    if option.is_positional and option.name.rstrip('s') == wanted.rstrip('s'):
      return [*lines, f'write {value or "it"} without {name}{equals}']
  if wanted == _AGENT.rstrip('.') and value in agents_lib.AGENTS:
    return [*lines, agents_lib.how_to_choose(value)]
  agents = _agents_with(wanted.removeprefix(_AGENT)) if wanted.startswith(_AGENT) else []
  if agents and not any(option.group == wanted for option in options):
    return [*lines, f'that is a field of {" and ".join(agents)}']
  if wanted.removeprefix('config.') in new_settings.DICTIONARIES:
    return [f'{name} takes one setting each: write {_each(name, _values(name, words))}']
  names = {option.name for option in options}
  if wanted in _RESUMES and 'run_dir' in names:
    return [*lines, f'a run is resumed by --run_dir={value or "RUN"}, without --config']
  found = near(wanted, [option.name for option in options])
  return [*lines, 'did you mean ' + ', '.join(f'--{path}' for path in found)] if found else lines


def _agents_with(field: str) -> list[str]:
  """Returns the agents whose configuration has a (dotted) field, each with an example."""
  examples: dict[str, str] = {}
  for name in sorted(registry.names(), key=len):
    agent = registry.load(name).agent
    with contextlib.suppress(AttributeError):
      if not callable(operator.attrgetter(field)(agent)):
        examples.setdefault(agent.agent, name)
  return [f'{agent} (--config={name})' for agent, name in examples.items()]


def _of_word(word: str, options: Sequence[options_lib.Option], words: Sequence[str]) -> list[str]:
  """Explains a word that no option takes: a surplus value, or a name without its option."""
  before = [*words[: words.index(word)]] if word in words else []
  while len(before) > 1 and not before[-1].startswith('--'):
    before.pop()
  flag, equals, _ = before[-1].partition('=') if before else ('', '', '')
  for option in options:
    if not equals and flag.replace('-', '_') == f'--{option.name}'.replace('-', '_'):
      takes = 'no value' if option.is_switch else 'one value'
      if not option.is_switch or re.fullmatch(r'\d+|[Tt]rue|[Ff]alse', word):
        return [f'{word!r} is no argument: {flag} takes {takes}']
  return [f'{word!r} is no argument', *_instead_of_word(word, options)]


def _instead_of_word(word: str, options: Sequence[options_lib.Option]) -> list[str]:
  names = {option.name.partition('.')[0] for option in options}
  if not re.match(r'[\w./]*[A-Za-z]', word):
    return []
  if 'config' in names and not os.path.isdir(word):
    return [f'a configuration is chosen by {shlex.quote(f"--config={word}")}']
  return [f'a run is chosen by {shlex.quote(f"--run_dir={word}")}'] if 'run_dir' in names else []


def near(wanted: str, names: list[str]) -> list[str]:
  """Returns the dotted names that `wanted`, dotted or not, may stand for, best first."""
  inside = [name for name in names if f'{name}.'.startswith(f'{wanted}.')]
  around = [name for name in names if f'{wanted}.'.startswith(f'{name}.')]
  if inside or around:
    return (inside or around)[:_MAX_NEAR]
  ranked = []
  for index, name in enumerate(names):
    rank = _rank(wanted, name)
    if rank is not None:
      apart = -difflib.SequenceMatcher(None, wanted, name).ratio()
      ranked.append((rank, apart, index, name))
  ranked.sort()
  return [name for rank, _, _, name in ranked if rank == ranked[0][0]][:_MAX_NEAR]


def _rank(wanted: str, name: str) -> int | None:
  """Returns the rank of `name`, 0 for the most likely; None if it has little in common."""
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


def _missing(name: str, options: Sequence[options_lib.Option], command: str) -> str:
  kind = next((option.kind for option in options if option.name == name), str)
  choices = options_lib.choices(kind)
  one_of = f': one of {", ".join(choices)}' if choices else ''
  return f'{command} needs its {name}{one_of}, such as seed-acme {command} {[*choices, name][0]}'


def _invalid_choice(flag: str, value: str, choices: Sequence[str]) -> str:
  if value in GONE:
    return f'{flag}={GONE[value]}'
  choices = [choice for choice in choices if choice]  # '' = not given
  hint = near_names.hint(value, choices)
  return f'{flag} cannot be {value!r}{hint or ":"} choose one of {", ".join(choices)}'


def _unreadable(
  flag: str, reason: str, options: Sequence[options_lib.Option], words: Sequence[str]
) -> str:
  values = _values(flag, words)
  shown = ' '.join(values)
  if 'key-value pairs' in reason:
    return _no_pairs(flag, values)
  if reason.startswith('invalid literal for int'):
    return f'{flag} ({shown}) must be a whole number{_whole(shown)}'
  if 'could not convert string to float' in reason:
    return f'{flag} ({shown}) must be a number'
  split = [part for value in values for part in re.split(r'[,\s\[\]()]+', value) if part]
  if split != list(values):
    return f'{flag} cannot be {shown!r}: write its values apart, {flag} {" ".join(split)}'
  form = next((option.flag for option in options if f'--{option.name}' == flag), f'{flag}=VALUE')
  return f'{flag} cannot be {shown!r}: write {form}'


def _values(flag: str, words: Sequence[str]) -> Sequence[str]:
  """Returns the values that the command line gives to a flag; the last occurrence counts."""
  for i, argument in reversed(list(enumerate(words))):
    name, equals, value = argument.partition('=')
    if name.replace('-', '_') != flag.replace('-', '_'):
      continue
    if equals:
      return [value]
    rest = words[i + 1 :]
    end = next((j for j, text in enumerate(rest) if text.startswith('--')), len(rest))
    return rest[:end]
  return []


def _each(flag: str, pairs: Sequence[str]) -> str:
  """Writes names and values in turn as one option each."""
  named = [f'{flag}.{key}={value}' for key, value in zip(pairs[::2], pairs[1::2])]
  return ' '.join(named) or f'{flag}.NAME=VALUE'


def _no_pairs(flag: str, values: Sequence[str]) -> str:
  pairs = ' '.join(value.replace('=', ' ').replace(':', ' ') for value in values)
  if len(pairs.split()) % 2:
    pairs += ' VALUE'
  return (
    f'{flag} takes names and values in turn, not {" ".join(values)!r}: '
    f'write {flag} {pairs or "NAME VALUE"}'
  )


def _whole(text: str) -> str:
  """Returns `, such as 1000000` if a whole number was written in another way."""
  try:
    number = float(text.replace(',', ''))
  except ValueError:
    return ''
  return f', such as {int(number)}' if number.is_integer() else ''
