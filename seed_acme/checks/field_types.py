"""Checks that the values of a configuration have the declared types of their fields.

Python itself does not check them, so a string in place of a number would fail deep inside a node.
"""

from __future__ import annotations

import dataclasses
import types as python_types
import typing
from typing import Any

from seed_acme import types

_MAX_SHOWN = 60  # characters of a value in a message


def check(record: Any, path: str = '') -> None:
  """Raises `types.UserError` for the first field, also in nested records, of the wrong type.

  record: an instance of a dataclass. path: its place in the configuration, for messages.
  """
  hints = typing.get_type_hints(type(record))
  for field in dataclasses.fields(record):
    value, hint = getattr(record, field.name), hints[field.name]
    name = f'{path}.{field.name}' if path else field.name
    if not fits(value, hint):
      if typing.get_origin(hint) is dict and isinstance(value, dict):
        _refuse_item(value, hint, name)
      expected = f'{describe(hint)}{_fix(value, hint)}'
      if typing.get_origin(hint) is typing.Literal:
        raise types.UserError(f'{name} ({shown(value)}) must be {expected}')
      raise types.UserError(
        f'{name} ({shown(value)}) is of type {type(value).__name__}; expected {expected}'
      )
    if dataclasses.is_dataclass(value):
      check(value, name)


def _refuse_item(found: dict[Any, Any], hint: Any, name: str) -> None:
  """Raises `types.UserError` for the first item of a dict that is of the wrong type."""
  of_keys, of_values = typing.get_args(hint)
  for key, value in found.items():
    if not fits(key, of_keys):
      raise types.UserError(
        f'{name} has the key {shown(key)} of type {type(key).__name__}; expected '
        f'{describe(of_keys)}{_fix(key, of_keys)}'
      )
    if not fits(value, of_values):
      raise types.UserError(
        f'{name}[{key!r}] ({shown(value)}) is of type {type(value).__name__}; expected '
        f'{describe(of_values)}{_fix(value, of_values)}'
      )


def fits(value: Any, hint: Any) -> bool:
  """Whether a value has the annotated type; True for annotations that are not known here."""
  origin, arguments = typing.get_origin(hint), typing.get_args(hint)
  if origin is typing.Literal:
    return any(value == option and type(value) is type(option) for option in arguments)
  if origin in (typing.Union, python_types.UnionType):
    return any(fits(value, option) for option in arguments)
  if origin is tuple:
    if not isinstance(value, tuple):
      return False
    if len(arguments) == 2 and arguments[1] is Ellipsis:
      return all(fits(item, arguments[0]) for item in value)
    return len(value) == len(arguments) and all(map(fits, value, arguments))
  if origin is dict:
    return isinstance(value, dict) and all(
      fits(key, arguments[0]) and fits(item, arguments[1]) for key, item in value.items()
    )
  if hint in (int, float):  # bool is an int in Python, and never meant here
    return isinstance(value, (int, hint)) and not isinstance(value, bool)
  return isinstance(value, hint) if isinstance(hint, type) else True


def describe(hint: Any) -> str:
  """Describes an annotated type in words."""
  origin, arguments = typing.get_origin(hint), typing.get_args(hint)
  if origin is typing.Literal:
    return 'one of ' + ', '.join(map(repr, arguments))
  if origin in (typing.Union, python_types.UnionType):
    return ' or '.join(map(describe, arguments))
  if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
    return f'a tuple of {describe(arguments[0])}'
  if origin is tuple:
    return f'a tuple ({", ".join(map(describe, arguments))})'
  if origin is dict:
    return f'a dict from {describe(arguments[0])} to {describe(arguments[1])}'
  return getattr(hint, '__name__', str(hint))


def shown(value: Any) -> str:
  """Formats a value for a message, shortened if it is long."""
  text = repr(value)
  return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + '...'


def _fix(value: Any, hint: Any) -> str:
  """Returns `: write ...` if the value merely has the wrong form, else ''."""
  if isinstance(value, list) and fits(tuple(value), hint):
    return f': write {shown(tuple(value))}'
  if hasattr(value, 'item') and getattr(value, 'ndim', None) == 0 and fits(value.item(), hint):
    return f': write {value.item()!r}'  # a NumPy scalar
  if isinstance(value, str):
    for kind in (int, float):
      try:
        if fits(kind(value), hint):
          return f': write {kind(value)!r}'
      except ValueError:
        continue
  if isinstance(value, float) and value.is_integer() and fits(int(value), hint):
    return f': write {int(value)}'
  return ''
