"""Fields that have an effect only with certain values of other fields, declared on them:
`core_size: Annotated[int, only_without('core', 'none')] = 256`.

`has_no_effect` tells why a field is idle, so that a command can say so about one that it was given.
A class that redeclares a field to give it another default keeps its conditions.
"""

from __future__ import annotations

from collections.abc import Collection
import functools
import operator
import typing
from typing import Any, NamedTuple


class Condition(NamedTuple):
  """field: another field of the same record; dotted, if it is one of a record in it. is_with:
  whether its value has to be one of `values`, or none of them."""

  field: str
  values: tuple[Any, ...]
  is_with: bool


def only_with(field: str, *values: Any) -> Condition:
  """Declares a field that has an effect only if another one has one of these values."""
  return Condition(field, values, is_with=True)


def only_without(field: str, *values: Any) -> Condition:
  """Declares a field that has no effect if another one has one of these values."""
  return Condition(field, values, is_with=False)


def has_no_effect(record: Any, names: Collection[str]) -> dict[str, str]:
  """Returns those of the fields that have no effect, with the reasons: `network.core is none`.

  record: an instance of a dataclass, with others in it. names: of the fields, dotted; names that
    `record` does not have are left out.
  """
  found = {name: _reason(record, name) for name in names}
  return {name: reason for name, reason in found.items() if reason}


def _reason(record: Any, name: str) -> str:
  """Returns why a field has no effect, itself or a record that it is in; '' if it may have one."""
  prefix, rest = '', name
  while rest:
    field, _, rest = rest.partition('.')
    kind: type = type(record)
    for condition in conditions(kind).get(field, ()):
      value = operator.attrgetter(condition.field)(record)
      if (value in condition.values) != condition.is_with:
        return f'{prefix}{condition.field} is {value}'
    prefix, record = f'{prefix}{field}.', getattr(record, field, None)
  return ''


@functools.cache
def conditions(kind: type) -> dict[str, tuple[Condition, ...]]:
  """Returns the conditions of a class, by field."""
  found: dict[str, tuple[Condition, ...]] = {}
  for base in reversed(kind.__mro__):
    for name, hint in typing.get_type_hints(base, include_extras=True).items():
      marks = tuple(x for x in getattr(hint, '__metadata__', ()) if isinstance(x, Condition))
      if marks:
        found[name] = marks
  return found
