"""From an `EnvironmentConfig` to E environments. Optional packages are imported on use only.

The ids:

* `catch`, `memory_chain`, `toy`, `toy_memory`: seed_acme's own.
* `atari:GAME`, `atari:MontezumaRevenge`: settings as in `atari.Settings`.
* `gym:ID`, `gymnasium:ID`; a bare id that ends in a version (`CartPole-v1`,
  `ALE/Pong-v5`) is gym's.
* `dm_control:DOMAIN/TASK`, `dm_control:cheetah/run`.
* `package.module:factory` or `package.module.factory`: your own function
  `factory(seed, **settings)`, called once for each environment with a seed of its own;
  it returns a dm_env, gym or gymnasium environment. If it has a parameter
  `num_environments` it is called once, `factory(seed, num_environments=E, **settings)`,
  and returns a `core.VectorEnvironment`.

All but `catch`, `memory_chain` and Atari also take the settings of `action_scaling`.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import importlib.util
import re
from typing import Any, NamedTuple

import dm_env
import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import extras
from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import atari_vector
from seed_acme.envs import catch
from seed_acme.envs import dm_control_adapter
from seed_acme.envs import factories
from seed_acme.envs import gym_adapter
from seed_acme.envs import memory_chain
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import toy
from seed_acme.envs import vector

# Natively vectorised: `(num_environments, seed, **settings)`.
_OWN: dict[str, Callable[..., core.VectorEnvironment]] = {
  'catch': catch.Catch,
  'memory_chain': memory_chain.MemoryChain,
  'toy': toy.Toy,
  'toy_memory': toy.ToyMemory,
}
_DESCRIPTIONS = {
  'catch': 'move a paddle under a falling ball',
  'memory_chain': 'repeat at the end of the episode what was shown at its start',
  'toy': 'answer with the vector shown; continuous actions',
  'toy_memory': 'answer with the vector shown some rows ago; continuous actions',
}
_OF_OWN = ('num_environments', 'seed')  # parameters that are no settings
_OWN_WITH_FLOAT_ACTIONS = ('toy', 'toy_memory')
_GYM_PACKAGES = ('gym', 'gymnasium')
_ATARI = 'atari:'
_ATARI_PACKAGES = ('ale_py', 'cv2')
_DM_CONTROL = 'dm_control:'
# An optional namespace or module, a name, and the version that every gym id ends in.
_GYM_ID = re.compile(r'^([\w.-]+[:/])*[\w.-]+-v\d+$')
_FACTORY = re.compile(r'^[^\W\d]\w*(\.[^\W\d]\w*)*[.:][^\W\d]\w*$')


class KnownEnvironments(NamedTuple):
  """A line of `seed-acme list`.

  id: as in `EnvironmentConfig`; ID stands for the name within a package.
  settings: names of the accepted settings; without those that depend on ID.
  is_available: whether what it needs is installed. install: the command that does it.
  """

  id: str
  description: str
  settings: tuple[str, ...]
  is_available: bool
  install: str


def make(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, *, renders: bool = False
) -> core.VectorEnvironment:
  """`num_environments` environments with seeds drawn from (seed, index).

  So environment i behaves the same however many others there are, unless it is natively
  vectorised and draws for all from one stream (those of seed_acme's own). Wrong ids and
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
      'render() -> uint8 [H, W, 3], or do without pictures of it'
    )
  return environment


