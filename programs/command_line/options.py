"""The command-line options of a record of arguments, as data for help and completion."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import types
import typing
from typing import Any, Literal, NamedTuple

import tyro

from seed_acme.checks import bounds
from seed_acme.programs.command_line import meanings

_NO_DEFAULT = (dataclasses.MISSING, tyro.MISSING)
_WORDS = {int: 'INT', float: 'FLOAT', str: 'STR'}


class Option(NamedTuple):
  """One option.

  name: dotted, `config.agent.discount`. group: the name up to the last dot, '' = the command's own.
  kind: its type. default: `NO_DEFAULT` = it is required. is_switch: takes no value. bound: limit of
    its numbers; None = none.
  """

  name: str
  group: str
  kind: Any
  default: Any
  meaning: str
  is_positional: bool
  is_switch: bool
  bound: bounds.Bound | None

  @property
  def flag(self) -> str:
    """The option as a user writes it, with a placeholder for its value."""
    if self.is_positional:
      return f'{self.name.upper()}{" ..." if self.takes_several() else ""}'
    if self.is_switch:
      return f'--{self.name}'
    return f'--{self.name}{" " if self.takes_several() else "="}{value_word(self.kind)}'

  def takes_several(self) -> bool:
    """Whether the option takes several values, which are separate words."""
    return typing.get_origin(self.kind) in (tuple, dict)


class Group(NamedTuple):
  """A record within the arguments. name: dotted, `config.agent`."""

  name: str
  meaning: str


NO_DEFAULT = object()


def options(kind: type, default: object = None) -> list[Option]:
  """Returns all options, those of nested records after the command's own.

  default: object with the current values; a field that it lacks has its class's default.
  """
  found = [item for item in _walk(kind, default, '', False) if isinstance(item, Option)]
  # stable sort: the command's own first
  return sorted(found, key=lambda option: bool(option.group))


def groups(kind: type, default: object = None) -> list[Group]:
  """Returns all nested records in order, the configuration and its records first."""
  found = [item for item in _walk(kind, default, '', False) if isinstance(item, Group)]
  return sorted(found, key=lambda group: group.name.partition('.')[0] != 'config')


def choices(kind: Any) -> list[str]:
  """Returns the values that an option accepts, if they can be listed. '' is left out."""
  if kind is bool:
    return ['True', 'False']
  return [str(value) for value in typing.get_args(kind) if value] if _is_literal(kind) else []


def value_word(kind: Any) -> str:
  """Returns the placeholder for a value of this type."""
  if choices(kind):
    return f'{{{",".join(choices(kind))}}}'
  origin, parts = typing.get_origin(kind), typing.get_args(kind)
  if origin is tuple:
    return f'{value_word(parts[0])} ...'
  if origin is dict:
    return 'NAME VALUE ...'
  if origin in (typing.Union, types.UnionType):
    return '|'.join('None' if part is type(None) else value_word(part) for part in parts)
  return _WORDS.get(kind, 'VALUE')


def shown_default(value: Any) -> str:
  """Returns a default as a user would write it."""
  if isinstance(value, tuple):
    return ' '.join(map(str, value)) or 'none'
  if isinstance(value, dict):
    return ' '.join(f'{name} {item}' for name, item in value.items()) or 'none'
  return repr(value) if value == '' else str(value)


def _walk(kind: type, default: object, prefix: str, has_values: bool) -> Iterator[Option | Group]:
  """Yields options and groups.

  has_values: a switch is written with its value, as in a configuration.
  """
  hints = typing.get_type_hints(kind, include_extras=True)
  records = []
  for field in dataclasses.fields(kind):
    hint, markers = _unwrapped(hints[field.name])
    value = _value(field, default)
    name = f'{prefix}{_name_given(markers) or field.name}'
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
      record = hint if value is NO_DEFAULT else type(value)
      its_have_values = has_values or _has(markers, tyro.conf.FlagConversionOff)
      records.append((field.name, record, value, its_have_values))
      continue
    appends = _has(markers, tyro.conf.UseAppendAction)
    yield Option(
      name,
      prefix.rstrip('.'),
      typing.get_args(hint)[0] if appends else hint,
      value,
      meanings.meaning(kind, field.name),
      _has(markers, tyro.conf.Positional),
      hint is bool and not has_values,
      bounds.bounds(kind).get(field.name),
    )
  for name, record, value, its_have_values in records:
    text = ' '.join(filter(None, (meanings.meaning(kind, name), meanings.summary(record))))
    yield Group(f'{prefix}{name}', text)
    yield from _walk(record, value, f'{prefix}{name}.', its_have_values)


def _value(field: dataclasses.Field, default: object) -> Any:
  value = getattr(default, field.name, dataclasses.MISSING)
  if value is dataclasses.MISSING:
    value = field.default
  if value is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
    value = field.default_factory()
  return NO_DEFAULT if any(value is none for none in _NO_DEFAULT) else value


def _unwrapped(hint: Any) -> tuple[Any, tuple[Any, ...]]:
  """Returns the type itself and tyro's markers on it."""
  if typing.get_origin(hint) is typing.Annotated:
    return typing.get_args(hint)[0], hint.__metadata__
  return hint, ()


def _has(markers: tuple[Any, ...], alias: Any) -> bool:
  """Whether the markers contain one such as `tyro.conf.Positional`."""
  return any(mark in markers for mark in typing.get_args(alias[int])[1:])


def _name_given(markers: tuple[Any, ...]) -> str:
  """Returns the name set by `tyro.conf.arg(name=...)`, which need not be a valid field name."""
  names = (getattr(m, 'name', None) for m in markers if isinstance(m, type(tyro.conf.arg())))
  return next(filter(None, names), '')


def _is_literal(kind: Any) -> bool:
  return typing.get_origin(kind) is Literal
