"""Checks and constants shared by environments that step all their boards together."""

from __future__ import annotations

import numpy as np

from seed_acme import types


def check_integer(environment: str, name: str, value: int, least: int) -> None:
  """Raises `types.UserError` unless the setting is an integer of at least `least`."""
  if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
    raise types.UserError(f'{environment}: {name} ({value!r}) must be an integer >= {least}')


def check_actions(
  actions: types.Nest, num_environments: int, num_actions: int, is_used: np.ndarray | None = None
) -> np.ndarray:
  """Returns actions as an array `[E]`; ValueError for another shape or values outside the choices.

  is_used: `[E]` bool; where it is False, any action is valid and 0 is returned.
  """
  actions = np.asarray(actions)
  if actions.shape != (num_environments,):
    raise ValueError(f'actions of shape {actions.shape}: expected ({num_environments},)')
  if is_used is not None:
    actions = np.where(is_used, actions, 0)
  if actions.min() < 0 or actions.max() >= num_actions:
    raise ValueError(f'actions {actions.tolist()}: expected 0 ... {num_actions - 1}')
  return actions


def constant(size: int, value: float, dtype: type) -> np.ndarray:
  """Returns a write-protected array `[size]`, which all time steps may share."""
  array: np.ndarray = np.full(size, value, dtype)
  array.setflags(write=False)
  return array
