"""From an `EnvironmentConfig` to E environments. Optional packages are imported on use only.

The ids:

* `catch`, `memory_chain`: seed_acme's own.
* `atari:GAME`, `atari:MontezumaRevenge`: settings as in `atari.Settings`.
* `gym:ID`, `gymnasium:ID`; a bare id that ends in a version (`CartPole-v1`,
  `ALE/Pong-v5`) is gym's.
* `package.module:factory` or `package.module.factory`: your own function
  `factory(seed, **settings)`, called once for each environment with a seed of its own;
  it returns a dm_env, gym or gymnasium environment. If it has a parameter
  `num_environments` it is called once, `factory(seed, num_environments=E, **settings)`,
  and returns a `core.VectorEnvironment`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import re
from typing import Any, NamedTuple

import dm_env
import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import atari_vector
from seed_acme.envs import catch
from seed_acme.envs import gym_adapter
from seed_acme.envs import memory_chain
from seed_acme.envs import vector

# Natively vectorised: `(num_environments, seed, **settings)`.
_OWN: dict[str, Callable[..., core.VectorEnvironment]] = {
    'catch': catch.Catch,
    'memory_chain': memory_chain.MemoryChain,
}
_DESCRIPTIONS = {
    'catch': 'move a paddle under a falling ball',
    'memory_chain': 'repeat at the end of the episode what was shown at its start',
}
_GYM_PACKAGES = ('gym', 'gymnasium')
_ATARI = 'atari:'
_ATARI_PACKAGES = ('ale_py', 'cv2')
# An optional namespace or module, a name, and the version that every gym id ends in.
_GYM_ID = re.compile(r'^([\w.-]+[:/])*[\w.-]+-v\d+$')
_FACTORY = re.compile(r'^[^\W\d]\w*(\.[^\W\d]\w*)*[.:][^\W\d]\w*$')


class KnownEnvironments(NamedTuple):
  """A line of `seed-acme list`.

  id: as in `EnvironmentConfig`; ID stands for the name within a package.
  settings: names of the accepted settings, empty where they depend on ID.
  is_available: whether what it needs is installed. install: the command that does it.
  """
  id: str
  description: str
  settings: tuple[str, ...]
  is_available: bool
  install: str


def make(
    config: config_lib.EnvironmentConfig, num_environments: int, seed: int, *,
    renders: bool = False,
) -> core.VectorEnvironment:
  """`num_environments` environments with seeds drawn from (seed, index).

  So environment i behaves the same however many others there are, unless it is natively
  vectorised and draws for all from one stream (`catch`, `memory_chain`). Wrong ids and
  settings raise `types.UserError`, as in `check`.

  renders: the environment has a method `render() -> [H, W, 3]` uint8, which shows
    environment 0 as it is now; `types.UserError` for one that cannot.
  """
  if num_environments < 1:
    raise types.UserError(f'num_environments ({num_environments}) must be >= 1')
  check(config)
  environment = _make(config, num_environments, seed, renders)
  if renders and not (hasattr(environment, 'render') and getattr(environment, 'can_render', True)):
    environment.close()
    raise types.UserError(
        f'environment {config.id!r} cannot show its screen: give it a method '
        'render() -> uint8 [H, W, 3], or do without pictures of it')
  return environment


def _make(
    config: config_lib.EnvironmentConfig, num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  if config.id in _OWN:
    return _OWN[config.id](num_environments, seed, **config.settings)
  if config.id.startswith(_ATARI):
    return _make_atari(config, num_environments, seed, renders)
  package, level = _gym_level(config.id)
  if package:
    def make_one(one_seed: int) -> dm_env.Environment:
      return gym_adapter.make(package, level, one_seed, config.settings, renders)
  else:
    factory = _user_factory(config.id)
    if 'num_environments' in _parameters(factory):
      return _require_vector(config.id, factory(
          seed, num_environments=num_environments, **config.settings))
    def make_one(one_seed: int) -> dm_env.Environment:
      return _as_dm_env(config.id, factory(one_seed, **config.settings), one_seed)
  return vector.VectorOfEnvironments(
      [make_one(one_seed) for one_seed in environment_seeds(seed, num_environments)], config.id)


def _make_atari(
    config: config_lib.EnvironmentConfig, num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  game, settings = _atari_game_and_settings(config)
  seeds = environment_seeds(seed, num_environments)
  if settings.vectorized and not renders:
    return atari_vector.AtariVector(game, seeds, settings)
  settings = dataclasses.replace(settings, vectorized=False, num_threads=1)
  return vector.VectorOfEnvironments(
      [atari.Atari(game, one_seed, settings) for one_seed in seeds], config.id)


def environment_seeds(seed: int, num_environments: int) -> list[int]:
  """A seed below 2**32 for each environment, a function of (seed, index) alone."""
  return [
      int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
      for index in range(num_environments)]


def environment_spec(config: config_lib.EnvironmentConfig) -> types.EnvironmentSpec:
  """Builds one environment, reads its specification and closes it."""
  environment = make(config, num_environments=1, seed=0)
  try:
    return environment.spec
  finally:
    environment.close()


def check(config: config_lib.EnvironmentConfig) -> None:
  """Raises `types.UserError` for what can be known to be wrong without an environment.

  An id that does not exist (the message names near ones), a setting that is not accepted
  (it names the accepted ones), a package that is not installed (it names the extra).
  """
  package, level = _gym_level(config.id)
  if config.id in _OWN:
    own = _OWN[config.id]
    _check_settings(config, own, skip=('num_environments', 'seed'))
    own(num_environments=1, seed=0, **config.settings).close()  # cheap, and checks the values
  elif config.id.startswith(_ATARI):
    _check_atari(config)
  elif package:
    if not _is_installed(package):
      raise types.UserError(
          f'environment {config.id!r} needs {package}: pip install seed_acme[{package}]')
    gym_adapter.check(package, level, config.settings)
  elif _FACTORY.match(config.id):
    factory = _user_factory(config.id)
    _check_settings(config, factory, skip=('num_environments', 'seed'))
  else:
    raise types.UserError(
        f'unknown environment {config.id!r}{_near(config.id, _known_ids())}: expected one of '
        f'{", ".join(_OWN)}, atari:GAME, a gym id with its version, gym:ID, gymnasium:ID, or '
        'package.module:factory')


def _check_atari(config: config_lib.EnvironmentConfig) -> None:
  for package in _ATARI_PACKAGES:
    if not _is_installed(package):
      raise types.UserError(
          f'environment {config.id!r} needs {package}: pip install seed_acme[atari]')
  _check_settings(config, atari.Settings, skip=())
  game, _ = _atari_game_and_settings(config)
  atari.rom_path(game)


def _atari_game_and_settings(config: config_lib.EnvironmentConfig) -> tuple[str, atari.Settings]:
  settings: dict[str, Any] = config.settings
  return config.id[len(_ATARI):], atari.Settings(**settings)


def known_environments() -> list[KnownEnvironments]:
  """What `EnvironmentConfig.id` may be. Imports no optional package."""
  listed = [
      KnownEnvironments(
          name, _DESCRIPTIONS[name], tuple(_settings(own, ('num_environments', 'seed'))),
          is_available=True, install='')
      for name, own in _OWN.items()]
  listed.append(KnownEnvironments(
      f'{_ATARI}GAME', 'an Atari game, such as atari:MontezumaRevenge',
      tuple(_settings(atari.Settings, ())), all(map(_is_installed, _ATARI_PACKAGES)),
      'pip install seed_acme[atari]'))
  for package in _GYM_PACKAGES:
    listed.append(KnownEnvironments(
        f'{package}:ID', f'any environment registered with {package}', (),
        _is_installed(package), f'pip install seed_acme[{package}]'))
  listed.append(KnownEnvironments(
      'package.module:factory', 'your own factory(seed, **settings)', (), True, ''))
  return listed


def _gym_level(environment_id: str) -> tuple[str, str]:
  """(package, id there), or ('', '') if the id is not one of gym's or gymnasium's."""
  package, colon, level = environment_id.partition(':')
  if colon and package in _GYM_PACKAGES:
    return package, level
  return ('gym', environment_id) if _GYM_ID.match(environment_id) else ('', '')


def _user_factory(environment_id: str) -> Callable[..., Any]:
  separator = ':' if ':' in environment_id else '.'
  path, _, name = environment_id.rpartition(separator)
  try:
    module = importlib.import_module(path)
  except ImportError as error:
    raise types.UserError(
        f'environment {environment_id!r}: cannot import {path!r}: {error}'
        f'{_near(environment_id, _known_ids())}') from error
  factory = getattr(module, name, None)
  if not callable(factory):
    functions = [key for key, value in vars(module).items() if callable(value)]
    raise types.UserError(
        f'environment {environment_id!r}: {path} has no function {name!r}'
        f'{_near(name, functions)}')
  return factory


def _as_dm_env(environment_id: str, environment: Any, seed: int) -> dm_env.Environment:
  if isinstance(environment, dm_env.Environment) or hasattr(environment, 'observation_spec'):
    return environment
  # gym's vectors have both spaces too, but steps that end apart are not dm_env's.
  if hasattr(environment, 'observation_space') and not hasattr(environment, 'num_envs'):
    return gym_adapter.GymEnvironment(environment, seed, environment_id)
  raise types.UserError(
      f'{environment_id} returned {type(environment).__name__}: expected a dm_env, gym or '
      'gymnasium environment (for a core.VectorEnvironment give the factory a parameter '
      'num_environments)')


def _require_vector(environment_id: str, environment: Any) -> core.VectorEnvironment:
  if hasattr(environment, 'num_environments') and hasattr(environment, 'spec'):
    return environment
  raise types.UserError(
      f'{environment_id} has a parameter num_environments but returned '
      f'{type(environment).__name__}: expected a core.VectorEnvironment')


def _check_settings(
    config: config_lib.EnvironmentConfig, function: Callable[..., Any], skip: Iterable[str]
) -> None:
  kinds = {parameter.kind for parameter in _parameters(function).values()}
  accepted = _settings(function, skip)
  unknown = [name for name in config.settings if name not in accepted]
  if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
    raise types.UserError(
        f'environment {config.id!r} has no setting {unknown[0]!r}: expected '
        f'{", ".join(accepted) or "none"}')
  missing = [
      name for name, parameter in list(_parameters(function).items())[1:]
      if name in accepted and parameter.default is parameter.empty
      and name not in config.settings]
  if missing:
    raise types.UserError(f'environment {config.id!r} needs the setting {missing[0]!r}')


def _settings(function: Callable[..., Any], skip: Iterable[str]) -> list[str]:
  return [
      name for name, parameter in _parameters(function).items()
      if name not in skip and parameter.kind in (
          parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)]


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
  return dict(inspect.signature(function).parameters)


def _is_installed(package: str) -> bool:
  return importlib.util.find_spec(package) is not None


def _known_ids() -> list[str]:
  ids = [*_OWN, *(_ATARI + game for game in atari_games.GAMES)]
  for package in _GYM_PACKAGES:
    if _is_installed(package):
      levels = gym_adapter.known_levels(package)
      ids += levels if package == 'gym' else [f'{package}:{level}' for level in levels]
  return ids


def _near(name: str, names: Iterable[str]) -> str:
  near = difflib.get_close_matches(name, names, n=3)
  return f' (near: {", ".join(near)})' if near else ''
