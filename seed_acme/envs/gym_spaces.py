"""Converts gym and gymnasium spaces to dm_env specifications, by class name, importing neither."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import dataclasses
from typing import Any

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.envs import time_steps

_MOST_VALUES = 2**31 - 1  # of one choice


class Converter:
  """A space's specification, and the conversion of its values.

  read: converts a value of the environment to match the specification. A value that cannot be
  converted is returned unchanged, for `VectorOfEnvironments` to report, or raises
  `time_steps.WrongValue`. write: converts the other way.
  """

  def __init__(self, spec: types.Nest, read: Callable[[Any], Any], write: Callable[[Any], Any]):
    self.spec = spec
    self.read = read
    self.write = write


@dataclasses.dataclass(frozen=True)
class Leaf:
  """An array of a space, whose choices a specification counts from 0.

  start: the space's own first value, one or one for each choice; None = 0.
  """

  dtype: np.dtype
  start: Any

  def from_zero(self, values: np.ndarray) -> np.ndarray:
    return values if self.start is None else values - self.start

  def from_start(self, values: np.ndarray) -> np.ndarray:
    return values if self.start is None else values + self.start


def leaves(space: Any) -> types.Nest:
  """Returns a `Leaf` for each array, in the structure of the space's specification."""
  names = class_names(space)
  if 'Dict' in names:
    return {key: leaves(inner) for key, inner in space.spaces.items()}
  if 'Tuple' in names:
    return tuple(leaves(inner) for inner in space.spaces)
  dtype = np.dtype(space.dtype)
  start = getattr(space, 'start', 0) if names & {'Discrete', 'MultiDiscrete'} else 0
  return Leaf(dtype, np.asarray(start, dtype) if np.any(start) else None)


def in_structure(values: Any, structure: types.Nest) -> types.Nest:
  """Returns the values that a space names, in its structure; values of other names are left out.

  structure: see `leaves`. Raises KeyError, TypeError or ValueError if one is missing.
  """
  if isinstance(structure, dict):
    return {key: in_structure(values[key], inner) for key, inner in structure.items()}
  if isinstance(structure, tuple):
    pairs = zip(values, structure, strict=True)
    return tuple(in_structure(value, inner) for value, inner in pairs)
  return values


def make_converter(space: Any, where: str, field: str) -> Converter:
  """Finds the converter by class name, as gym and gymnasium have equal spaces, unrelated classes.

  where: names the space if it is not supported. field: names a value that is wrong.
  """
  names = class_names(space)
  for name, make in _CONVERTERS.items():
    if name in names:
      return make(space, where, field)
  raise types.UserError(
    f'{where} {space} is not supported: expected one of {", ".join(_CONVERTERS)}; '
    'wrap the environment'
  )


def _discrete(space: Any, where: str, field: str) -> Converter:
  start, size = int(getattr(space, 'start', 0)), int(space.n)
  if size > _MOST_VALUES:
    raise types.UserError(
      f'{where}: expected {_MOST_VALUES} values at most, which int32 holds, got {size}: wrap the '
      'environment'
    )

  def read(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.shape == () and array.dtype.kind in 'biuf':
      number = array.item()
      if number == number // 1 and 0 <= number - start < size:
        return np.asarray(int(number) - start, np.int32)
    raise time_steps.WrongValue(
      field, f'an integer {start} ... {start + size - 1}', time_steps.shown(value)
    )

  return Converter(
    dm_specs.DiscreteArray(size, dtype=np.int32), read, write=lambda value: int(value) + start
  )


def _box(space: Any, where: str, field: str) -> Converter:
  del where, field
  return _array(dm_specs.BoundedArray(space.shape, space.dtype, space.low, space.high))


def _multi_discrete(space: Any, where: str, field: str) -> Converter:
  del where
  spec = choices.ChoicesArray(space.nvec, space.dtype)
  start = np.asarray(getattr(space, 'start', 0), spec.dtype)
  converter = _array(spec)
  if not np.any(start):
    return converter

  def read(value: Any) -> np.ndarray:
    value = converter.read(value)
    if value.shape != spec.shape or value.dtype != spec.dtype:
      return value
    is_wrong = (value < start) | (value > start + spec.maximum)
    if is_wrong.any():
      place = np.argwhere(is_wrong)[0].tolist()
      low = np.broadcast_to(start, spec.shape)[tuple(place)]
      high = low + spec.num_values[tuple(place)] - 1
      raise time_steps.WrongValue(
        field, f'{low} ... {high}', time_steps.describe_number(value, place)
      )
    return value - start

  return Converter(spec, read, lambda value: converter.write(value) + start)


def _multi_binary(space: Any, where: str, field: str) -> Converter:
  del where, field
  return _array(dm_specs.BoundedArray(space.shape, space.dtype, 0, 1))


def _array(spec: dm_specs.Array) -> Converter:
  dtype = spec.dtype
  is_integer = dtype.kind in 'iu'

  def read(value: Any) -> np.ndarray:
    value = np.asarray(value)
    if value.dtype == dtype or not np.can_cast(value.dtype, dtype, 'same_kind'):
      return value
    narrow = value.astype(dtype)
    # Integers wrap around if the narrow type cannot hold them.
    return value if is_integer and (narrow != value).any() else narrow

  return Converter(spec, read, lambda value: np.asarray(value, dtype))


def _dict(space: Any, where: str, field: str) -> Converter:
  inner = {
    key: make_converter(value, f'{where}/{key}', f'{field}/{key}')
    for key, value in space.spaces.items()
  }

  def read(value: Any) -> Any:
    if not isinstance(value, Mapping) or not inner.keys() <= value.keys():
      return value
    return {key: converter.read(value[key]) for key, converter in inner.items()}

  return Converter(
    {key: converter.spec for key, converter in inner.items()},
    read,
    write=lambda value: {key: inner[key].write(value[key]) for key in inner},
  )


def _tuple(space: Any, where: str, field: str) -> Converter:
  inner = [
    make_converter(value, f'{where}/{index}', f'{field}/{index}')
    for index, value in enumerate(space.spaces)
  ]

  def read(value: Any) -> Any:
    if not isinstance(value, (tuple, list)) or len(value) != len(inner):
      return value
    return tuple(converter.read(item) for converter, item in zip(inner, value))

  return Converter(
    tuple(converter.spec for converter in inner),
    read,
    write=lambda value: tuple(c.write(v) for c, v in zip(inner, value, strict=True)),
  )


_CONVERTERS: dict[str, Callable[[Any, str, str], Converter]] = {
  'Discrete': _discrete,
  'Box': _box,
  'MultiDiscrete': _multi_discrete,
  'MultiBinary': _multi_binary,
  'Dict': _dict,
  'Tuple': _tuple,
}


def class_names(value: Any) -> set[str]:
  return {cls.__name__ for cls in type(value).__mro__}