def _make(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  if config.id.startswith(_ATARI):
    return _make_atari(config, num_environments, seed, renders)
  if config.id in _OWN and config.id not in _OWN_WITH_FLOAT_ACTIONS:
    return _OWN[config.id](num_environments, seed, **config.settings)
  actions, settings = action_scaling.split(config.id, config.settings)
  if config.id in _OWN:
    own = _OWN[config.id](num_environments, seed, **settings)
    # Their actions are within [-1, 1] as they are, and checked there.
    return action_scaling.wrap(own, actions, config.id) if actions.action_bins else own
  return action_scaling.wrap(
    _make_foreign(config.id, settings, num_environments, seed, renders), actions, config.id
  )


def _make_foreign(
  environment_id: str, settings: dict[str, Any], num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  package, level = _gym_level(environment_id)
  if environment_id.startswith(_DM_CONTROL):

    def make_one(one_seed: int) -> dm_env.Environment:
      return dm_control_adapter.make(
        environment_id[len(_DM_CONTROL) :], one_seed, settings, renders
      )
  elif package:

    def make_one(one_seed: int) -> dm_env.Environment:
      return gym_adapter.make(package, level, one_seed, settings, renders)
  else:
    factory = factories.find(environment_id, _known_ids)
    if 'num_environments' in settings_lib.parameters(factory):
      return factories.require_vector(
        environment_id, factory(seed, num_environments=num_environments, **settings)
      )

    def make_one(one_seed: int) -> dm_env.Environment:
      return factories.as_dm_env(environment_id, factory(one_seed, **settings), one_seed)

  return vector.VectorOfEnvironments(
    [make_one(one_seed) for one_seed in environment_seeds(seed, num_environments)], environment_id
  )


def _make_atari(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  game, settings = _atari_game_and_settings(config)
  seeds = environment_seeds(seed, num_environments)
  if settings.vectorized and not renders:
    return atari_vector.AtariVector(game, seeds, settings)
  settings = dataclasses.replace(settings, vectorized=False, num_threads=1)
  return vector.VectorOfEnvironments(
    [atari.Atari(game, one_seed, settings) for one_seed in seeds], config.id
  )


def environment_seeds(seed: int, num_environments: int) -> list[int]:
  """A seed below 2**32 for each environment, a function of (seed, index) alone."""
  return [
    int(np.random.SeedSequence(seed, spawn_key=(index,)).generate_state(1)[0])
    for index in range(num_environments)
  ]


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
    _check_own(config)
  elif config.id.startswith(_ATARI):
    _check_atari(config)
  elif config.id.startswith(_DM_CONTROL):
    _require(config.id, 'dm_control', 'dm-control')
    _, settings = action_scaling.split(config.id, config.settings)
    dm_control_adapter.check(config.id[len(_DM_CONTROL) :], settings)
  elif package:
    _require(config.id, package, package)
    _, settings = action_scaling.split(config.id, config.settings)
    gym_adapter.check(package, level, settings)
  elif _FACTORY.match(config.id):
    factories.check(config, factories.find(config.id, _known_ids))
    action_scaling.split(config.id, config.settings)
  else:
    raise types.UserError(
      f'unknown environment {config.id!r}{settings_lib.near(config.id, _known_ids())}: expected '
      f'one of {", ".join(_OWN)}, atari:GAME, a gym id with its version, gym:ID, gymnasium:ID, '
      'dm_control:DOMAIN/TASK, or package.module:factory'
    )


def _check_own(config: config_lib.EnvironmentConfig) -> None:
  own, settings = _OWN[config.id], config.settings
  also: tuple[str, ...] = ()
  if config.id in _OWN_WITH_FLOAT_ACTIONS:
    also = action_scaling.NAMES
    _, settings = action_scaling.split(config.id, settings)
  settings_lib.check(config, own, skip=_OF_OWN, also=also)
  own(num_environments=1, seed=0, **settings).close()  # cheap, and checks the values


def _check_atari(config: config_lib.EnvironmentConfig) -> None:
  for package in _ATARI_PACKAGES:
    _require(config.id, package, 'atari')
  settings_lib.check(config, atari.Settings, skip=())
  game, _ = _atari_game_and_settings(config)
  atari.rom_path(game)


def _atari_game_and_settings(config: config_lib.EnvironmentConfig) -> tuple[str, atari.Settings]:
  settings: dict[str, Any] = config.settings
  return config.id[len(_ATARI) :], atari.Settings(**settings)


def known_environments() -> list[KnownEnvironments]:
  """What `EnvironmentConfig.id` may be. Imports no optional package."""
  of_actions = action_scaling.NAMES
  listed = [
    KnownEnvironments(
      name,
      _DESCRIPTIONS[name],
      (*settings_lib.names(own, _OF_OWN), *(of_actions if name in _OWN_WITH_FLOAT_ACTIONS else ())),
      is_available=True,
      install='',
    )
    for name, own in _OWN.items()
  ]
  listed.append(
    KnownEnvironments(
      f'{_ATARI}GAME',
      'an Atari game, such as atari:MontezumaRevenge',
      tuple(settings_lib.names(atari.Settings)),
      all(map(_is_installed, _ATARI_PACKAGES)),
      extras.install_command('atari'),
    )
  )
  for package in _GYM_PACKAGES:
    listed.append(
      KnownEnvironments(
        f'{package}:ID',
        f'any environment registered with {package}; takes its settings too',
        of_actions,
        _is_installed(package),
        extras.install_command(package),
      )
    )
  listed.append(
    KnownEnvironments(
      f'{_DM_CONTROL}DOMAIN/TASK',
      "a task of dm_control's suite, such as dm_control:cheetah/run",
      (*dm_control_adapter.SETTINGS, *of_actions),
      _is_installed('dm_control'),
      extras.install_command('dm-control'),
    )
  )
  listed.append(
    KnownEnvironments(
      'package.module:factory',
      'your own factory(seed, **settings); takes its settings too',
      of_actions,
      True,
      '',
    )
  )
  return listed


def _gym_level(environment_id: str) -> tuple[str, str]:
  """(package, id there), or ('', '') if the id is not one of gym's or gymnasium's."""
  package, colon, level = environment_id.partition(':')
  if colon and package in _GYM_PACKAGES:
    return package, level
  return ('gym', environment_id) if _GYM_ID.match(environment_id) else ('', '')


def _require(environment_id: str, package: str, extra: str) -> None:
  if not _is_installed(package):
    raise types.UserError(
      f'environment {environment_id!r} needs {package}: {extras.install_command(extra)}'
    )


def _is_installed(package: str) -> bool:
  return importlib.util.find_spec(package) is not None


def _known_ids() -> list[str]:
  ids = [*_OWN, *(_ATARI + game for game in atari_games.GAMES)]
  for package in _GYM_PACKAGES:
    if _is_installed(package):
      levels = gym_adapter.known_levels(package)
      ids += levels if package == 'gym' else [f'{package}:{level}' for level in levels]
  if _is_installed('dm_control'):
    with contextlib.suppress(types.UserError):  # what it says of drawing is for its own ids
      ids += [_DM_CONTROL + level for level in dm_control_adapter.known_levels()]
  return ids
