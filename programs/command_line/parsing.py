"""Command-line arguments parsed into records by tyro."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import importlib
from typing import Any

import tyro

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.programs.command_line import options as options_lib
from seed_acme.programs.command_line import wrong_arguments


def parse(
  kind: type,
  words: Sequence[str],
  command: str,
  default: Any = None,
  all_of: type | None = None,
  typed: Sequence[str] = (),
  **settings: Any,
) -> Any:
  """Returns the record; raises `types.UserError` of a few lines for wrong arguments.

  all_of, typed: the record of all arguments and all words, if `kind` and `words` are only a part of
    them; they are used for suggestions. settings: more arguments of `tyro.cli`.
  """

  def refuse(event: Any) -> None:
    options = options_lib.options(all_of or kind, default)
    text = wrong_arguments.describe(event, options, typed or words, command)
    if text is not None:
      raise types.UserError(text)

  if default is not None:
    settings['default'] = default
  with _on_error(refuse):
    parsed = tyro.cli(
      kind,
      args=words,
      prog=f'seed-acme {command}',
      use_underscores=True,
      add_help=False,
      **settings,
    )
  bounds.check(parsed[0] if isinstance(parsed, tuple) else parsed, '--')
  return parsed


def _on_error(refuse: Callable[[Any], None]) -> contextlib.AbstractContextManager[None]:
  """Has `refuse` called with tyro's parse errors.

  The module that offers this is private. If it is missing, tyro prints its own text and exits with
  2.
  """
  try:
    return importlib.import_module('tyro._errors').on_parse_error(refuse)
  except (ImportError, AttributeError):
    return contextlib.nullcontext()
