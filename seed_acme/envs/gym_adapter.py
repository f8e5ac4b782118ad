"""Environments with the interface of `gym` (old and 0.26) or `gymnasium`, as dm_env ones.

The adapter looks at attributes and class names only, so it imports neither package; the
functions at the end, which build an environment from an id, import the one they need.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import difflib
import importlib
import inspect
from typing import Any
import warnings

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import mujoco_setup

_MID = dm_env.StepType.MID


class GymEnvironment(dm_env.Environment):
  """One gym or gymnasium environment; it belongs to the adapter, which closes it.

  Terminated is LAST with discount 0. Truncated (`TimeLimit.truncated` in the info of the
  4-tuple interface) is LAST with discount 1; termination wins where both hold.
  The first reset is seeded, by `reset(seed=...)` or else by `seed(...)`; later resets go
  on with the environment's own random stream. An environment with neither is not seeded.

  A Discrete space is counted from 0 here, whatever its `start`; its specification is
  int32. Observations are cast to the dtype of their space where that loses no kind
  (float64 to float32, int to float), since many environments are careless about it.
  """

  def __init__(self, environment: Any, seed: int, name: str):
    """name: of the environment, for messages. `types.UserError` for unsupported spaces."""
    self._environment = environment
    self._seed: int | None = seed
    self._observation = _converter(environment.observation_space, f'{name}: observation space')
    self._action = _converter(environment.action_space, f'{name}: action space')
    self._name = name
    self._has_ended = True
    self.frames_per_step = int(getattr(environment, 'frames_per_step', 1))

  def reset(self) -> dm_env.TimeStep:
    """FIRST of a new episode."""
    result = self._seeded_reset()
    # (observation, info) since gym 0.26; before, the observation, which may be a tuple too.
    if (
      isinstance(result, tuple)
      and len(result) == 2
      and isinstance(result[1], dict)
      and not (
        'Tuple' in _class_names(self._environment.observation_space)
        and self._environment.observation_space.contains(result)
      )
    ):
      result = result[0]
    self._has_ended = False
    return dm_env.restart(self._observation.read(result))

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: as `action_spec`. After LAST it is not looked at: a new episode starts."""
    if self._has_ended:
      return self.reset()
    result = self._environment.step(self._action.write(action))
    if len(result) == 5:
      observation, reward, terminated, truncated, _ = result
    elif len(result) == 4:
      observation, reward, done, info = result
      truncated = done and bool(info.get('TimeLimit.truncated', False))
      terminated = done and not truncated
    else:
      raise types.UserError(
        f'{self._name}: step() returned {len(result)} values: expected observation, reward, '
        'terminated, truncated, info (or observation, reward, done, info)'
      )
    observation = self._observation.read(observation)
    self._has_ended = bool(terminated or truncated)
    if not self._has_ended:
      return dm_env.TimeStep(_MID, reward, 1.0, observation)
    if terminated:
      return dm_env.termination(reward, observation)
    return dm_env.truncation(reward, observation)

  def observation_spec(self) -> types.Nest:
    return self._observation.spec

  def action_spec(self) -> types.Nest:
    return self._action.spec

  def render(self) -> np.ndarray:
    """`[H, W, 3]` uint8. `types.UserError` if it cannot, or needs a package for it."""
    inside = getattr(self._environment, 'unwrapped', self._environment)
    # Before gym 0.26 the mode was an argument of every call.
    is_old = _accepts(getattr(inside, 'render', lambda: None), 'mode')
    is_mujoco = mujoco_setup.is_mujoco(inside)
    if is_mujoco:
      mujoco_setup.choose_backend()
    try:
      screen = self._environment.render(**({'mode': 'rgb_array'} if is_old else {}))
    except Exception as error:
      if is_mujoco:
        raise mujoco_setup.no_pictures(self._name, error) from error
      if not {'DependencyNotInstalled', 'NotImplementedError'} & _class_names(error):
        raise
      raise types.UserError(f'{self._name} cannot show its screen: {error}') from error
    if isinstance(screen, np.ndarray):
      return screen
    raise types.UserError(
      f'{self._name} cannot show its screen, render() returned '
      f"{type(screen).__name__}: build it with render_mode='rgb_array'"
    )

  def close(self) -> None:
    self._environment.close()

  def _seeded_reset(self) -> Any:
    seed, self._seed = self._seed, None
    if seed is None:
      return self._environment.reset()
    # A wrapper takes **kwargs for the environment inside, so both ends are asked.
    inside = getattr(self._environment, 'unwrapped', self._environment)
    if _accepts(self._environment.reset, 'seed') and _accepts(inside.reset, 'seed'):
      return self._environment.reset(seed=seed)
    if callable(getattr(self._environment, 'seed', None)):
      self._environment.seed(seed)
    return self._environment.reset()


