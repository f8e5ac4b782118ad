"""Rejects environment specifications that no run can work with, whatever its agent and network."""

from __future__ import annotations

import math
from typing import Any

from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.envs import choices

_NUMBERS = 'biuf'  # kinds of dtypes
# An action is drawn with one float32 in (0, 1), which cannot distinguish more values.
MOST_ACTIONS = 2**24


def check(spec: types.EnvironmentSpec, name: str) -> None:
  """Raises `types.UserError` naming the environment, the field and the fix.

  name: the environment's, for messages.
  """
  observations, actions = _leaves('observation', spec.observation), _leaves('action', spec.action)
  for field, leaf in (*observations, *actions):
    _check_array(f'environment {name}: {field}', leaf)
  if not sum(math.prod(leaf.shape) for _, leaf in observations):
    raise types.UserError(
      f'environment {name}: observation: expected one number at least, got '
      f'{_described(spec.observation)}: an agent that may see nothing can be shown a constant, '
      'Box(0, 1, (1,))'
    )
  for field, leaf in actions:
    _check_action(f'environment {name}: {field}', leaf)
  if not actions:
    raise types.UserError(
      f'environment {name}: action: expected one at least, got {_described(spec.action)}'
    )
  frames = spec.frames_per_step
  if type(frames) is not int or frames < 1:
    raise types.UserError(
      f'environment {name}: frames_per_step: expected an int of 1 or more, got {frames!r} '
      f'({type(frames).__name__}): set it to the number of frames that an action lasts, 1 if it is '
      'not repeated'
    )


def _leaves(root: str, nest: types.Nest) -> list[tuple[str, Any]]:
  return [('/'.join([root, *map(str, path)]), leaf) for path, leaf in tree.flatten_with_path(nest)]


def _check_array(where: str, leaf: Any) -> None:
  if not isinstance(leaf, dm_specs.Array) or np.dtype(leaf.dtype).kind not in _NUMBERS:
    raise types.UserError(
      f'{where}: expected a dm_env.specs.Array of numbers, got {_described(leaf)}: leave it out, '
      'or turn it into numbers in a wrapper of the environment'
    )
  sizes = choices.num_values(leaf)
  if sizes is not None and sizes.max() - 1 > np.iinfo(leaf.dtype).max:
    raise types.UserError(
      f'{where}: expected choices that {leaf.dtype} holds, got {sizes.max()} values: give it '
      'another dtype'
    )


def _check_action(where: str, leaf: dm_specs.Array) -> None:
  if not math.prod(leaf.shape):
    raise types.UserError(
      f'{where}: expected one number at least, got shape {leaf.shape}: leave it out'
    )
  size = 0
  if isinstance(leaf, dm_specs.BoundedArray) and np.issubdtype(leaf.dtype, np.integer):
    size = int(np.max(leaf.maximum)) + 1  # the agent chooses among 0 ... maximum
  if size > MOST_ACTIONS:
    raise types.UserError(
      f'{where}: expected {MOST_ACTIONS} choices at most, got {size}: split it into '
      'several choices in a wrapper of the environment'
    )


def _described(nest: types.Nest) -> str:
  text = ' '.join(str(nest).split())
  return text if len(text) <= 200 else f'{text[:197]}...'
