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
  is_number = is_float or (isinstance(spec, dm_specs.Array) and is_integer(spec))
  if not is_bounded or not is_number:
    what = 'bounds' if is_number else 'a dtype such as int32, and bounds,'
    raise types.UserError(
      f'{where} must be an integer or float array with bounds (dm_env.specs.BoundedArray or '
      f'DiscreteArray), it is {spec!r}: give it {what} in a wrapper of the environment'
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


def check_entropy(where: str, target: float, action_spec: types.Nest) -> None:
  """Raises `types.UserError` for an entropy, in nats, that no policy over these actions can have.

  A weight that is learnt to reach it would grow without limit, or vanish. where: the setting.
  Continuous actions are those of a density within [-1, 1], whose entropy is at most log 2 each.
  """
  action_specs = tree.flatten(action_spec)
  sizes = [_num_choices(spec) for spec in action_specs if is_integer(spec)]
  num_continuous = sum(math.prod(spec.shape) for spec in action_specs if not is_integer(spec))
  greatest = sum(float(np.log(size).sum()) for size in sizes) + num_continuous * math.log(2)
  if not greatest:
    raise types.UserError(
      f'{where} is an entropy, but these actions leave no choice: set it to None'
    )
  if target >= greatest:
    raise types.UserError(
      f'{where} is an entropy of {target:g} nats, but that of a uniform policy over these actions '
      f'is {greatest:.4g}: choose a smaller one'
    )
  if target < 0 and not num_continuous:
    raise types.UserError(
      f'{where} is an entropy of {target:g} nats, but that of discrete actions is never below 0: '
      f'choose one between 0 and {greatest:.4g}, the entropy of a uniform policy'
    )


def _num_choices(spec: Any) -> np.ndarray:
  return np.broadcast_to(spec.maximum, spec.shape).astype(np.float64) + 1


def is_integer(spec: Any) -> bool:
  """Whether an array of the action holds discrete choices."""
  return np.issubdtype(spec.dtype, np.integer)
