"""Adapts environments of `gym` (old and 0.26) or `gymnasium` to dm_env.

The adapter uses only attributes and class names, so it imports neither package; the
functions at the end, which build an environment from an id, import the one they need.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import importlib
import importlib.util
import inspect
from typing import Any
import warnings

import dm_env
import numpy as np

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import edited_modules
from seed_acme.checks import extras
from seed_acme.checks import near_names
from seed_acme.envs import action_scaling
from seed_acme.envs import atari_games
from seed_acme.envs import gym_spaces
from seed_acme.envs import mujoco_setup
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import time_steps

_MID = dm_env.StepType.MID
# A setting of gymnasium's `make_vec`, which makes all environments at once.
VECTORIZATION_MODE = 'vectorization_mode'
OF_THEIR_OWN = 'vector_entry_point'  # an implementation written for many environments
_VECTORIZATION_MODES = ('sync', 'async', OF_THEIR_OWN)


class GymEnvironment(dm_env.Environment):
  """One gym or gymnasium environment; the adapter owns it and closes it.

  Terminated is LAST with discount 0. Truncated (`TimeLimit.truncated` in the info of the
  4-tuple interface) is LAST with discount 1; termination wins if both hold.
  The first reset is seeded, by `reset(seed=...)` or else by `seed(...)`; later resets
  continue the environment's own random stream. An environment with neither is not seeded.

  A Discrete space is counted from 0 here, whatever its `start`; its specification is
  int32. Observations are cast to the dtype of their space if it is of the same or a wider
  kind (float64 to float32, int to float), because many environments are careless about it.
  """

  def __init__(self, environment: Any, seed: int, name: str):
    """name: the environment's, for messages. `types.UserError` for unsupported spaces."""
    self._environment = environment
    self._seed: int | None = seed
    self._observation = gym_spaces.make_converter(
      environment.observation_space, f'{name}: observation space', 'observation'
    )
    self._action = gym_spaces.make_converter(
      environment.action_space, f'{name}: action space', 'action'
    )
    self._name = name
    self._has_ended = True
    self.frames_per_step = int(getattr(environment, 'frames_per_step', 1))

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode."""
    result = self._seeded_reset()
    # (observation, info) since gym 0.26; before, only the observation, which may be a tuple, too.
    if (
      isinstance(result, tuple)
      and len(result) == 2
      and isinstance(result[1], dict)
      and not (
        'Tuple' in gym_spaces.class_names(self._environment.observation_space)
        and self._environment.observation_space.contains(result)
      )
    ):
      result = result[0]
    self._has_ended = False
    return dm_env.restart(self._observation.read(result))

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: matches `action_spec`. It is ignored after LAST, where a new episode starts."""
    if self._has_ended:
      return self.reset()
    result = self._environment.step(self._action.write(action))
    observation, reward, terminated, truncated = self._of_either_api(result)
    observation = self._observation.read(observation)
    self._has_ended = bool(terminated or truncated)
    if not self._has_ended:
      return dm_env.TimeStep(_MID, reward, 1.0, observation)
    if terminated:
      return dm_env.termination(reward, observation)
    return dm_env.truncation(reward, observation)

  def _of_either_api(self, result: Any) -> tuple[Any, Any, bool, bool]:
    """Returns observation, reward, terminated, truncated from the result of either `step` API."""
    size = len(result) if isinstance(result, (tuple, list)) else 0
    if size == 5:
      observation, reward, terminated, truncated, _ = result
    elif size == 4:
      observation, reward, done, info = result
      truncated = done and bool(info.get('TimeLimit.truncated', False))
      terminated = done and not truncated
    else:
      raise time_steps.WrongValue(
        'what step() returns',
        'observation, reward, terminated, truncated, info (or observation, reward, done, info)',
        f'{size} values' if size else type(result).__name__,
      )
    return observation, reward, terminated, truncated

  def observation_spec(self) -> types.Nest:
    return self._observation.spec

  def action_spec(self) -> types.Nest:
    return self._action.spec

  def render(self) -> np.ndarray:
    """Returns a picture `[H, W, 3]` uint8. `types.UserError` if it cannot, or lacks a package."""
    screen = self._rendered()
    if isinstance(screen, np.ndarray):
      return screen
    raise types.UserError(
      f'{self._name} cannot show its screen, render() returned '
      f"{type(screen).__name__}: build it with render_mode='rgb_array'"
    )

  def _rendered(self) -> Any:
    """Returns the result of the environment's own `render`."""
    inside = getattr(self._environment, 'unwrapped', self._environment)
    # Before gym 0.26 the mode was an argument of every call.
    is_old = _accepts(getattr(inside, 'render', lambda: None), 'mode')
    is_mujoco = mujoco_setup.is_mujoco(inside)
    if is_mujoco:
      mujoco_setup.choose_backend()
    try:
      return self._environment.render(**({'mode': 'rgb_array'} if is_old else {}))
    except Exception as error:
      if is_mujoco:
        raise mujoco_setup.no_pictures(self._name, error) from error
      if not {'DependencyNotInstalled', 'NotImplementedError'} & gym_spaces.class_names(error):
        raise
      needs = str(error) or 'its method render() is not implemented'
      if 'pygame' in needs:  # gym would name one of its own extras
        needs = f'it needs pygame: {extras.install_command("video")}'
      raise types.UserError(f'{self._name} cannot show its screen: {needs}') from error

  def close(self) -> None:
    self._environment.close()

  def _seeded_reset(self) -> Any:
    seed, self._seed = self._seed, None
    if seed is None:
      return self._environment.reset()
    # A wrapper accepts **kwargs for the wrapped environment, so both signatures are checked.
    inside = getattr(self._environment, 'unwrapped', self._environment)
    if _accepts(self._environment.reset, 'seed') and _accepts(inside.reset, 'seed'):
      return self._environment.reset(seed=seed)
    if callable(getattr(self._environment, 'seed', None)):
      self._environment.seed(seed)
    return self._environment.reset()


