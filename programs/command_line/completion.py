"""`seed-acme completion bash|zsh`: the script by which a shell completes `seed-acme`.

The script asks this program for the candidates of each line, so they always match this version, the
configuration that the line names, and the folders on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import glob
import os
import re
from typing import Literal

import tyro

from seed_acme import types
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import help_text
from seed_acme.programs.command_line import line as line_lib
from seed_acme.programs.command_line import options as options_lib
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import packed_run

# Candidates are whole words, but bash replaces only the part after the last `=` or `:`. It inserts
# them as they are, so their spaces are escaped here; zsh does that itself.
_BASH = r"""
_seed_acme() {
  local line=${COMP_LINE:0:COMP_POINT} IFS=$'\n' stem='' space=$'\1'
  local word=${line//'\ '/$space}
  word=${word##*[[:blank:]]}
  [[ $COMP_WORDBREAKS == *=* ]] && stem=${word%"${word##*[=:]}"}
  COMPREPLY=($("$1" completion bash --line="$line" 2>/dev/null))
  COMPREPLY=("${COMPREPLY[@]#"${stem//$space/ }"}")
  [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=./:] ]] && compopt -o nospace
  COMPREPLY=("${COMPREPLY[@]// /\\ }")
  return 0
}
complete -F _seed_acme seed-acme
"""
_ZSH = r"""
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_seed_acme() {
  local -a found
  found=("${(@f)$("${words[1]}" completion zsh --line="${(j: :)words[1,CURRENT]}" 2>/dev/null)}")
  compadd -S '' -- ${(M)found:#*[=./:]}
  compadd -- ${found:#*[=./:]}
  return 0
}
compdef _seed_acme seed-acme
"""
_SPACE = '\1'  # stands for an escaped one within a word
_SCRIPTS = {'bash': _BASH, 'zsh': _ZSH}
_FOLDERS = ('run_dir', 'out', 'save', 'from', 'prices', 'folder')
# folders, or zips that `pack` has written
_RUNS = ('run_dirs', 'file', 'config.initial_checkpoint')


@dataclasses.dataclass(frozen=True)
class CompletionArguments:
  """Print the script by which a shell completes seed-acme. To use it, put this into ~/.bashrc, or
  with zsh into ~/.zshrc: source <(seed-acme completion bash)

  shell: shell that the script is for.
  line: the beginning of a command line. The script uses this to get the candidates for its last
    word, one a line.
  """

  shell: tyro.conf.Positional[Literal['bash', 'zsh']]
  line: str = ''


def complete(arguments: CompletionArguments) -> int:
  """Prints the script, or the candidates for a line; returns the exit code."""
  found = candidates(arguments.line) if arguments.line else [_SCRIPTS[arguments.shell].strip()]
  print('\n'.join(found))
  return 0


def candidates(line: str) -> list[str]:
  """Returns candidates for the line's last word. Those ending in `=`, `.`, `/` or `:` continue."""
  words = [word.replace(_SPACE, ' ') for word in line.replace('\\ ', _SPACE).split(' ')]
  words = [words[0], *(word for word in words[1:-1] if word), words[-1]]
  last = words[-1]
  if len(words) == 2:
    found = [*command_lib.every(), '--help', '--version']
  elif words[1] in command_lib.every():
    found = _of_command(command_lib.find(words[1]), words[2:])
  else:
    found = []
  return sorted({word for word in found if word.startswith(last)})


def _of_command(command: command_lib.Command, words: list[str]) -> list[str]:
  kind, default = given_lib.described(command, _config(words))
  options = {option.name: option for option in options_lib.options(kind, default)}
  before, last = words[:-1], words[-1]
  flag, equals, value = last.partition('=')
  if equals:
    return [f'{flag}={found}' for found in _values(flag.removeprefix('--'), value, options, kind)]
  if before and before[-1].startswith('--') and not last.startswith('-') and '=' not in before[-1]:
    option = options.get(before[-1].removeprefix('--'))
    if option is None or not option.is_switch:
      return _values(before[-1].removeprefix('--'), last, options, kind)
  if last.startswith('-'):
    return [
      *_flags(list(options.values()), last),
      '--help',
      *(['--help=', '--config='] if command.config else []),
    ]
  return [
    found
    for option in options.values()
    if option.is_positional
    for found in _values(option.name, last, options, kind)
  ]


def _flags(options: list[options_lib.Option], last: str) -> list[str]:
  """Returns the options; fields of the configuration are completed one part at a time."""
  depth = last.count('.')
  found = []
  for option in options:
    parts = option.name.split('.')
    if option.is_positional:
      continue
    if len(parts) > depth + 1:
      found.append('--' + '.'.join(parts[: depth + 1]) + '.')
    elif option.is_switch:
      found.append(option.flag)
    else:
      found.append(f'--{option.name}' + ('' if option.takes_several() else '='))
  return found


def _values(name: str, value: str, options: dict[str, options_lib.Option], kind: type) -> list[str]:
  if name == 'config':
    from seed_acme.configs import registry

    own = _paths(value, lambda path: path.endswith('.py')) if value else []
    return [*registry.names(), *own]
  if name == 'help':
    return [
      help_text.ALL,
      *(group.name.removeprefix('config.') for group in options_lib.groups(kind)),
    ]
  if name == 'config.environment.id':
    return _environments()
  if name == 'suite':
    from seed_acme.envs import registry as environments

    return environments.suite_names()
  if name in options and (choices := options_lib.choices(options[name].kind)):
    return choices
  if name == 'checkpoint':
    return [checkpoint_choice.NEWEST, checkpoint_choice.BEST, *_paths(value, lambda path: False)]
  if name in _RUNS:
    return _paths(value, lambda path: path.endswith(packed_run.SUFFIX))
  if name in _FOLDERS:
    return _paths(value, lambda path: False)
  return _paths(value, lambda path: True) if name in ('cluster', 'grid', 'video') else []


def _environments() -> list[str]:
  """Returns ids, prefixes that a level has to follow, and Atari's games."""
  from seed_acme.envs import atari_games
  from seed_acme.envs import registry as environments

  ids = [environment.id for environment in environments.known_environments()]
  return [
    *(re.sub('(?<=:).*', '', name) for name in ids if re.fullmatch(r'[\w:/-]+', name)),
    *(f'atari:{game}' for game in atari_games.GAMES),
  ]


def _paths(start: str, is_wanted: Callable[[str], bool]) -> list[str]:
  """Returns folders, which end in `/`, and the files that are wanted."""
  folder = os.path.expanduser(start)
  found = []
  for path in glob.glob(glob.escape(folder) + '*'):
    shown = start + path[len(folder) :]
    if os.path.isdir(path):
      found.append(shown + '/')
    elif is_wanted(path):
      found.append(shown)
  return found


def _config(words: list[str]) -> str:
  """Returns the configuration that the line names; '' if it is none of this package's.

  User code is never loaded, because pressing the Tab key must not run it.
  """
  from seed_acme.configs import registry

  try:
    name = line_lib.read(words[:-1]).config
  except types.UserError:
    name = ''
  return name if name in registry.names() else ''
