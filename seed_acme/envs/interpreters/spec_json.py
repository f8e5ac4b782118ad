"""Specifications of environments as JSON, read alike under any version of Python and numpy.

A pickle of an array or a dtype that numpy 2 made cannot be read by numpy 1.23.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
import functools
from typing import Any

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types


def encode(spec: types.EnvironmentSpec) -> dict[str, Any]:
  """Nests of dicts, lists, tuples and named tuples of arrays with or without bounds."""
  return {
    'observation': _encode(spec.observation),
    'action': _encode(spec.action),
    'frames_per_step': spec.frames_per_step,
  }


def decode(record: Mapping[str, Any]) -> types.EnvironmentSpec:
  """The inverse."""
  return types.EnvironmentSpec(
    _decode(record['observation']), _decode(record['action']), record['frames_per_step']
  )


def _encode(nest: types.Nest) -> dict[str, Any]:
  if isinstance(nest, dm_specs.Array):
    return {'array': _encode_array(nest)}
  if isinstance(nest, Mapping):
    return {'dict': [[key, _encode(item)] for key, item in nest.items()]}
  items = [_encode(item) for item in nest]
  if hasattr(nest, '_fields'):
    return {'namedtuple': [type(nest).__name__, list(nest._fields)], 'items': items}
  return {'list' if isinstance(nest, list) else 'tuple': items}


def _encode_array(spec: dm_specs.Array) -> dict[str, Any]:
  record: dict[str, Any] = {
    'shape': list(spec.shape),
    'dtype': np.dtype(spec.dtype).str,
    'name': spec.name,
  }
  if isinstance(spec, dm_specs.DiscreteArray):
    return {**record, 'num_values': int(spec.num_values)}
  if isinstance(spec, dm_specs.BoundedArray):
    return {**record, 'bounds': [_encode_bound(spec.minimum), _encode_bound(spec.maximum)]}
  return record


def _encode_bound(bound: np.ndarray) -> dict[str, Any]:
  """Most bounds of screens are one number."""
  bound = np.asarray(bound)
  is_one = bound.size > 0 and (bound == bound.flat[0]).all()
  values = bound.flat[0].item() if is_one else bound.tolist()
  return {'shape': list(bound.shape), 'values': values}


def _decode(record: Mapping[str, Any]) -> types.Nest:
  if 'array' in record:
    return _decode_array(record['array'])
  if 'dict' in record:
    return {key: _decode(item) for key, item in record['dict']}
  if 'namedtuple' in record:
    name, fields = record['namedtuple']
    return _namedtuple(name, tuple(fields))(*map(_decode, record['items']))
  if 'list' in record:
    return [_decode(item) for item in record['list']]
  return tuple(_decode(item) for item in record['tuple'])


@functools.cache
def _namedtuple(name: str, fields: tuple[str, ...]) -> Any:
  """The same type for the same fields, so that nests compare equal."""
  return collections.namedtuple(name, fields)


def _decode_array(record: Mapping[str, Any]) -> dm_specs.Array:
  shape, dtype, name = tuple(record['shape']), np.dtype(record['dtype']), record['name']
  if 'num_values' in record:
    return dm_specs.DiscreteArray(record['num_values'], dtype, name)
  if 'bounds' in record:
    low, high = (
      np.broadcast_to(np.array(bound['values'], dtype), bound['shape'])
      for bound in record['bounds']
    )
    return dm_specs.BoundedArray(shape, dtype, low, high, name)
  return dm_specs.Array(shape, dtype, name)
