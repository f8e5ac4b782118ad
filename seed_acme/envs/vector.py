"""Adapts E plain dm_env environments, stepped one after the other, to `core.VectorEnvironment`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import contextlib
import operator
from typing import Any

import dm_env
from dm_env import specs as dm_specs
import numpy as np
import tree

from seed_acme import types
from seed_acme.envs import float_specs
from seed_acme.envs import lockstep
from seed_acme.envs import time_steps
from seed_acme.envs.interpreters import spec_json

_AT_FIRST, _AFTER_FIRST = (types.FIRST,), (types.MID, types.LAST)
_SCALARS = frozenset((float, int, bool, np.float32, np.float64, np.int32, np.int64, np.bool_))


class VectorOfEnvironments:
  """Steps E `dm_env.Environment`s in a loop; called from one thread, which owns them.

  Observations keep the dtype of their specification, except float64, which becomes
  float32 (values, bounds and specification). The same holds for actions; the environment
  gets them in its own dtype. Bounds of float64 actions that float32 cannot represent are
  rounded inwards, so that every action within our specification is within the environment's. Where
  no float32 lies between its bounds, both become the nearest one, and the environment gets its own.

  Two optional attributes of an environment are read: `last_score` (float), after each reset and
  step, is the reward to report to users if it differs from the reward to learn from, which is
  reported as long as there is no such attribute; `frames_per_step` (int) is read once.

  Each step allocates the arrays of its time step; they belong to the caller.
  Everything an environment returns is checked against its specification. A `types.UserError`
  names environment, field, the expected and the actual value for: a reward, score or
  observation that is not finite in float32 (as `types.NotFinite`), a reward that is no scalar, a
  discount outside [0, 1], an observation of another structure, shape or dtype, a step type out of
  order. Choices are not checked here but in `checked.CheckedEnvironment`.
  """

  def __init__(self, environments: Sequence[dm_env.Environment], name: str):
    """environments: at least one, all with equal specifications. name: for messages."""
    if not environments:
      raise types.UserError(f'{name}: num_environments (0) must be >= 1')
    self._environments = list(environments)
    self._name = name
    self.num_environments = len(self._environments)
    first = self._environments[0]
    observation_spec, action_spec = first.observation_spec(), first.action_spec()
    for index, environment in enumerate(self._environments[1:], start=1):
      self._require_equal_specs(index, environment)
    self.spec = types.EnvironmentSpec(
      observation=tree.map_structure(float_specs.narrow_spec, observation_spec),
      action=tree.map_structure(float_specs.narrow_inwards, action_spec),
      frames_per_step=self._frames_per_step(),
    )
    self._action = Structure(action_spec)
    self._clips = [float_specs.clip_bounds(spec) for spec in self._action.leaves]
    self._observation = Structure(observation_spec)
    self._fields = time_steps.leaf_fields(observation_spec)
    # (shape and dtype as the environment returns them, dtype that is passed on)
    self._leaves = [
      (spec.shape, spec.dtype, float_specs.narrow_spec(spec).dtype)
      for spec in tree.flatten(observation_spec)
    ]
    self._has_ended = [True] * self.num_environments
    self._any_ended = True  # any(_has_ended)
    self._all_mid = [dm_env.StepType.MID] * self.num_environments

  def reset(self) -> types.VectorTimeStep:
    """Starts new episodes in all environments; every step_type is FIRST."""
    self._has_ended, self._any_ended = [True] * self.num_environments, True
    return self._collect(environment.reset() for environment in self._environments)

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """actions: nest of `[E, ...]` that matches `spec.action`; ignored where the row was LAST.

    ValueError for another structure or shape.
    """
    leaves = []
    flat = self._action.flatten(actions)
    for leaf, spec, clip in zip(flat, self._action.leaves, self._clips):
      # A copy, because an environment may modify its action, but not the caller's array.
      leaf = np.array(leaf, spec.dtype)
      lockstep.check_shape(leaf, (self.num_environments, *spec.shape))
      if clip is not None:
        np.clip(leaf, *clip, out=leaf)
      leaves.append(leaf)
    rows = zip(self._environments, self._has_ended, self._action.rows(leaves))
    return self._collect(
      environment.reset() if has_ended else environment.step(action)
      for environment, has_ended, action in rows
    )

  @property
  def can_render(self) -> bool:
    """Whether environment 0 has a method `render`."""
    return callable(getattr(self._environments[0], 'render', None))

  def render(self) -> np.ndarray:
    """Returns a picture of environment 0, `[H, W, 3]` uint8. `types.UserError` if it cannot."""
    if not self.can_render:
      raise types.UserError(
        f'{self._name} cannot show its screen: give the environment a method '
        'render() -> uint8 [H, W, 3]'
      )
    screen = self._environments[0].render()
    if not isinstance(screen, np.ndarray):
      got = type(screen).__name__
    elif screen.dtype != np.uint8 or screen.ndim != 3 or screen.shape[2] != 3:
      got = f'{screen.dtype} of shape {screen.shape}'
    else:
      return screen
    raise self._error(0, 'render()', 'uint8 of shape [H, W, 3]', got)

  def close(self) -> None:
    """Closes every environment, also when one of them raises."""
    with contextlib.ExitStack() as stack:
      for environment in self._environments:
        stack.callback(environment.close)

  def _collect(self, calls: Iterable[dm_env.TimeStep]) -> types.VectorTimeStep:
    """Combines time steps into one. calls: yields one environment's after the other's."""
    timesteps: list[dm_env.TimeStep] = []
    try:
      for timestep in calls:
        timesteps.append(timestep)
    except time_steps.WrongValue as error:
      raise error.fault.error(self._name, len(timesteps)) from error
    try:
      step_types = [timestep.step_type for timestep in timesteps]
    except AttributeError as error:
      index = [hasattr(timestep, 'step_type') for timestep in timesteps].index(False)
      found = type(timesteps[index]).__name__
      raise self._error(index, 'time step', 'a dm_env.TimeStep', found) from error
    if self._any_ended or step_types != self._all_mid:
      self._check_step_types(step_types)
    rewards = [timestep.reward for timestep in timesteps]
    discounts = [timestep.discount for timestep in timesteps]
    if types.FIRST in step_types:  # dm_env has None for reward and discount there
      for index, step_type in enumerate(step_types):
        if step_type == types.FIRST:
          rewards[index], discounts[index] = 0.0, 1.0
    with np.errstate(over='ignore'):  # what float32 cannot hold becomes infinite, and is refused
      reward = self._numbers('reward', rewards)
      discount = self._discounts(discounts)
      score = reward.copy()
      if any(hasattr(inner, 'last_score') for inner in self._environments):
        pairs = zip(self._environments, rewards)
        score = self._numbers(
          'last_score', [getattr(inner, 'last_score', default) for inner, default in pairs]
        )
      observation = self._stack_observations(timesteps)
    return types.VectorTimeStep(
      np.array(step_types, np.uint8), reward, discount, observation, score
    )

  def _check_step_types(self, step_types: list[dm_env.StepType]) -> None:
    """Checks step types against `_has_ended`, and then updates it."""
    for index, (step_type, has_ended) in enumerate(zip(step_types, self._has_ended)):
      if step_type not in (_AT_FIRST if has_ended else _AFTER_FIRST):
        words = time_steps.FIRST_WORDS if has_ended else time_steps.LATER_WORDS
        found = time_steps.describe_step_type(step_type)
        raise self._error(index, 'step_type', words, found)
    self._has_ended = [step_type == types.LAST for step_type in step_types]
    self._any_ended = any(self._has_ended)

  def _discounts(self, values: list[Any]) -> np.ndarray:
    """Returns `[E]` float32, all in [0, 1]."""
    if _are_scalars(values) and values.count(1.0) == len(values):  # almost always
      return np.ones(len(values), np.float32)
    discount = self._numbers('discount', values)
    if discount.min() < 0 or discount.max() > 1:
      index = int(np.argmax((discount < 0) | (discount > 1)))
      found = repr(float(discount[index]))
      raise self._error(index, 'discount', time_steps.DISCOUNT_WORDS, found)
    return discount

  def _numbers(self, field: str, values: list[Any]) -> np.ndarray:
    """Returns `[E]` float32, all finite."""
    # Converts all at once, and one by one only to find the wrong value. None becomes NaN.
    if _are_scalars(values) or all(map(_is_scalar, values)):
      with contextlib.suppress(TypeError, ValueError):
        numbers = np.array(values, np.float32)
        if np.isfinite(numbers).all():
          return numbers
    index = [_is_finite_scalar(value) for value in values].index(False)
    kind = types.NotFinite if _is_scalar(values[index]) else types.UserError
    raise self._error(index, field, time_steps.NUMBER_WORDS, time_steps.shown(values[index]), kind)

  def _stack_observations(self, timesteps: list[dm_env.TimeStep]) -> types.Nest:
    rows = []
    for index, timestep in enumerate(timesteps):
      try:
        rows.append(self._observation.flatten(timestep.observation))
      except (KeyError, TypeError, ValueError) as error:
        raise self._error(
          index,
          'observation',
          f'the structure of observation_spec(), {self._observation}',
          Structure(timestep.observation),
        ) from error
    return self._observation.unflatten(
      [self._stack(number, column) for number, column in enumerate(zip(*rows))]
    )

  def _stack(self, number: int, values: Sequence[Any]) -> np.ndarray:
    """Stacks leaf `number` of all environments as `[E, ...]`, all finite."""
    shape, dtype, narrow = self._leaves[number]
    buffer = np.empty((self.num_environments, *shape), narrow)
    for index, value in enumerate(values):
      value = np.asarray(value)
      if value.shape != shape or value.dtype != dtype:
        raise self._error(
          index,
          self._fields[number],
          f'{dtype} of shape {shape}',
          f'{value.dtype} of shape {value.shape}',
        )
      buffer[index] = value
    if narrow.kind == 'f' and not np.isfinite(buffer).all():
      index, *place = np.argwhere(~np.isfinite(buffer))[0].tolist()
      found = time_steps.describe_number(np.asarray(values[index]), place)
      raise self._error(
        index, self._fields[number], time_steps.NUMBERS_WORDS, found, types.NotFinite
      )
    return buffer

  def _frames_per_step(self) -> int:
    value = getattr(self._environments[0], 'frames_per_step', 1)
    try:
      return operator.index(value)  # numpy's integers, too
    except TypeError:
      raise self._error(0, 'frames_per_step', 'an int', repr(value)) from None

  def _require_equal_specs(self, index: int, environment: dm_env.Environment) -> None:
    records = [
      spec_json.encode(types.EnvironmentSpec(one.observation_spec(), one.action_spec(), 1))
      for one in (self._environments[0], environment)
    ]
    if found := spec_json.difference(*records):
      raise self._error(index, 'specification', 'that of environment 0', f'another ({found})')

  def _error(
    self,
    index: int,
    field: str,
    expected: str,
    got: Any,
    kind: type[types.UserError] = types.UserError,
  ) -> types.UserError:
    """kind: `types.NotFinite` for values such as NaN, which may not occur in the next episode."""
    return kind(f'environment {index} of {self._name}: {field}: expected {expected}, got {got}')


class Structure:
  """Flattens and unflattens nests of one structure; a single array costs nothing."""

  def __init__(self, structure: types.Nest):
    self.leaves = tree.flatten(structure)
    self._structure = structure
    self._is_array = isinstance(structure, dm_specs.Array)
    # The keys of a flat dict of arrays, in the order of its leaves.
    is_flat = type(structure) is dict and all(
      isinstance(leaf, dm_specs.Array) for leaf in structure.values()
    )
    self._keys = [path[0] for path, _ in tree.flatten_with_path(structure)] if is_flat else []
    self._key_set = frozenset(self._keys)

  def __str__(self) -> str:
    return str(tree.map_structure(lambda leaf: type(leaf).__name__, self._structure))

  def flatten(self, nest: types.Nest) -> list[Any]:
    if self._is_array:
      return [nest]
    if self._keys and type(nest) is dict and nest.keys() == self._key_set:
      return [nest[key] for key in self._keys]
    return tree.flatten_up_to(self._structure, nest, check_types=False)

  def unflatten(self, leaves: Sequence[Any]) -> types.Nest:
    return leaves[0] if self._is_array else tree.unflatten_as(self._structure, leaves)

  def rows(self, leaves: list[np.ndarray]) -> Iterable[types.Nest]:
    """Returns one nest for each index of the leading axis, which all leaves share."""
    return leaves[0] if self._is_array else map(self.unflatten, zip(*leaves))


def _are_scalars(values: list[Any]) -> bool:
  """Whether all values have the usual types of numbers; other types may be scalars, too."""
  return _SCALARS.issuperset(map(type, values))


def _is_finite_scalar(value: Any) -> bool:
  return _is_scalar(value) and bool(np.isfinite(np.asarray(value, np.float32)))


def _is_scalar(value: Any) -> bool:
  """Whether the value is a number, which may be NaN or infinite."""
  if value is None or isinstance(value, (str, bytes)):
    return False
  try:
    return np.asarray(value, np.float32).shape == ()
  except (TypeError, ValueError):
    return False
