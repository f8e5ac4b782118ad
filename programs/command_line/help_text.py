"""The text of `seed-acme [COMMAND] --help`.

Without a command, it lists all commands. For a command, it shows the common options with a line or
two each, and the names of the option groups: `--help=GROUP` prints one of them, `--help=all`
everything.
"""

from __future__ import annotations

import shutil
import textwrap

from seed_acme import types
from seed_acme.checks import distribution
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import meanings
from seed_acme.programs.command_line import options as options_lib

ALL = 'all'
_CONFIG = 'config'
COMMON = tuple(
  f'{_CONFIG}.{name}'
  for name in (
    'total_steps',
    'seed',
    'num_actors',
    'environments_per_actor',
    'environment.id',
    'environment.settings',
    'network.torso',
    'network.mlp_sizes',
    'network.core',
    'agent.unroll_length',
    'agent.batch_size',
    'agent.discount',
    'agent.optimizer.learning_rate',
  )
)
_MAX_WIDTH = 100
_INDENT = 34  # column at which the meanings begin


def overview() -> str:
  """Returns the text of `seed-acme --help`, with the commands that run in this installation."""
  lines = ['usage: seed-acme COMMAND [--help] ...', '       seed-acme --version']
  group = ''
  for command in command_lib.every().values():
    if command.runs_beside_actors or not distribution.is_for_actors():
      lines += [] if command.group == group else ['', f'{command.group}:']
      lines.append(f'  {command.name:10} {command.summary}')
      group = command.group
  return '\n'.join(lines)


def describe(kind: type, default: object, command: str, asked: str) -> str:
  """Returns the help of one command.

  kind, default: as `given.described` returns them. asked: '' = the common options; `all`; or the
    name of a group or a field.
  """
  options, groups = options_lib.options(kind, default), options_lib.groups(kind, default)
  name = getattr(getattr(default, _CONFIG, None), 'name', '')
  if asked == ALL:
    lines = [*_head(kind, options, groups, command), *_own(options, groups, name, command)]
    for group in groups:
      lines += _group(group, options)
  elif asked:
    lines = _topic(asked, options, groups, command)
  else:
    lines = [*_head(kind, options, groups, command), *_own(options, groups, name, command)]
    if name:
      lines += _common(options, groups, name, command)
  return '\n'.join(lines).strip()


def _width() -> int:
  return max(_INDENT + 30, min(_MAX_WIDTH, shutil.get_terminal_size().columns or _MAX_WIDTH))


def _head(
  kind: type, options: list[options_lib.Option], groups: list[options_lib.Group], command: str
) -> list[str]:
  positionals = ' '.join(option.flag for option in options if option.is_positional)
  has_config = any(group.name == _CONFIG for group in groups)
  config = ' [--config=NAME_OR_PATH] [--config.FIELD=VALUE ...]' if has_config else ''
  usage = f'usage: seed-acme {command} {positionals}'.rstrip()
  return [f'{usage}{config} [OPTION ...]', '', *_wrapped(meanings.summary(kind))]


def _own(
  options: list[options_lib.Option], groups: list[options_lib.Group], config_name: str, command: str
) -> list[str]:
  lines = ['', 'Options:']
  if any(group.name == _CONFIG for group in groups):
    default = f'default: {config_name}' if config_name else ''
    if needs := command_lib.every()[command].needs_config:
      default = f'{needs}; the values below are those of {config_name}'
    meaning = (
      'the configuration: a name that `seed-acme list` shows, a Python file with a function '
      f'experiment(), or the config.json of a run{f" ({default})" if default else ""}'
    )
    lines += _entry('--config=NAME_OR_PATH', meaning)
  for option in options:
    if not option.group:
      lines += _option(option)
  what = 'this text; of GROUP, one of those below; or of all' if groups else 'this text'
  return [*lines, *_entry('--help[=GROUP]' if groups else '--help', what)]


def _common(
  options: list[options_lib.Option], groups: list[options_lib.Group], name: str, command: str
) -> list[str]:
  lines = ['', f'Common fields of the configuration, with the values of {name}:']
  by_name = {option.name: option for option in options}
  for common in COMMON:
    if common in by_name:
      lines += _option(by_name[common])
  lines += ['', f'All fields, by group (seed-acme {command} --help=GROUP, or --help=all):']
  for group in _top_level(groups):
    number = sum(_is_in(option.group, group.name) for option in options)
    first_sentence = group.meaning.partition('. ')[0].rstrip('.')
    lines += _entry(_short(group.name), f'{first_sentence} ({number} options)')
  return lines


def _topic(
  asked: str, options: list[options_lib.Option], groups: list[options_lib.Group], command: str
) -> list[str]:
  """Returns the lines of a group and the groups within it, or of one option."""
  asked = asked.removeprefix('--').partition('=')[0]
  lines: list[str] = []
  for group in groups:
    its = [name for name in (asked, f'{_CONFIG}.{asked}') if _is_in(group.name, name)]
    if its and (asked != _CONFIG or group.name == _CONFIG):
      lines += _group(group, options)
  if not lines:
    for option in options:
      if option.name == asked or option.name.endswith('.' + asked):
        lines += _option(option)
  if not lines:
    known = ', '.join(_short(group.name) for group in _top_level(groups))
    choice = f': choose one of {known}, {ALL}, or a field' if known else ''
    raise types.UserError(f'--help={asked} is no group{choice}\nsee: seed-acme {command} --help')
  return lines


def _top_level(groups: list[options_lib.Group]) -> list[options_lib.Group]:
  return [group for group in groups if group.name.removeprefix(f'{_CONFIG}.').count('.') == 0]


def _is_in(name: str, group: str) -> bool:
  """Whether a name is in the group. `config` has only the configuration's own fields."""
  return name == group or group != _CONFIG and name.startswith(group + '.')


def _short(group: str) -> str:
  return group.removeprefix(f'{_CONFIG}.')


def _group(group: options_lib.Group, options: list[options_lib.Option]) -> list[str]:
  lines = ['', *_wrapped(f'{group.name}: {group.meaning}')]
  for option in options:
    if option.group == group.name:
      lines += _option(option)
  return lines


def _option(option: options_lib.Option) -> list[str]:
  facts = [str(option.bound)] if option.bound else []
  if not (
    option.is_switch or option.is_positional or option.default in ('', options_lib.NO_DEFAULT)
  ):
    facts.append(f'default: {options_lib.shown_default(option.default)}')
  return _entry(option.flag, f'{option.meaning} ({", ".join(facts)})' if facts else option.meaning)


def _entry(flag: str, text: str) -> list[str]:
  """Formats two columns; a long flag has a line of its own."""
  lines = textwrap.wrap(text, _width() - _INDENT) or ['']
  first = f'  {flag}'
  if len(first) > _INDENT - 2:
    return [first, *(' ' * _INDENT + line for line in lines)]
  return [first.ljust(_INDENT) + lines[0], *(' ' * _INDENT + line for line in lines[1:])]


def _wrapped(text: str) -> list[str]:
  return textwrap.wrap(text, _width())
