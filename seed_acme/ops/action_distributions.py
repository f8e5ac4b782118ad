"""Which distribution suits the actions of an environment."""

from __future__ import annotations

from collections.abc import Callable
import math
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.ops import deterministic_tanh
from seed_acme.ops import distributions
from seed_acme.ops import multi_categorical
from seed_acme.ops import normal
from seed_acme.ops import std_functions
from seed_acme.ops import structured
from seed_acme.ops import tanh_normal

_CONTINUOUS: dict[str, Callable[[int, std_functions.StdFunction], distributions.Distribution]] = {
  'tanh_normal': tanh_normal.TanhNormal,
  'clipped_normal': normal.ClippedNormal,
  'deterministic_tanh': lambda num_actions, std: deterministic_tanh.DeterministicTanh(num_actions),
}


def make(
  action_spec: types.Nest, *, continuous: str, std: std_functions.StdFunction
) -> distributions.Distribution:
  """The distribution of one environment's actions; `types.UserError` if none fits.

  action_spec: nest of dm_env specifications. Each leaf gets
    `DiscreteArray`, or a scalar integer `BoundedArray`: Categorical;
    an integer `BoundedArray` of any other shape, minimum 0: MultiCategorical;
    a float `BoundedArray`, bounds exactly [-1, 1]: what `continuous` names;
    and a nest of them Joint. Actions other than vectors are flattened, row-major, in params.
  continuous: `tanh_normal`, `clipped_normal` or `deterministic_tanh`.
  std: from parameters to standard deviations, of `ops.std_functions`.

  Actions come back as int32 or float32 in the shape of the specification and within its
  bounds; a cast to its dtype is all they need.
  """
  if continuous not in _CONTINUOUS:
    raise types.UserError(
      f'continuous ({continuous!r}) must be one of {", ".join(map(repr, _CONTINUOUS))}'
    )
  _check(action_spec)

  def part(spec: Any) -> distributions.Distribution:
    if not _is_integer(spec):
      return _shaped(_CONTINUOUS[continuous](math.prod(spec.shape), std), spec)
    sizes = np.broadcast_to(spec.maximum, spec.shape).astype(np.int64).ravel() + 1
    if not spec.shape:
      return distributions.Categorical(int(sizes[0]))
    return _shaped(multi_categorical.MultiCategorical(sizes.tolist()), spec)

  parts = tree.map_structure(part, action_spec)
  return structured.Joint(parts) if tree.is_nested(action_spec) else parts


def num_uniforms(action_spec: types.Nest) -> int:
  """U of every distribution that `make` may choose: one for each number of the action."""
  _check(action_spec)
  return sum(math.prod(spec.shape) for spec in tree.flatten(action_spec))


def _shaped(distribution: distributions.Distribution, spec: Any) -> distributions.Distribution:
  if len(spec.shape) == 1:
    return distribution
  return structured.Reshaped(distribution, spec.shape)


def _is_integer(spec: Any) -> bool:
  return np.issubdtype(spec.dtype, np.integer)


def _check(action_spec: types.Nest) -> None:
  if not tree.flatten(action_spec):
    raise types.UserError('the environment takes no action: its specification is empty')
  for path, spec in tree.flatten_with_path(action_spec):
    name = '/'.join(map(str, path))
    _check_leaf(f'the action {name}' if name else 'the action', spec)


def _check_leaf(where: str, spec: Any) -> None:
  """where: the words for the leaf in an error."""
  is_float = isinstance(spec, dm_specs.Array) and np.issubdtype(spec.dtype, np.floating)
  is_bounded = (
    isinstance(spec, dm_specs.BoundedArray)
    and np.isfinite([np.min(spec.minimum), np.max(spec.maximum)]).all()
  )
  if not is_bounded or not (is_float or _is_integer(spec)):
    raise types.UserError(
      f'{where} must be an integer or float array with bounds (dm_env.specs.BoundedArray or '
      f'DiscreteArray), it is {spec!r}: give it bounds in a wrapper of the environment'
    )
  if not math.prod(spec.shape):
    raise types.UserError(f'{where} has shape {spec.shape}, with no number in it: leave it out')
  lows, highs = np.unique(spec.minimum).tolist(), np.unique(spec.maximum).tolist()
  if is_float and (lows, highs) != ([-1], [1]):
    raise types.UserError(
      f'{where} has minimum {lows} and maximum {highs}, but continuous actions must have -1 '
      'and 1: rescale the actions to [-1, 1] (environment setting rescale_actions=True)'
    )
  if not is_float and lows != [0]:
    raise types.UserError(
      f'{where} has minimum {lows}, but discrete actions start at 0: shift them in a wrapper '
      'of the environment'
    )
