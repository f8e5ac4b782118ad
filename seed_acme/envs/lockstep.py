"""Checks and constants shared by environments that step all their boards together."""

from __future__ import annotations

import numpy as np

from seed_acme import types

_CELL_PIXELS = 16


def check_integers(environment: str, least: int, **settings: int) -> None:
  """Raises `types.UserError` unless the settings are integers of at least `least`."""
  for name, value in settings.items():
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
      raise types.UserError(f'{environment}: {name} ({value!r}) must be an integer >= {least}')


def check_actions(
  actions: types.Nest, num_environments: int, num_actions: int, is_used: np.ndarray | None = None
) -> np.ndarray:
  """Returns actions as an array `[E]`; ValueError for another shape or values outside the choices.

  is_used: `[E]` bool; where it is False, any action is valid and 0 is returned.
  """
  actions = np.asarray(actions)
  check_shape(actions, (num_environments,))
  if is_used is not None:
    actions = np.where(is_used, actions, 0)
  if actions.min() < 0 or actions.max() >= num_actions:
    raise ValueError(f'actions {actions.tolist()}: expected 0 ... {num_actions - 1}')
  return actions


def check_shape(actions: np.ndarray, expected: tuple[int, ...]) -> None:
  """Raises ValueError for actions of another shape."""
  if actions.shape != expected:
    raise ValueError(f'actions of shape {actions.shape}: expected {expected}')


def constant(size: int, value: float, dtype: type) -> np.ndarray:
  """Returns a write-protected array `[size]`, which all time steps may share."""
  array: np.ndarray = np.full(size, value, dtype)
  array.setflags(write=False)
  return array


def time_step(
  is_first: np.ndarray,
  reward: np.ndarray,
  terminated: np.ndarray,
  truncated: np.ndarray,
  observation: types.Nest,
  discount: np.ndarray | float = 1.0,
) -> types.VectorTimeStep:
  """Returns the time step that a vector of gymnasium's kind describes, with arrays `[E]`.

  In the row that begins an episode, the reward and the ends are ignored. discount: applies where no
  episode is terminated.
  """
  terminated = np.asarray(terminated, bool) & ~is_first
  is_last = terminated | np.asarray(truncated, bool)
  step_type = np.where(is_first, types.FIRST, np.where(is_last, types.LAST, types.MID))
  reward = np.where(is_first, 0, reward).astype(np.float32)
  return types.VectorTimeStep(
    step_type.astype(np.uint8),
    reward,
    np.where(terminated, 0, discount).astype(np.float32),
    observation,
    score=reward.copy(),
  )


def picture(cells: np.ndarray) -> np.ndarray:
  """Draws the cells of a board, `[rows, columns]` (gray) or `[rows, columns, 3]` uint8, as a screen
  `[16 * rows, 16 * columns, 3]`."""
  if cells.ndim == 2:
    cells = np.repeat(cells[:, :, None], 3, axis=2)
  return cells.repeat(_CELL_PIXELS, axis=0).repeat(_CELL_PIXELS, axis=1)


class EndTogether:
  """Base class of environments whose episodes are equally long, so that they end together.

  Time steps share the arrays that never change; those are write-protected.
  """

  def __init__(self, num_environments: int, spec: types.EnvironmentSpec):
    self.num_environments = num_environments
    self.spec = spec
    self._step_types = {
      kind: constant(num_environments, kind, np.uint8)
      for kind in (types.FIRST, types.MID, types.LAST)
    }
    self._zeros = constant(num_environments, 0, np.float32)
    self._ones = constant(num_environments, 1, np.float32)

  def close(self) -> None:
    """Nothing to free."""

  def _observation(self) -> np.ndarray:
    """Returns the current observations `[E, ...]`, in a new array."""
    raise NotImplementedError

  def _timestep(
    self, step_type: int, reward: np.ndarray, discount: np.ndarray
  ) -> types.VectorTimeStep:
    return types.VectorTimeStep(
      self._step_types[step_type], reward, discount, self._observation(), score=reward
    )
