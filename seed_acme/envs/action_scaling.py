"""Rescales an environment's float actions to [-1, 1], or turns them into a choice of N values.

Every environment with a bounded float action takes these settings in addition to its own;
their names are reserved (`NAMES`), and the environment never sees them.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math
from typing import Annotated, Any, Literal

from dm_env import specs as dm_specs
import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.envs import closing
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import vector
from seed_acme.envs import wrapper

Spacing = Literal['linear', 'log']
# Actions outside [-1, 1] by no more than this are rounding errors and clipped.
TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True)
class Settings:
  """How the bounded float actions of an environment are converted.

  rescale_actions: the agent acts in [-1, 1] and the environment gets
    `low + (a + 1) / 2 * (high - low)`; False: the agent acts within the environment's bounds.
  action_bins: N >= 2: each dimension becomes a choice among the N values of `value_table`,
    which are then rescaled, so that an action of one number is one discrete action; 0: actions
    stay continuous.
  action_spacing: spacing of the N values: equal distances, or magnitudes that grow exponentially.
  action_ratio: ratio of the largest magnitude to the smallest that is not 0; for 'log'.
  """

  rescale_actions: bool = True
  action_bins: Annotated[int, bounds.at_least(0)] = 0
  action_spacing: Spacing = 'linear'
  action_ratio: Annotated[float, bounds.above(1)] = 30.0  # seed_rl's mujoco/env.py


NAMES = tuple(field.name for field in dataclasses.fields(Settings))


def split(environment_id: str, settings: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
  """Returns this module's settings and the environment's own; `types.UserError` for bad values."""
  ours = {name: value for name, value in settings.items() if name in NAMES}
  scaling = Settings(**ours)
  settings_lib.check_values(f'environment {environment_id!r}', scaling)
  _check_together(environment_id, ours)
  own = {name: value for name, value in settings.items() if name not in NAMES}
  return scaling, own


def _check_together(environment_id: str, ours: dict[str, Any]) -> None:
  def refuse(name: str, fix: str) -> None:
    raise types.UserError(f'environment {environment_id!r}: {name} ({ours[name]!r}) {fix}')

  bins = ours.get('action_bins', 0)
  if bins == 1:
    refuse('action_bins', 'must be an integer >= 2, or 0 for continuous actions')
  for name in ('action_spacing', 'action_ratio'):
    if name in ours and not bins:
      refuse(name, 'does nothing without action_bins: set action_bins, the number of values')
  if 'action_ratio' in ours and ours.get('action_spacing') != 'log':
    refuse('action_ratio', 'is for action_spacing log only: set that, or leave it out')
  if bins and not ours.get('rescale_actions', True):
    refuse('rescale_actions', 'does nothing with action_bins: leave one of them out')


def value_table(settings: Settings) -> np.ndarray:
  """`[N]` float64, rising and symmetric about 0: the value of each choice within [-1, 1].

  linear: `-1 + 2 i / (N - 1)`. log: `-m` and `m` for the magnitudes
  `m = ratio ** (-j / (k - 1))`, j = 0 ... k - 1, k = N // 2 (m = 1 if k is 1), and 0 between
  them if N is odd.
  """
  bins = settings.action_bins
  if settings.action_spacing == 'linear':
    return np.linspace(-1, 1, bins)
  magnitudes = np.geomspace(1, 1 / settings.action_ratio, bins // 2)
  return np.concatenate([-magnitudes, [0.0] * (bins % 2), magnitudes[::-1]])


def wrap(
  environment: core.VectorEnvironment, settings: Settings, name: str
) -> core.VectorEnvironment:
  """Wraps the environment in `ScaledActions`, or returns it if there is nothing to convert.

  Raises `types.UserError` if actions are to become choices but none is float, or one has no
  bounds. Without `action_bins`, unbounded float actions stay as they are.
  """
  leaves = vector.Structure(environment.spec.action).leaves
  kinds = [_kind(leaf) for leaf in leaves]
  if settings.action_bins:
    fix = None
    if 'float' in kinds:
      fix = 'give it finite bounds, in a wrapper of your own'
    elif 'bounded' not in kinds:
      fix = 'leave action_bins out'
    if fix:
      with closing.told(name):
        environment.close()
      raise types.UserError(
        f'environment {name!r}: action_bins ({settings.action_bins}) needs bounded float '
        f'actions, it takes {environment.spec.action!r}: {fix}'
      )
  elif not settings.rescale_actions or 'bounded' not in kinds:
    return environment
  return ScaledActions(environment, settings)


class ScaledActions(wrapper.Wrapper):
  """A `core.VectorEnvironment` whose bounded float actions are replaced, see `Settings`.

  Rescaled actions are float32 in [-1, 1]. Choices are int32, 0 ... N - 1, in the shape of the
  action, or a `DiscreteArray` for an action of one number. Other leaves of the action pass as
  they are. Called from one thread, like the wrapped environment, which it owns.
  """

  def __init__(self, environment: core.VectorEnvironment, settings: Settings):
    super().__init__(environment)
    self._structure = vector.Structure(environment.spec.action)
    converters = [_converter(leaf, settings) for leaf in self._structure.leaves]
    self.spec = dataclasses.replace(
      environment.spec, action=self._structure.unflatten([spec for spec, _ in converters])
    )
    self._convert = [convert for _, convert in converters]

  def reset(self) -> types.VectorTimeStep:
    return self._environment.reset()

  def step(self, actions: types.Nest) -> types.VectorTimeStep:
    """Steps all environments. actions: nest of `[E, ...]` that matches `spec.action`.

    ValueError for another shape, or values outside [-1, 1] or the choices, after LAST too.
    """
    leaves = self._structure.flatten(actions)
    converted = [convert(leaf) for convert, leaf in zip(self._convert, leaves)]
    return self._environment.step(self._structure.unflatten(converted))


def unit_actions(actions: Any) -> np.ndarray:
  """Clips float actions to [-1, 1]; ValueError if one is outside by more than rounding."""
  actions = np.asarray(actions)
  largest = np.abs(actions).max()
  if largest <= 1:
    return actions
  if not largest <= 1 + TOLERANCE:  # also for NaN
    raise ValueError(f'actions {actions.tolist()}: expected numbers in [-1, 1]')
  return np.clip(actions, -1, 1)


def _kind(spec: dm_specs.Array) -> str:
  """Returns 'bounded', 'float' (unbounded) or 'other'. One missing bound makes it unbounded."""
  if not np.issubdtype(spec.dtype, np.floating):
    return 'other'
  is_bounded = isinstance(spec, dm_specs.BoundedArray) and (
    np.isfinite(spec.minimum).all() and np.isfinite(spec.maximum).all()
  )
  return 'bounded' if is_bounded else 'float'


def _converter(
  spec: dm_specs.Array, settings: Settings
) -> tuple[dm_specs.Array, Callable[[Any], np.ndarray]]:
  """Returns the agent's specification of a leaf, and a function from its `[E, ...]` to `spec`."""
  if not (isinstance(spec, dm_specs.BoundedArray) and _kind(spec) == 'bounded'):
    return spec, np.asarray
  low, high = (
    np.broadcast_to(bound, spec.shape).astype(np.float64) for bound in (spec.minimum, spec.maximum)
  )
  centre, half, dtype = (low + high) / 2, (high - low) / 2, spec.dtype

  def rescale(unit: np.ndarray) -> np.ndarray:
    # Rounding must not move values out of bounds.
    values = centre + unit.astype(np.float64) * half
    return np.minimum(np.maximum(values, low), high).astype(dtype)

  bins = settings.action_bins
  if not bins:
    is_same = (low == -1).all() and (high == 1).all()
    shown = dm_specs.BoundedArray(
      spec.shape, np.float32, np.full(spec.shape, -1), np.full(spec.shape, 1), spec.name
    )
    if is_same:
      return shown, lambda actions: unit_actions(actions).astype(dtype, copy=False)
    return shown, lambda actions: rescale(unit_actions(actions))
  table = value_table(settings)

  def look_up(actions: Any) -> np.ndarray:
    actions = np.asarray(actions)
    if spec.shape and actions.ndim == 1:  # one choice per environment
      actions = actions.reshape(-1, *spec.shape)
    if actions.dtype.kind not in 'iu' or actions.min() < 0 or actions.max() >= bins:
      raise ValueError(f'actions {actions.tolist()}: expected integers 0 ... {bins - 1}')
    return rescale(table[actions])

  if math.prod(spec.shape) == 1:
    return dm_specs.DiscreteArray(bins, np.int32, spec.name), look_up
  return dm_specs.BoundedArray(
    spec.shape, np.int32, np.zeros(spec.shape), np.full(spec.shape, bins - 1), spec.name
  ), look_up
