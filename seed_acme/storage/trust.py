"""Decides which code named in a run folder's config.json may be run, as it may be anybody's.

The configuration classes of `seed_acme` are always allowed, and so is code that the command itself
names; all other code, and another Python for actors, needs `--trust_run_dir` (`trust=True`).
The JSON is checked before any of it is imported or started.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import shlex
from typing import Any

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.envs import registry as environments
from seed_acme.envs.interpreters import interpreter

_TYPE = 'type'
_OWN = 'seed_acme.'
# Functions of seed_acme that are no configuration classes. Nothing else of it may be named, because
# a function that is harmless where it is used may not be so with arguments of somebody else.
_OWN_FUNCTIONS = frozenset({'seed_acme.envs.goals:bits_equal'})
_ENVIRONMENT, _SETTINGS = 'environment.id', 'environment.settings'  # settings name no code
_PYTHON = 'actor.python'


@dataclasses.dataclass(frozen=True)
class Trust:
  """What may be run. fields: dotted names that the command sets. paths: code and programs that it
  names."""

  everything: bool = False
  fields: frozenset[str] = frozenset()
  paths: frozenset[str] = frozenset()


EVERYTHING = Trust(everything=True)  # for runs that this program, or its parent, has started


def require(value: Any, where: str, trust: Trust, only_types: bool = False) -> None:
  """Raises `types.UserError` for what is not trusted in a configuration's JSON.

  only_types: check only the classes, which are imported when the configuration is read.
  """
  if trust.everything:
    return
  for field, path in untrusted(value):
    is_type = _is_type(field)
    if path not in trust.paths and field not in trust.fields and (is_type or not only_types):
      name = field.removesuffix(f'.{_TYPE}')
      own = shlex.quote(f'--config.{name}={path}')
      mend = '' if is_type else f', or name it yourself, {own}'
      what = 'code, {}, which would be imported and run'
      if field == _PYTHON:
        what, mend = 'another Python, {}, which would be started', f'{mend} (evaluate: --python)'
      raise types.UserError(
        f'{where} names {what.format(f"{name}={path!r}")}:\nif you trust whoever made that '
        f'folder, add --trust_run_dir (trust=True in Python){mend}'
      )


def named_code(value: Any) -> list[tuple[str, str]]:
  """Returns (field, dotted path) of all code in a configuration's JSON, without classes of
  seed_acme."""
  return [found for found in _strings(value) if _names_code(*found) and not _is_ours(*found)]


def untrusted(value: Any) -> list[tuple[str, str]]:
  """Returns (field, dotted path or program) of all that only trust allows to run."""
  pythons = [
    (field, path)
    for field, path in _strings(value)
    if field == _PYTHON and interpreter.is_foreign(path)
  ]
  return [*named_code(value), *pythons]


def _is_ours(field: str, path: str) -> bool:
  return path in _OWN_FUNCTIONS or (_is_type(field) and path.startswith(_OWN))


def _is_type(field: str) -> bool:
  return field.rpartition('.')[2] == _TYPE


def _names_code(field: str, value: str) -> bool:
  if field == _ENVIRONMENT:
    return bool(environments.named_module(value))
  may_name = _is_type(field) or not field.startswith(_SETTINGS)
  return may_name and dotted_path.NAMED.fullmatch(value) is not None


def _strings(value: Any, field: str = '') -> Iterator[tuple[str, str]]:
  """Yields all strings in a JSON value, each with its dotted name. A key may be a dotted name."""
  if isinstance(value, dict):
    for key, item in value.items():
      yield from _strings(item, f'{field}.{key}' if field else key)
  elif isinstance(value, list):
    for item in value:
      yield from _strings(item, field)
  elif isinstance(value, str):
    yield field, value