def _accepts(function: Callable[..., Any], name: str) -> bool:
  try:
    parameters = inspect.signature(function).parameters.values()
  except ValueError:  # a compiled function without a signature
    return False
  return any(p.name == name or p.kind == p.VAR_KEYWORD for p in parameters)


def make(
  package: str, level: str, seed: int, settings: dict[str, Any], renders: bool = False
) -> GymEnvironment:
  """Makes one environment of an installed `package`, `gym` or `gymnasium`, by its id there.

  The package's own environment checker is off unless the settings ask for it, because it slows
  every step, fills the output with warnings, and `VectorOfEnvironments` checks anyway.
  Raises `types.UserError` if it needs a missing package, or is to render and has no render_mode.
  """
  if renders:
    settings = {'render_mode': 'rgb_array', **settings}
    try:
      check(package, level, settings)
    except types.UserError as error:
      raise types.UserError(f'no pictures of {level!r}: {error}') from error
  with warnings.catch_warnings():
    warnings.filterwarnings('ignore', message='.*Box bound precision lowered')
    environment = build(package, 'make', level, **{'disable_env_checker': True, **settings})
  return GymEnvironment(environment, seed, level)


def build(package: str, function: str, level: str, **arguments: Any) -> Any:
  """Calls `gym.make` or `gymnasium.make_vec`. `types.UserError` for a missing package, or for a
  setting that `check` could not check."""
  module = import_package(package)
  try:
    return getattr(module, function)(level, **arguments)
  except (ImportError, module.error.DependencyNotInstalled) as error:
    raise _missing_package(package, level, error) from error
  except TypeError as error:  # an environment with **kwargs passes them on, unseen by `check`
    if 'keyword argument' not in str(error):
      raise
    raise types.UserError(f'{package} environment {level!r} with {arguments}: {error}') from error


def check(package: str, level: str, settings: dict[str, Any]) -> None:
  """Raises `types.UserError` for an unknown id or setting; builds no environment.

  level: `[module:][namespace/]Name-v0`; the module is imported, to register the id.
  """
  gym = import_package(package)
  spec = _registration(gym, package, level)
  mujoco_setup.check_level(package, level, spec.entry_point)
  accepted = _accepted_settings(gym, spec, settings.get(VECTORIZATION_MODE))
  if accepted is not None:
    accepted = [*accepted, *action_scaling.NAMES]
    settings_lib.check_names(f'{package} environment {level!r}', settings, accepted)


