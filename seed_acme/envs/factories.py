"""Finds the user's own `factory(seed, **settings)` by its dotted path, and checks its result."""

from __future__ import annotations

from collections.abc import Callable, Collection
import inspect
import types as python_types
from typing import Any

import dm_env

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import dotted_path
from seed_acme.checks import near_names
from seed_acme.envs import action_scaling
from seed_acme.envs import gym_adapter
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import suite

# Parameters of a factory that are no settings.
_SEED, _NUMBER = 'seed', 'num_environments'
_POSITIONAL = (
  inspect.Parameter.POSITIONAL_ONLY,
  inspect.Parameter.POSITIONAL_OR_KEYWORD,
  inspect.Parameter.VAR_POSITIONAL,
)


def find(environment_id: str) -> Callable[..., Any]:
  """Returns the function at `package.module:name` or `package.module.name`; `suite.UnknownId` if
  there is no such module."""
  separator = ':' if ':' in environment_id else '.'
  path, _, name = environment_id.rpartition(separator)
  module = _module(environment_id, path)
  factory = getattr(module, name, None)
  if not callable(factory):
    functions = [key for key, value in vars(module).items() if callable(value)]
    raise types.UserError(
      f'environment {environment_id!r}: {path} has no function {name!r}'
      f'{near_names.near(name, functions)}'
    )
  return factory


def _module(environment_id: str, path: str) -> python_types.ModuleType:
  try:
    return dotted_path.import_module(path, f'environment {environment_id!r}')
  except ImportError as error:
    raise suite.UnknownId(
      f'environment {environment_id!r}: cannot import {path!r}: {error}',
      f'. {dotted_path.IMPORTABLE}',
    ) from error


def check(config: config_lib.EnvironmentConfig, factory: Callable[..., Any]) -> None:
  """Raises `types.UserError` for a factory that takes no seed, and for settings that it does not
  accept, or cannot receive."""
  try:
    seed = _seed_parameter(factory, config.settings)
  except (TypeError, ValueError) as error:
    name = config.id.replace(':', '.').rpartition('.')[2]
    raise types.UserError(
      f'environment {config.id!r}: the factory does not take a seed ({error}): write it '
      f'{name}(seed, **settings)'
    ) from error
  reserved = [name for name in settings_lib.names(factory) if name in action_scaling.NAMES]
  if reserved:
    raise types.UserError(
      f'environment {config.id!r}: the factory has a parameter {reserved[0]!r}, but '
      f'{", ".join(action_scaling.NAMES)} are settings of seed_acme itself: rename it'
    )
  settings_lib.check(config, factory, skip=(_NUMBER, seed), also=action_scaling.NAMES)


def _seed_parameter(factory: Callable[..., Any], settings: Collection[str]) -> str:
  """Returns the parameter that gets the seed, `seed` or the first one; TypeError if there is none,
  and ValueError for a compiled function without a signature.

  A first parameter that has a default, such as `render_mode=None`, is a setting and must not get
  the seed, unless its name says that it is for the seed or for nothing. settings: names that a
  configuration gives.
  """
  if _SEED in settings_lib.names(factory):
    return _SEED
  parameters = settings_lib.parameters(factory)
  first = next(iter(parameters.values()), None)
  if first and first.kind in _POSITIONAL and first.name not in (_NUMBER, *settings):
    if first.default is first.empty or _SEED in first.name or first.name.startswith('_'):
      return first.name
  raise TypeError(f'it takes {", ".join(parameters) or "nothing"}')


def seeded(factory: Callable[..., Any]) -> Callable[..., Any]:
  """Returns a factory that has passed `check` as a function of the seed and the settings."""
  if _SEED in settings_lib.names(factory):
    return lambda seed, **settings: factory(seed=seed, **settings)
  return factory


def makes_vectors(factory: Callable[..., Any]) -> bool:
  """Whether the factory makes all environments at once."""
  return _NUMBER in settings_lib.names(factory)


def as_dm_env(environment_id: str, environment: Any, seed: int) -> dm_env.Environment:
  """Returns a factory's result, wrapped in the gym adapter if it is of gym or gymnasium."""
  # A wrapper of gym may pass on attributes of a dm_env environment inside it, so the class decides.
  # robosuite's wrapper for gym has an `observation_spec` too, but its `action_spec` is no method.
  has_specs = hasattr(type(environment), 'observation_spec') and callable(
    getattr(environment, 'action_spec', None)
  )
  if isinstance(environment, dm_env.Environment) or has_specs:
    return environment
  # Vectors have both spaces too.
  if hasattr(environment, 'observation_space') and not hasattr(environment, 'num_envs'):
    return gym_adapter.GymEnvironment(environment, seed, environment_id)
  if hasattr(environment, 'observation_spec'):
    return environment
  raise types.UserError(
    f'{environment_id} returned {type(environment).__name__}: expected a dm_env, gym or '
    'gymnasium environment (for a core.VectorEnvironment or a vector of gymnasium give the factory '
    'a parameter num_environments)'
  )


def require_vector(
  environment_id: str, environment: Any, num_environments: int
) -> core.VectorEnvironment:
  """Returns the result of a factory with `num_environments`; `types.UserError` if it is no vector,
  or one of another number."""
  if hasattr(environment, 'num_environments') and hasattr(environment, 'spec'):
    if environment.num_environments != num_environments:
      raise types.UserError(
        f'{environment_id} returned {environment.num_environments} environments instead of '
        f'{num_environments}, its argument num_environments'
      )
    return environment
  raise types.UserError(
    f'{environment_id} has a parameter num_environments but returned '
    f'{type(environment).__name__}: expected a core.VectorEnvironment or a vector of gymnasium'
  )
