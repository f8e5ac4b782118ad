"""Arguments of the command line into records, by tyro; its boxed errors into plain ones."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any, TypeVar

import tyro

from seed_acme import types

_T = TypeVar('_T')


def take_config(argv: list[str]) -> tuple[str, list[str]]:
  """Takes `--config=NAME` or `--config NAME` out; `--config.FIELD` stays."""
  name, rest = '', list(argv)
  for i, argument in enumerate(argv):
    if argument == '--config':
      if i + 1 == len(argv):
        raise types.UserError('--config needs a name or a path: seed-acme list shows the names')
      return argv[i + 1], argv[:i] + argv[i + 2 :]
    if argument.startswith('--config='):
      name = argument.partition('=')[2]
      return name, argv[:i] + argv[i + 1 :]
  return name, rest


def overridden(argv: list[str]) -> set[str]:
  """Dotted names of the fields that `--config.FIELD` gives."""
  prefix = '--config.'
  return {
    argument.removeprefix(prefix).partition('=')[0].replace('-', '_')
    for argument in argv
    if argument.startswith(prefix)
  }


def peek(argv: list[str], flag: str) -> str:
  """The value of a flag, before the rest can be parsed."""
  for i, argument in enumerate(argv):
    if argument.startswith(f'{flag}='):
      return argument.partition('=')[2]
    if argument == flag and i + 1 < len(argv):
      return argv[i + 1]
  return ''


def parse(kind: type[_T], argv: list[str], command: str, default: _T | None = None) -> _T:
  """Parses with tyro; its boxed error becomes a `UserError` of a few lines."""
  errors = io.StringIO()
  options: dict[str, Any] = {} if default is None else {'default': default}
  try:
    with contextlib.redirect_stderr(errors):
      return tyro.cli(kind, args=argv, prog=f'seed-acme {command}', use_underscores=True, **options)
  except SystemExit as exit_:
    if not exit_.code:
      raise
    raise types.UserError(_plain_error(errors.getvalue(), command)) from None


def _plain_error(boxed: str, command: str) -> str:
  """The first sentence of the error and the near names, without the box."""
  text = re.sub(r'\x1b\[[0-9;]*m', '', boxed)
  lines = [line.strip('│╭╮╰╯─ ').strip() for line in text.splitlines()[1:]]
  sections: list[list[str]] = [[]]
  for raw, line in zip(text.splitlines()[1:], lines):
    if '───' in raw:
      sections.append([])
    elif line:
      sections[-1].append(line)
  message = [' '.join(sections[0]) or 'wrong arguments']
  near = [line for section in sections[1:] for line in section if line.startswith('--')]
  if near and 'Unrecognized' in message[0]:
    message.append('did you mean ' + ', '.join(near[:3]))
  message.append(f'see: seed-acme {command} --help')
  return '\n'.join(message)
