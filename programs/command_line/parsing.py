"""Arguments of the command line into records, by tyro."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import importlib
from typing import Any, TypeVar

import tyro

from seed_acme import types
from seed_acme.programs.command_line import help_text
from seed_acme.programs.command_line import new_settings
from seed_acme.programs.command_line import options as options_lib
from seed_acme.programs.command_line import wrong_arguments

_T = TypeVar('_T')


def take_config(argv: list[str]) -> tuple[str, list[str]]:
  """Takes `--config=NAME` or `--config NAME` out; `--config.FIELD` stays."""
  name, rest = '', list(argv)
  for i, argument in enumerate(argv):
    if argument == '--config':
      if i + 1 == len(argv):
        raise types.UserError('--config needs a name or a path: seed-acme list shows the names')
      name, rest = argv[i + 1], argv[:i] + argv[i + 2 :]
      break
    if argument.startswith('--config='):
      name, rest = argument.partition('=')[2], argv[:i] + argv[i + 1 :]
      break
  again = [argument for argument in rest if argument.partition('=')[0] == '--config']
  if again:
    raise types.UserError(f'--config is given twice ({name} and {again[0]}): keep one')
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
  """Parses with tyro; what that finds wrong becomes a `UserError` of a few lines. `--help` is
  answered here, and ends the program."""
  asked = help_text.topic(argv)
  if asked is not None:
    print(help_text.describe(kind, default, command, asked), flush=True)
    raise SystemExit(0)
  default, argv = new_settings.add(default, argv)

  def refuse(event: Any) -> None:
    text = wrong_arguments.describe(event, options_lib.options(kind, default), argv, command)
    if text is not None:
      raise types.UserError(text)

  given: dict[str, Any] = {} if default is None else {'default': default}
  with _on_error(refuse):
    return tyro.cli(kind, args=argv, prog=f'seed-acme {command}', use_underscores=True, **given)


def _on_error(refuse: Callable[[Any], None]) -> contextlib.AbstractContextManager[None]:
  """Has `refuse` called with what tyro finds wrong. The module is private: where it is missing,
  tyro prints its own text and ends the program with 2."""
  try:
    return importlib.import_module('tyro._errors').on_parse_error(refuse)
  except (ImportError, AttributeError):
    return contextlib.nullcontext()
