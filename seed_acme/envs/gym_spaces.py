"""Spaces of gym and gymnasium as dm_env specifications. Imports neither: goes by class names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import choices


class Converter:
  """One space: its specification, and how values cross.

  read: what the environment returns -> as the specification. write: the other way.
  """

  def __init__(self, spec: types.Nest, read: Callable[[Any], Any], write: Callable[[Any], Any]):
    self.spec = spec
    self.read = read
    self.write = write


def make_converter(space: Any, where: str) -> Converter:
  """By class name, since gym and gymnasium have equal spaces in unrelated classes."""
  names = class_names(space)
  for name, make in _CONVERTERS.items():
    if name in names:
      return make(space, where)
  raise types.UserError(
    f'{where} {space} is not supported: expected one of {", ".join(_CONVERTERS)}; '
    'wrap the environment'
  )


def _discrete(space: Any, where: str) -> Converter:
  del where
  start = int(getattr(space, 'start', 0))
  return Converter(
    dm_specs.DiscreteArray(int(space.n), dtype=np.int32),
    read=lambda value: np.asarray(np.asarray(value) - start, np.int32),
    write=lambda value: int(value) + start,
  )


def _box(space: Any, where: str) -> Converter:
  spec = dm_specs.BoundedArray(space.shape, space.dtype, space.low, space.high)
  return _array(spec, 0, where)


def _multi_discrete(space: Any, where: str) -> Converter:
  start = np.asarray(getattr(space, 'start', 0), space.dtype)
  return _array(choices.ChoicesArray(space.nvec, space.dtype), start, where)


def _multi_binary(space: Any, where: str) -> Converter:
  return _array(dm_specs.BoundedArray(space.shape, space.dtype, 0, 1), 0, where)


def _array(spec: dm_specs.Array, start: Any, where: str) -> Converter:
  has_start, dtype = bool(np.any(start)), spec.dtype

  def read(value: Any) -> np.ndarray:
    value = np.asarray(value)
    if value.dtype != dtype:
      if not np.can_cast(value.dtype, dtype, 'same_kind'):
        raise types.UserError(f'{where}: expected {dtype}, got {value.dtype}')
      value = value.astype(dtype)
    return value - start if has_start else value

  def write(value: Any) -> np.ndarray:
    value = np.asarray(value, dtype)
    return value + start if has_start else value

  return Converter(spec, read, write)


def _dict(space: Any, where: str) -> Converter:
  inner = {key: make_converter(value, f'{where}/{key}') for key, value in space.spaces.items()}
  return Converter(
    {key: converter.spec for key, converter in inner.items()},
    read=lambda value: {key: inner[key].read(value[key]) for key in inner},
    write=lambda value: {key: inner[key].write(value[key]) for key in inner},
  )


def _tuple(space: Any, where: str) -> Converter:
  inner = [make_converter(value, f'{where}/{index}') for index, value in enumerate(space.spaces)]
  return Converter(
    tuple(converter.spec for converter in inner),
    read=lambda value: tuple(c.read(v) for c, v in zip(inner, value, strict=True)),
    write=lambda value: tuple(c.write(v) for c, v in zip(inner, value, strict=True)),
  )


_CONVERTERS: dict[str, Callable[[Any, str], Converter]] = {
  'Discrete': _discrete,
  'Box': _box,
  'MultiDiscrete': _multi_discrete,
  'MultiBinary': _multi_binary,
  'Dict': _dict,
  'Tuple': _tuple,
}


def class_names(value: Any) -> set[str]:
  return {cls.__name__ for cls in type(value).__mro__}
