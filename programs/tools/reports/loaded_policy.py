"""A trained policy as a callable from an observation, or a batch of them, to actions."""

from __future__ import annotations

from typing import Any

import dm_env
import numpy as np
import tree

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.envs import time_steps
from seed_acme.inference import policy as policy_lib
from seed_acme.programs.building import build


class LoadedPolicy:
  """A policy that acts for one environment, or for a batch of them after `reset(batch_size)`.

  It keeps the recurrent state and the previous action of each row. Call `reset` before an episode;
  in a batch, whose episodes end at different times, `is_first` marks the rows where one begins.
  Input that does not match the environment's specification raises a `types.UserError`. Actions are
  in the specification's units, too, which may differ from those of the wrapped environment:
  continuous ones are in [-1, 1], and choices count from 0.
  """

  def __init__(self, acting: build.Acting, agent_steps: int, is_greedy: bool, seed: int):
    """agent_steps: of the run when the weights were saved, for schedules of exploration."""
    self._agent_steps = agent_steps
    self.spec: types.EnvironmentSpec = acting.spec
    self._policy: policy_lib.Policy = acting.policy
    self._policy.refresh()
    self._is_greedy = is_greedy
    self._random = np.random.default_rng(seed)
    self.reset()

  def reset(self, batch_size: int | None = None) -> None:
    """Makes the next observation the first of an episode, in every row of a batch.

    batch_size: of the calls from now on; None = one observation without a batch axis.
    """
    _check_batch_size(batch_size)
    self._batch_size = batch_size
    rows = batch_size or 1
    self._begins = np.ones(rows, bool)
    self._initial_state = _repeated(self._policy.initial_state(), rows)
    self._state = self._initial_state
    self._no_action = tree.map_structure(
      lambda spec: np.zeros((rows, *spec.shape), spec.dtype), self.spec.action
    )
    self._previous_action = self._no_action
    self._exploration = _repeated(self._policy.example_exploration(), rows)._replace(
      # spread as over the environments in training
      place=np.linspace(0, 1, rows, dtype=np.float32),
      is_evaluation=np.full(rows, self._is_greedy),
      agent_steps=np.full(rows, self._agent_steps, np.int64),
    )

  def __call__(
    self, observation: types.Nest, reward: Any = 0.0, discount: Any = 1.0, is_first: Any = False
  ) -> types.Nest:
    """Returns the action, `[B, ...]` for a batch of B, which the caller may change.

    observation: as in the environment's specification; `[B, ...]` for a batch.
    reward, discount: results of the previous action, for networks that take them as input; `[B]`,
      or a scalar for all. is_first: whether an episode begins here, `[B]`, which resets the state.
    """
    begins = self._begins | self._rows('is_first', is_first, bool)
    fresh = lambda new, old: np.where(
      begins.reshape(-1, *[1] * (np.ndim(old) - 1)), new, old
    ).astype(old.dtype)
    inputs = types.AgentInput(
      step_type=np.where(begins, types.FIRST, types.MID).astype(np.uint8),
      reward=np.where(begins, 0, self._rows('reward', reward, np.float32)).astype(np.float32),
      discount=self._rows('discount', discount, np.float32),
      previous_action=tree.map_structure(fresh, self._no_action, self._previous_action),
      observation=self._checked(observation),
    )
    exploration = self._exploration._replace(
      uniforms=self._random.random((len(begins), self._policy.num_uniforms), np.float32)
    )
    output, self._state = self._policy(
      inputs, tree.map_structure(fresh, self._initial_state, self._state), exploration
    )
    self._previous_action = output.action
    self._begins = np.zeros(len(begins), bool)
    # A copy, because the action is an input of the next call.
    own = tree.map_structure(np.array, output.action)
    return own if self._batch_size is not None else tree.map_structure(lambda x: x[0], own)

  def _rows(self, name: str, value: Any, dtype: Any) -> np.ndarray:
    """Returns `[B]` from a scalar for all rows, or from a value for each."""
    rows = self._batch_size or 1
    given = np.asarray(value)
    forms = ((), (self._batch_size,)) if self._batch_size is not None else ((),)
    if given.shape not in forms or given.dtype.kind not in 'biuf':
      wanted = f' or of shape ({rows},)' if self._batch_size is not None else ''
      raise types.UserError(
        f'{name} has shape {given.shape} and type {given.dtype}; this policy takes a number{wanted}'
      )
    cast = _cast(given, dtype)
    _check_finite(name, given, cast)
    return np.broadcast_to(cast, (rows,))

  def _checked(self, observation: types.Nest) -> types.Nest:
    """Returns the observation as arrays `[B, ...]` of the specification's types."""
    wanted = self.spec.observation
    try:
      return tree.map_structure_with_path_up_to(wanted, self._checked_leaf, wanted, observation)
    except (TypeError, ValueError):
      raise types.UserError(
        f'the observation is {_described(observation)}; this policy takes '
        f'{_described(self._wanted())}'
      ) from None

  def _checked_leaf(
    self, path: tuple[Any, ...], spec: dm_env.specs.Array, value: Any
  ) -> np.ndarray:
    name = 'observation' + ''.join(f'[{part!r}]' for part in path)
    given, wanted = np.asarray(value), self._shape(spec)
    takes = f'this policy takes {wanted} {spec.dtype}'
    if given.dtype.kind not in 'biuf':
      raise types.UserError(f'{name} is {_described(value)}; {takes}')
    if given.shape != wanted:
      about = self._about_batches(spec, given.shape)
      raise types.UserError(f'{name} has shape {given.shape}; {takes}{about}')
    cast = _cast(given, spec.dtype)
    if not _is_kept(given, cast):
      raise types.UserError(
        f'{name} is of type {given.dtype}, with values from {given.min()} to {given.max()}; '
        f'this policy takes {spec.dtype}, as its environment returned them in training'
      )
    _check_finite(name, given, cast)
    _check_choices(name, spec, cast)
    return cast if self._batch_size is not None else cast[None]

  def _about_batches(self, spec: dm_env.specs.Array, shape: tuple[int, ...]) -> str:
    if shape == spec.shape:
      return '. It is a single one: call reset() first'
    if shape[1:] == spec.shape and len(shape) == len(spec.shape) + 1:
      return f'. For a batch of {shape[0]} call reset({shape[0]}) first'
    return ''

  def _shape(self, spec: dm_env.specs.Array) -> tuple[int, ...]:
    return spec.shape if self._batch_size is None else (self._batch_size, *spec.shape)

  def _wanted(self) -> types.Nest:
    return tree.map_structure(
      lambda spec: np.broadcast_to(np.zeros((), spec.dtype), self._shape(spec)),
      self.spec.observation,
    )