class _Converter:
  """One space: its specification, and how values cross.

  read: what the environment returns -> as the specification. write: the other way.
  """

  def __init__(self, spec: types.Nest, read: Callable[[Any], Any], write: Callable[[Any], Any]):
    self.spec = spec
    self.read = read
    self.write = write


def _converter(space: Any, where: str) -> _Converter:
  """By class name, since gym and gymnasium have equal spaces in unrelated classes."""
  names = _class_names(space)
  for name, make_converter in _CONVERTERS.items():
    if name in names:
      return make_converter(space, where)
  raise types.UserError(
    f'{where} {space} is not supported: expected one of {", ".join(_CONVERTERS)}; '
    'wrap the environment'
  )


def _discrete(space: Any, where: str) -> _Converter:
  del where
  start = int(getattr(space, 'start', 0))
  return _Converter(
    dm_specs.DiscreteArray(int(space.n), dtype=np.int32),
    read=lambda value: np.asarray(np.asarray(value) - start, np.int32),
    write=lambda value: int(value) + start,
  )


def _box(space: Any, where: str) -> _Converter:
  spec = dm_specs.BoundedArray(space.shape, space.dtype, space.low, space.high)
  return _array_converter(spec, 0, where)


def _multi_discrete(space: Any, where: str) -> _Converter:
  start = np.asarray(getattr(space, 'start', 0), space.dtype)
  spec = dm_specs.BoundedArray(space.nvec.shape, space.dtype, 0, space.nvec - 1)
  return _array_converter(spec, start, where)


def _multi_binary(space: Any, where: str) -> _Converter:
  return _array_converter(dm_specs.BoundedArray(space.shape, space.dtype, 0, 1), 0, where)


def _array_converter(spec: dm_specs.Array, start: Any, where: str) -> _Converter:
  has_start, dtype = bool(np.any(start)), spec.dtype

  def read(value: Any) -> np.ndarray:
    value = np.asarray(value)
    if value.dtype != dtype:
      if not np.can_cast(value.dtype, dtype, 'same_kind'):
        raise types.UserError(f'{where}: expected {dtype}, got {value.dtype}')
      value = value.astype(dtype)
    return value - start if has_start else value

  def write(value: Any) -> np.ndarray:
    value = np.asarray(value, dtype)
    return value + start if has_start else value

  return _Converter(spec, read, write)


def _dict(space: Any, where: str) -> _Converter:
  inner = {key: _converter(value, f'{where}/{key}') for key, value in space.spaces.items()}
  return _Converter(
    {key: converter.spec for key, converter in inner.items()},
    read=lambda value: {key: inner[key].read(value[key]) for key in inner},
    write=lambda value: {key: inner[key].write(value[key]) for key in inner},
  )


def _tuple(space: Any, where: str) -> _Converter:
  inner = [_converter(value, f'{where}/{index}') for index, value in enumerate(space.spaces)]
  return _Converter(
    tuple(converter.spec for converter in inner),
    read=lambda value: tuple(c.read(v) for c, v in zip(inner, value, strict=True)),
    write=lambda value: tuple(c.write(v) for c, v in zip(inner, value, strict=True)),
  )


_CONVERTERS: dict[str, Callable[[Any, str], _Converter]] = {
  'Discrete': _discrete,
  'Box': _box,
  'MultiDiscrete': _multi_discrete,
  'MultiBinary': _multi_binary,
  'Dict': _dict,
  'Tuple': _tuple,
}


