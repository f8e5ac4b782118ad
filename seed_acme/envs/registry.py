"""From an `EnvironmentConfig` to E environments. Optional packages are imported on use only.

The ids are in `environment_ids`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import dm_env
import numpy as np

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import action_scaling
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import atari_vector
from seed_acme.envs import dm_control_adapter
from seed_acme.envs import environment_ids as ids
from seed_acme.envs import factories
from seed_acme.envs import gym_adapter
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import vector


def make(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, *, renders: bool = False
) -> core.VectorEnvironment:
  """`num_environments` environments with seeds drawn from (seed, index).

  So environment i behaves the same however many others there are, unless it is natively
  vectorised and draws for all from one stream (most of seed_acme's own). Wrong ids and
  settings raise `types.UserError`, as in `check`.

  renders: the environment has a method `render() -> [H, W, 3]` uint8, which shows
    environment 0 as it is now; `types.UserError` for one that cannot.
  """
  if num_environments < 1:
    raise types.UserError(f'num_environments ({num_environments}) must be >= 1')
  check(config)
  environment = _make(config, num_environments, seed, renders)
  if renders:
    _require_screen(environment, config.id)
  return environment


def _require_screen(environment: core.VectorEnvironment, environment_id: str) -> None:
  """Closes an environment that has none, and raises `types.UserError`."""
  if not (hasattr(environment, 'render') and getattr(environment, 'can_render', True)):
    environment.close()
    raise types.UserError(
      f'environment {environment_id!r} cannot show its screen: give it a method '
      'render() -> uint8 [H, W, 3], or do without pictures of it'
    )


def _make(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  if config.id.startswith(ids.ATARI):
    return _make_atari(config, num_environments, seed, renders)
  if config.id in ids.OWN and config.id not in ids.OWN_WITH_FLOAT_ACTIONS:
    return ids.OWN[config.id](num_environments, seed, **config.settings)
  actions, settings = action_scaling.split(config.id, config.settings)
  if config.id in ids.OWN:
    own = ids.OWN[config.id](num_environments, seed, **settings)
    # Their actions are within [-1, 1] as they are, and checked there.
    return action_scaling.wrap(own, actions, config.id) if actions.action_bins else own
  return action_scaling.wrap(
    _make_foreign(config.id, settings, num_environments, seed, renders), actions, config.id
  )


def _make_foreign(
  environment_id: str, settings: dict[str, Any], num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  package, level = ids.gym_level(environment_id)
  if environment_id.startswith(ids.DM_CONTROL):

    def make_one(one_seed: int) -> dm_env.Environment:
      return dm_control_adapter.make(
        environment_id[len(ids.DM_CONTROL) :], one_seed, settings, renders
      )
  elif package:

    def make_one(one_seed: int) -> dm_env.Environment:
      return gym_adapter.make(package, level, one_seed, settings, renders)
  else:
    factory = factories.find(environment_id, ids.known_ids)
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
  package, level = ids.gym_level(config.id)
  if config.id in ids.OWN:
    _check_own(config)
  elif config.id.startswith(ids.ATARI):
    _check_atari(config)
  elif config.id.startswith(ids.DM_CONTROL):
    _require(config.id, 'dm_control', 'dm-control')
    _, settings = action_scaling.split(config.id, config.settings)
    dm_control_adapter.check(config.id[len(ids.DM_CONTROL) :], settings)
  elif package:
    _require(config.id, package, package)
    _, settings = action_scaling.split(config.id, config.settings)
    gym_adapter.check(package, level, settings)
  elif ids.FACTORY.match(config.id):
    factories.check(config, factories.find(config.id, ids.known_ids))
    action_scaling.split(config.id, config.settings)
  else:
    hint = atari_games.hint(config.id) or settings_lib.near(config.id, ids.known_ids())
    raise types.UserError(
      f'unknown environment {config.id!r}{hint}: expected '
      f'one of {", ".join(ids.OWN)}, atari:GAME, a gym id with its version, gym:ID, gymnasium:ID, '
      'dm_control:DOMAIN/TASK, or package.module:factory'
    )


def _check_own(config: config_lib.EnvironmentConfig) -> None:
  own, settings = ids.OWN[config.id], config.settings
  also: tuple[str, ...] = ()
  if config.id in ids.OWN_WITH_FLOAT_ACTIONS:
    also = action_scaling.NAMES
    _, settings = action_scaling.split(config.id, settings)
  settings_lib.check(config, own, skip=ids.OF_OWN, also=also)
  own(num_environments=1, seed=0, **settings).close()  # cheap, and checks the values


def _check_atari(config: config_lib.EnvironmentConfig) -> None:
  for package in ids.ATARI_PACKAGES:
    _require(config.id, package, 'atari')
  settings_lib.check(config, atari.Settings, skip=())
  game, _ = _atari_game_and_settings(config)
  atari.rom_path(game)


def _atari_game_and_settings(config: config_lib.EnvironmentConfig) -> tuple[str, atari.Settings]:
  settings: dict[str, Any] = config.settings
  return config.id[len(ids.ATARI) :], atari.Settings(**settings)


def _require(environment_id: str, package: str, extra: str) -> None:
  if not ids.is_installed(package):
    raise types.UserError(
      f'environment {environment_id!r} needs {package}: {extras.install_command(extra)}'
    )
