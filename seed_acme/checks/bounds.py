"""Bounds of numbers, declared on their fields: `num_actors: Annotated[int, at_least(1)] = 2`.

Help shows them, and `check` checks a record against them. A class that redeclares a field to give
it another default keeps its bound. The bound of a tuple applies to each of its numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from typing import Any, NamedTuple

from seed_acme import types


class Bound(NamedTuple):
  """An interval. It never contains NaN, and contains infinity only with `takes_infinity`, for
  settings where infinity means "no bound", for instance."""

  least: float = -math.inf
  most: float = math.inf
  is_open_below: bool = False
  is_open_above: bool = False
  takes_infinity: bool = False

  def __str__(self) -> str:
    """Describes what a value must be: `>= 1`, `in [0, 1)`."""
    if self.most < math.inf:
      ends = '[('[self.is_open_below], '])'[self.is_open_above]
      return f'in {ends[0]}{self.least}, {self.most}{ends[1]}'
    if self.least > -math.inf:
      return f'{">" if self.is_open_below else ">="} {self.least}'
    return 'a finite number'

  def check(self, name: str, value: float) -> None:
    """Raises `types.UserError` if `value` is out of bounds. name: name of the setting."""
    is_above = value > self.least if self.is_open_below else value >= self.least
    is_below = value < self.most if self.is_open_above else value <= self.most
    if not (is_above and is_below):
      raise types.UserError(f'{name} ({value}) must be {self}')
    if not (self.takes_infinity or _is_finite(value)):
      raise types.UserError(f'{name} ({value}) must be a finite number')


def _is_finite(value: float) -> bool:
  try:
    return math.isfinite(value)
  except OverflowError:  # an integer of more than 308 digits
    return False


FINITE = Bound()
SHARE = Bound(0, 1)


def at_least(least: float) -> Bound:
  """Returns a lower bound that is itself allowed."""
  return Bound(least)


def above(least: float, takes_infinity: bool = False) -> Bound:
  """Returns a lower bound that is not itself allowed."""
  return Bound(least, is_open_below=True, takes_infinity=takes_infinity)


def check(record: Any, prefix: str = '') -> None:
  """Raises `types.UserError` for the first number, also in nested records, that is out of bounds.

  record: an instance of a dataclass. Values that are not numbers are left to `field_types`.
  prefix: put before the fields' names in messages.
  """
  kind: type = type(record)
  of_fields = bounds(kind)
  for field in dataclasses.fields(record):
    value, name = getattr(record, field.name), f'{prefix}{field.name}'
    if dataclasses.is_dataclass(value):
      check(value, f'{name}.')
    elif field.name in of_fields:
      items = {name: value}
      if isinstance(value, tuple):
        items = {f'{name}[{i}]': item for i, item in enumerate(value)}
      for shown, item in items.items():
        if isinstance(item, (int, float)):
          of_fields[field.name].check(shown, item)


@functools.cache
def bounds(kind: type) -> dict[str, Bound]:
  """Returns the bounds of a dataclass, by field."""
  found = {}
  for base in reversed(kind.__mro__):
    for name, hint in typing.get_type_hints(base, include_extras=True).items():
      for mark in getattr(hint, '__metadata__', ()):
        if isinstance(mark, Bound):
          found[name] = mark
  return found