def _class_names(value: Any) -> set[str]:
  return {cls.__name__ for cls in type(value).__mro__}


def _accepts(function: Callable[..., Any], name: str) -> bool:
  parameters = inspect.signature(function).parameters.values()
  return any(p.name == name or p.kind == p.VAR_KEYWORD for p in parameters)


def make(
  package: str, level: str, seed: int, settings: dict[str, Any], renders: bool = False
) -> GymEnvironment:
  """One environment of an installed `package`, `gym` or `gymnasium`, by its id there.

  The package's own checker of environments is off unless the settings ask for it: it
  slows every step, fills the output with warnings, and `VectorOfEnvironments` checks.
  `types.UserError` if it needs a missing package, or is to render and has no render_mode.
  """
  module = _import(package)
  if renders:
    settings = {'render_mode': 'rgb_array', **settings}
    try:
      check(package, level, settings)
    except types.UserError as error:
      raise types.UserError(f'no pictures of {level!r}: {error}') from error
  try:
    with warnings.catch_warnings():
      warnings.filterwarnings('ignore', message='.*Box bound precision lowered')
      environment = module.make(level, **{'disable_env_checker': True, **settings})
  except (ImportError, module.error.DependencyNotInstalled) as error:
    raise _missing_package(package, level, error) from error
  except TypeError as error:  # an environment with **kwargs hands them on, unseen by `check`
    if 'keyword argument' not in str(error):
      raise
    raise types.UserError(f'{package} environment {level!r} with {settings}: {error}') from error
  return GymEnvironment(environment, seed, level)


def check(package: str, level: str, settings: dict[str, Any]) -> None:
  """Raises `types.UserError` for an unknown id or setting; builds no environment.

  level: `[module:][namespace/]Name-v0`; the module is imported, to register the id.
  """
  gym = _import(package)
  module, _, registered = level.rpartition(':')
  try:
    if module:
      importlib.import_module(module)
    spec = gym.spec(registered)
  except (gym.error.Error, ImportError) as error:
    near = difflib.get_close_matches(registered, known_levels(package), n=3)
    hint = f' (near: {", ".join(near)})' if near else ''
    raise types.UserError(f'unknown {package} environment {level!r}{hint}: {error}') from error
  mujoco_setup.check_level(package, level, spec.entry_point)
  accepted = _accepted_settings(gym, spec)
  for name in settings:
    if accepted is not None and name not in accepted:
      raise types.UserError(
        f'{package} environment {level!r} has no setting {name!r}: '
        f'expected one of {", ".join([*accepted, *action_scaling.NAMES])}'
      )


def known_levels(package: str) -> list[str]:
  """Ids registered in an installed `package`."""
  return sorted(_import(package).envs.registry)


def _accepted_settings(gym: Any, spec: Any) -> list[str] | None:
  """Keyword arguments of `make` and of the environment; None if it takes any."""
  entry_point = spec.entry_point
  try:
    if isinstance(entry_point, str):
      path, _, attribute = entry_point.partition(':')
      entry_point = getattr(importlib.import_module(path), attribute)
  except (ImportError, gym.error.DependencyNotInstalled) as error:
    raise _missing_package(gym.__name__, spec.id, error) from error
  parameters = inspect.signature(entry_point).parameters.values()
  if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
    return None
  # autoreset would replace the last observation of an episode by the next one's first.
  of_make = [
    name
    for name in inspect.signature(gym.make).parameters
    if name not in ('id', 'kwargs', 'autoreset')
  ]
  return [parameter.name for parameter in parameters] + of_make


def _missing_package(package: str, level: str, error: Exception) -> types.UserError:
  return types.UserError(
    f'{package} environment {level!r} needs a package that is not installed: {error}'
  )


def _import(package: str) -> Any:
  # gym prints a notice to stderr at import, from a table that can be emptied.
  if package == 'gym':
    with contextlib.suppress(ImportError):
      importlib.import_module('gym_notices.notices').notices.clear()
  # Both packages add a filter of warnings at import; here it goes with the context.
  with warnings.catch_warnings():
    return importlib.import_module(package)
