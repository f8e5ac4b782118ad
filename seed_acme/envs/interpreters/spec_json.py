"""Encodes environment specifications as JSON, which any version of Python and numpy can read.

numpy 1.23 cannot read pickles of arrays or dtypes that numpy 2 made.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
import functools
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.envs import choices

_FRAMES = 'frames_per_step'
# Errors from reading a record that `encode` did not make. numpy raises SyntaxError for the name of
# a dtype.
_NOT_OF_THIS_FORM = (
  ArithmeticError,
  AttributeError,
  LookupError,
  MemoryError,
  RecursionError,
  SyntaxError,
  TypeError,
  ValueError,
)


def encode(spec: types.EnvironmentSpec) -> dict[str, Any]:
  """Encodes nests of dicts, lists, tuples and named tuples of arrays with or without bounds."""
  return {
    'observation': _encode(spec.observation),
    'action': _encode(spec.action),
    'frames_per_step': spec.frames_per_step,
  }


def decode(record: Mapping[str, Any]) -> types.EnvironmentSpec:
  """Decodes what `encode` returns."""
  return types.EnvironmentSpec(
    _decode(record['observation']), _decode(record['action']), record['frames_per_step']
  )


def decode_untrusted(record: Any) -> types.EnvironmentSpec:
  """Decodes like `decode`, but raises only ValueError if `record` is not a specification."""
  difference(record, record)
  try:
    spec = decode(record)
    tree.flatten((spec.observation, spec.action))  # as all users do; it sorts the keys of dicts
    if type(spec.frames_per_step) is not int:
      raise TypeError(f'{_FRAMES} is {spec.frames_per_step!r}')
    return spec
  except _NOT_OF_THIS_FORM as error:
    raise ValueError('this is no specification of an environment') from error


def difference(expected: Mapping[str, Any], given: Any) -> str:
  """Returns the first field in which two encoded specifications differ, such as
  `observation/board: float32[50] -> float32[51]`; '' if they are equal.

  The names that environments give to their arrays are ignored. Raises ValueError if `given`, which
  may come from an untrusted client, is not an encoded specification.
  """
  try:
    ours, theirs = _described(expected), _described(given)
  except _NOT_OF_THIS_FORM as error:
    raise ValueError('this is no specification of an environment') from error
  if ours.keys() != theirs.keys():
    before, after = (', '.join(sorted(one.keys() - {_FRAMES})) for one in (ours, theirs))
    return f'the arrays: {_shortened(before)} -> {_shortened(after)}'
  for path, before in ours.items():
    if before != theirs[path]:
      short, other = _shortened(before), _shortened(theirs[path])
      return f'{path}: {short} -> {other if other != short else "other bounds"}'
  return ''


def _described(record: Mapping[str, Any]) -> dict[str, str]:
  """Describes each array in words, by its path."""
  described = {_FRAMES: str(int(record[_FRAMES]))}
  for root in ('observation', 'action'):
    _describe(record[root], root, described)
  return described


def _describe(record: Mapping[str, Any], path: str, described: dict[str, str]) -> None:
  if 'array' in record:
    described[path] = _array_in_words(record['array'])
    return
  if 'dict' in record:
    items = [(str(key), item) for key, item in record['dict']]
  else:
    kind = 'list' if 'list' in record else 'tuple'
    items = [(str(i), item) for i, item in enumerate(record.get('items') or record[kind])]
    if 'namedtuple' in record:
      items = [(str(n), item) for n, (_, item) in zip(record['namedtuple'][1], items, strict=True)]
  if not items:
    described[path] = 'empty'
  for key, item in items:
    _describe(item, f'{path}/{key}', described)


def _array_in_words(record: Mapping[str, Any]) -> str:
  words = f'{np.dtype(record["dtype"]).name}{list(map(int, record["shape"]))}'
  if 'bounds' in record:  # choices have them, too, and were once saved as bounds alone
    low, high = record['bounds']
    return f'{words} from {low["values"]} to {high["values"]}'
  if 'num_values' in record:
    return f'{words}, {int(record["num_values"])} values'
  return words


def _shortened(words: str) -> str:
  return words if len(words) <= 120 else f'{words[:117]}...'


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
    record['bounds'] = [_encode_bound(spec.minimum), _encode_bound(spec.maximum)]
  if isinstance(spec, choices.ChoicesArray):
    record['num_values'] = spec.num_values.tolist()
  return record


def _encode_bound(bound: np.ndarray) -> dict[str, Any]:
  """Encodes a bound, as one number if all are equal, as most bounds of screens are."""
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
  """Returns the same type for the same fields, so that nests compare equal."""
  return collections.namedtuple(name, fields)


def _decode_array(record: Mapping[str, Any]) -> dm_specs.Array:
  shape, dtype, name = tuple(record['shape']), np.dtype(record['dtype']), record['name']
  if 'num_values' in record and 'bounds' in record:
    return choices.ChoicesArray(np.broadcast_to(record['num_values'], shape), dtype, name)
  if 'num_values' in record:
    return dm_specs.DiscreteArray(record['num_values'], dtype, name)
  if 'bounds' in record:
    low, high = (
      np.broadcast_to(np.array(bound['values'], dtype), bound['shape'])
      for bound in record['bounds']
    )
    return dm_specs.BoundedArray(shape, dtype, low, high, name)
  return dm_specs.Array(shape, dtype, name)
