"""The first pass over a command line: the command, the configuration, and a request for help."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import os
from typing import NamedTuple, NoReturn

from seed_acme import types


class Line(NamedTuple):
  """A command line.

  command: '' = none. config: value of `--config`; '' = none. topic: of `--help=TOPIC`, '' for a
    plain `--help`; None = no help is requested. words: everything after the command, without these
    two options.
  """

  command: str
  config: str
  topic: str | None
  is_version_asked: bool
  words: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
  def error(self, message: str) -> NoReturn:
    raise types.UserError(f'{message}\nsee: seed-acme --help')


def _expanded(word: str) -> str:
  """Expands the home folder in `--run_dir=~/runs/x`, where shells leave it to the program."""
  option, equals, value = word.partition('=')
  if option.startswith('--') and value.startswith('~'):
    return f'{option}{equals}{os.path.expanduser(value)}'
  return word


def read(argv: Sequence[str]) -> Line:
  """Reads a command line; raises `types.UserError`. The command's own words are not checked."""
  parser = _Parser(add_help=False, allow_abbrev=False)
  parser.add_argument('command', nargs='?', default='')
  parser.add_argument('--version', action='store_true')
  parser.add_argument('-h', '--help', nargs='?', const='')
  parser.add_argument('--config', nargs='?', const='', action='append', default=[])
  found, words = parser.parse_known_args([_expanded(word) for word in argv])
  if '' in found.config:
    raise types.UserError('--config needs a name or a path: seed-acme list shows the names')
  if len(found.config) > 1:
    raise types.UserError(f'--config is given twice ({", ".join(found.config)}): keep one')
  name = ''.join(found.config)
  return Line(found.command, name, found.help, found.version, tuple(words))
