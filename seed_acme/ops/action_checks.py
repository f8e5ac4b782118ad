"""Checks that actions fit a distribution, before anything is started. Imports no TensorFlow."""

from __future__ import annotations

import math
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types


def check(action_spec: types.Nest) -> None:
  """Raises `types.UserError` for actions that fit no distribution of `action_distributions`."""
  if not tree.flatten(action_spec):
    raise types.UserError('the environment takes no action: its specification is empty')
  for path, spec in tree.flatten_with_path(action_spec):
    name = '/'.join(map(str, path))
    _check_leaf(f'the action {name}' if name else 'the action', spec)


def _check_leaf(where: str, spec: Any) -> None:
  """Checks one array of the action. where: its name in error messages."""
  if isinstance(spec, dm_specs.Array) and not math.prod(spec.shape):
    raise types.UserError(f'{where} has shape {spec.shape}, with no number in it: leave it out')
  is_float = isinstance(spec, dm_specs.Array) and np.issubdtype(spec.dtype, np.floating)
  is_bounded = (
    isinstance(spec, dm_specs.BoundedArray)
    and np.isfinite([np.min(spec.minimum), np.max(spec.maximum)]).all()
  )
  if not is_bounded or not (is_float or is_integer(spec)):
    raise types.UserError(
      f'{where} must be an integer or float array with bounds (dm_env.specs.BoundedArray or '
      f'DiscreteArray), it is {spec!r}: give it bounds in a wrapper of the environment'
    )
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


def is_integer(spec: Any) -> bool:
  """Whether an array of the action holds discrete choices."""
  return np.issubdtype(spec.dtype, np.integer)
