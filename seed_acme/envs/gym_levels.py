"""Builds the environments that are registered in `gym` or `gymnasium`, from their ids."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
from typing import Any
import warnings

from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import edited_modules
from seed_acme.checks import extras
from seed_acme.checks import near_names
from seed_acme.envs import action_scaling
from seed_acme.envs import atari_games
from seed_acme.envs import gym_adapter
from seed_acme.envs import mujoco_setup
from seed_acme.envs import settings as settings_lib

# A setting of gymnasium's `make_vec`, which makes all environments at once.
VECTORIZATION_MODE = 'vectorization_mode'
OF_THEIR_OWN = 'vector_entry_point'  # an implementation written for many environments
_VECTORIZATION_MODES = ('sync', 'async', OF_THEIR_OWN)
# Arguments of `make` and `make_vec` that a configuration may not give, and why.
_RESERVED = {
  'id': 'the name of the environment is environment.id',
  'autoreset': "it would replace an episode's last observation by the next episode's first",
}
_RESERVED_OF_VECTORS = {
  'num_envs': 'environments_per_actor and environment_groups set it',
  'vector_kwargs': 'the adapter sets it',
}


def make(
  package: str, level: str, seed: int, settings: dict[str, Any], renders: bool = False
) -> gym_adapter.GymEnvironment:
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
    # gym before 0.24 has no checker, and would pass the argument on to the environment.
    takes = inspect.signature(import_package(package).make).parameters
    off = {'disable_env_checker': True} if 'disable_env_checker' in takes else {}
    environment = build(package, 'make', level, **{**off, **settings})
  return gym_adapter.GymEnvironment(environment, seed, level)


def build(package: str, function: str, level: str, /, **arguments: Any) -> Any:
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
  mode = settings.get(VECTORIZATION_MODE)
  entry_point = _entry_point(gym, spec, mode)
  mujoco_setup.check_level(package, level, entry_point)
  for name, reason in {**_RESERVED, **(_RESERVED_OF_VECTORS if mode else {})}.items():
    if name in settings:
      raise types.UserError(
        f'{package} environment {level!r}: {name} ({settings[name]!r}) cannot be set, because '
        f'{reason}: leave it out'
      )
  accepted = _accepted_settings(gym, spec, entry_point, mode)
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
    spelled = spelled_elsewhere(package, level, is_imported=isinstance(error, gym.error.Error))
    if spelled:  # gym's own message would be misleading
      raise types.UserError(f'unknown {package} environment {level!r}{spelled}') from error
    near = near_names.near(registered, known_levels(package))
    fix = f'. {dotted_path.IMPORTABLE}' if isinstance(error, ImportError) else ''
    raise types.UserError(f'unknown {package} environment {level!r}{near}: {error}{fix}') from error


def spelled_elsewhere(package: str, level: str, is_imported: bool = False) -> str:
  """Says how other suites spell a level, for a message; '' if none has it.

  is_imported: whether the module that the level may name has been imported, to register its ids.
  """
  if hint := atari_games.hint(level):
    registered = level.rpartition(':')[2]
    if registered.startswith('ALE/') and importlib.util.find_spec('ale_py') is not None:
      hint += f", gymnasium's own is gymnasium:ale_py:{registered}"
    return hint
  if package == 'gym' and importlib.util.find_spec('gymnasium') is not None:
    registered = level.rpartition(':')[2] if is_imported else level
    if registered in known_levels('gymnasium'):
      return f': gym does not have it, gymnasium does; write gymnasium:{level}'
  return ''


def known_levels(package: str) -> list[str]:
  """Returns the ids registered in an installed `package`."""
  registry = import_package(package).envs.registry
  is_mapping = hasattr(registry, '__iter__')  # not before gym 0.24
  return sorted(registry if is_mapping else (spec.id for spec in registry.all()))


def _entry_point(gym: Any, spec: Any, mode: Any) -> Any:
  """Returns what builds the environment. mode: None, or the setting `vectorization_mode`."""
  where = f'{gym.__name__} environment {spec.id!r}'
  has_modes = hasattr(gym, 'make_vec')
  if has_modes and mode is not None and mode not in _VECTORIZATION_MODES:
    known = ', '.join(_VECTORIZATION_MODES)
    raise types.UserError(f'{where}: {VECTORIZATION_MODE} ({mode!r}) must be one of {known}')
  if has_modes and mode == OF_THEIR_OWN:
    if spec.vector_entry_point is None:
      raise types.UserError(
        f'{where}: {VECTORIZATION_MODE} {mode}: it has none; take sync or async'
      )
    return spec.vector_entry_point
  if spec.entry_point is None:  # gymnasium registers such levels, too
    raise types.UserError(
      f'{where} exists only as a vector: set {VECTORIZATION_MODE} to {OF_THEIR_OWN}'
    )
  return spec.entry_point


def _accepted_settings(gym: Any, spec: Any, entry_point: Any, mode: Any) -> list[str] | None:
  """Returns the keyword arguments of `make` and of the environment; None if it accepts any."""
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
  of_make = [
    name
    for name in inspect.signature(gym.make).parameters
    if name != 'kwargs' and name not in _RESERVED
  ]
  return [parameter.name for parameter in parameters] + of_make + of_vectors


def _missing_package(package: str, level: str, error: Exception) -> types.UserError:
  if 'box2d' in str(error).lower():  # what gym advises cannot be installed beside the others
    return types.UserError(
      f'{package} environment {level!r} needs Box2D and pygame: {extras.install_command("box2d")}'
    )
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