def _repeated(nest: types.Nest, rows: int) -> Any:
  return tree.map_structure(lambda x: np.repeat(x, rows, axis=0), nest)


def _check_batch_size(batch_size: Any) -> None:
  if batch_size is not None and (not _is_whole(batch_size) or batch_size < 1):
    raise types.UserError(
      f'batch_size ({batch_size!r}) must be a whole number >= 1, or None for single observations'
    )


def _check_choices(name: str, spec: dm_env.specs.Array, values: np.ndarray) -> None:
  """Refuses choices outside the specification, which are rows of zeros to a network."""
  sizes = choices.num_values(spec)
  if sizes is None:
    return
  limits = np.broadcast_to(sizes.reshape(spec.shape), values.shape)
  is_wrong = (values < 0) | (values >= limits)
  if is_wrong.any():
    place = tuple(np.argwhere(is_wrong)[0].tolist())
    raise types.UserError(
      f'{name} is {time_steps.describe_number(values, place)}; this policy takes a choice '
      f"0 ... {limits[place] - 1}. Choices count from 0: take off the `start` of the environment's "
      'space, if it has one'
    )


def _cast(given: np.ndarray, dtype: Any) -> np.ndarray:
  with np.errstate(invalid='ignore', over='ignore'):
    return given.astype(dtype)


def _is_kept(given: np.ndarray, cast: np.ndarray) -> bool:
  """Whether a cast keeps the values. Floats may lose digits; integers must stay exact."""
  return cast.dtype.kind == 'f' or given.dtype.kind != 'f' and np.array_equal(cast, given)


def _check_finite(name: str, given: np.ndarray, cast: np.ndarray) -> None:
  """Refuses NaN, infinity and what is too large for the type, as training does: an action that
  follows from it means nothing."""
  if cast.dtype.kind != 'f' or np.isfinite(cast).all():
    return
  place = tuple(np.argwhere(~np.isfinite(cast))[0].tolist())
  raise types.UserError(
    f'{name} is {time_steps.describe_number(given, place)}; this policy takes '
    f'{time_steps.NUMBERS_WORDS} in {cast.dtype}'
  )


def _is_whole(value: Any) -> bool:
  return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _described(nest: types.Nest) -> str:
  """Describes a nest's structure, with shape and type in place of each array."""
  if isinstance(nest, dict):
    return '{' + ', '.join(f'{key!r}: {_described(nest[key])}' for key in nest) + '}'
  if isinstance(nest, tuple):
    return '(' + ', '.join(map(_described, nest)) + ')'
  array = np.asarray(nest)
  return f'{array.shape} {array.dtype}'
