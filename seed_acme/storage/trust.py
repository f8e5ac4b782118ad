"""Decides which code named in a run folder's config.json may be imported, as it may be anybody's.

`seed_acme....` is always allowed, and so is code that the command itself names; all other code
needs `--trust_run_dir` (`trust=True`). The JSON is checked before any of it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import shlex
from typing import Any

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.envs import registry as environments

_TYPE = 'type'
_OWN = 'seed_acme.'
_ENVIRONMENT, _SETTINGS = 'environment.id', 'environment.settings'  # settings name no code


@dataclasses.dataclass(frozen=True)
class Trust:
  """Code that may be imported. fields: dotted names that the command sets. paths: code it names."""

  everything: bool = False
  fields: frozenset[str] = frozenset()
  paths: frozenset[str] = frozenset()


EVERYTHING = Trust(everything=True)  # for runs that this program, or its parent, has started


def require(value: Any, where: str, trust: Trust, only_types: bool = False) -> None:
  """Raises `types.UserError` for code that is not trusted in a configuration's JSON.

  only_types: check only the classes, which are imported when the configuration is read.
  """
  if trust.everything:
    return
  for field, path in named_code(value):
    is_type = _is_type(field)
    if path not in trust.paths and field not in trust.fields and (is_type or not only_types):
      name = field.removesuffix(f'.{_TYPE}')
      own = shlex.quote(f'--config.{name}={path}')
      mend = '' if is_type else f', or name it yourself, {own}'
      raise types.UserError(
        f'{where} names code that is not of seed_acme, {name}={path!r}, which would be '
        'imported and run:\nif you trust whoever made that folder, add --trust_run_dir '
        f'(trust=True in Python){mend}'
      )


def named_code(value: Any) -> list[tuple[str, str]]:
  """Returns (field, dotted path) of all code in a configuration's JSON that is not seed_acme's."""
  return [(field, path) for field, path in _walk(value, '') if not path.startswith(_OWN)]


def _is_type(field: str) -> bool:
  return field.rpartition('.')[2] == _TYPE


def _walk(value: Any, field: str) -> Iterator[tuple[str, str]]:
  if isinstance(value, dict):
    for key, item in value.items():
      yield from _walk(item, f'{field}.{key}' if field else key)
  elif isinstance(value, list):
    for item in value:
      yield from _walk(item, field)
  elif not isinstance(value, str):
    return
  elif field == _ENVIRONMENT:
    if environments.named_module(value):
      yield field, value
  elif _is_type(field) or not field.startswith(_SETTINGS):
    if dotted_path.NAMED.fullmatch(value):
      yield field, value