def _registration(gym: Any, package: str, level: str) -> Any:
  """Returns a level's registration, after importing the module that the level names."""
  module, _, registered = level.rpartition(':')
  try:
    if module:
      dotted_path.import_module(module, f'{package} environment {level!r}')
    return gym.spec(registered)
  except (gym.error.Error, ImportError) as error:
    spelled = spelled_elsewhere(package, level)
    if spelled:  # gym's own message would be misleading
      raise types.UserError(f'unknown {package} environment {level!r}{spelled}') from error
    near = near_names.near(registered, known_levels(package))
    fix = f'. {dotted_path.IMPORTABLE}' if isinstance(error, ImportError) else ''
    raise types.UserError(f'unknown {package} environment {level!r}{near}: {error}{fix}') from error


def spelled_elsewhere(package: str, level: str) -> str:
  """Says how other suites spell a level, for a message; '' if none has it."""
  if hint := atari_games.hint(level):
    registered = level.rpartition(':')[2]
    if registered.startswith('ALE/') and importlib.util.find_spec('ale_py') is not None:
      hint += f", gymnasium's own is gymnasium:ale_py:{registered}"
    return hint
  if package == 'gym' and importlib.util.find_spec('gymnasium') is not None:
    if level in known_levels('gymnasium'):
      return f': gym does not have it, gymnasium does; write gymnasium:{level}'
  return ''


def known_levels(package: str) -> list[str]:
  """Returns the ids registered in an installed `package`."""
  return sorted(import_package(package).envs.registry)


def _entry_point(gym: Any, spec: Any, mode: Any) -> Any:
  """Returns what builds the environment. mode: None, or the setting `vectorization_mode`."""
  if mode is None or not hasattr(gym, 'make_vec'):
    return spec.entry_point
  where = f'{gym.__name__} environment {spec.id!r}: {VECTORIZATION_MODE}'
  if mode not in _VECTORIZATION_MODES:
    raise types.UserError(f'{where} ({mode!r}) must be one of {", ".join(_VECTORIZATION_MODES)}')
  if mode != OF_THEIR_OWN:
    return spec.entry_point
  if spec.vector_entry_point is None:
    raise types.UserError(f'{where} {mode}: it has none; take sync or async')
  return spec.vector_entry_point


def _accepted_settings(gym: Any, spec: Any, mode: Any) -> list[str] | None:
  """Returns the keyword arguments of `make` and of the environment; None if it accepts any."""
  entry_point = _entry_point(gym, spec, mode)
  of_vectors = [VECTORIZATION_MODE] if hasattr(gym, 'make_vec') else []
  try:
    if isinstance(entry_point, str):
      path, _, attribute = entry_point.partition(':')
      entry_point = getattr(edited_modules.import_current(path), attribute)
  except (ImportError, gym.error.DependencyNotInstalled) as error:
    raise _missing_package(gym.__name__, spec.id, error) from error
  try:
    parameters = inspect.signature(entry_point).parameters.values()
  except ValueError:  # a compiled class without a signature
    return None
  if any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters):
    return None
  if mode == OF_THEIR_OWN:
    return [name for name in (p.name for p in parameters) if name != 'num_envs'] + of_vectors
  # autoreset would replace an episode's last observation by the next episode's first.
  of_make = [
    name
    for name in inspect.signature(gym.make).parameters
    if name not in ('id', 'kwargs', 'autoreset')
  ]
  return [parameter.name for parameter in parameters] + of_make + of_vectors


def _missing_package(package: str, level: str, error: Exception) -> types.UserError:
  return types.UserError(
    f'{package} environment {level!r} needs a package that is not installed: {error}'
  )


def import_package(package: str) -> Any:
  """Imports `gym` or `gymnasium` without their notices."""
  # gym prints a notice to stderr at import, from a table that can be emptied.
  if package == 'gym':
    with contextlib.suppress(ImportError):
      importlib.import_module('gym_notices.notices').notices.clear()
  # Both packages add a warning filter at import, which ends with this context.
  with warnings.catch_warnings():
    return importlib.import_module(package)
