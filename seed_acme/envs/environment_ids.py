"""The ids of environments: what each means, which there are. Imports no optional package.

The ids:

* `bit_flip`, `catch`, `memory_chain`, `toy`, `toy_memory`: seed_acme's own.
* `atari:GAME`, `atari:MontezumaRevenge`: settings as in `atari.Settings`.
* `gym:ID`, `gymnasium:ID`; a bare id that ends in a version (`CartPole-v1`,
  `ALE/Pong-v5`) is gym's.
* `dm_control:DOMAIN/TASK`, `dm_control:cheetah/run`.
* `package.module:factory` or `package.module.factory`: your own function
  `factory(seed, **settings)`, called once for each environment with a seed of its own;
  it returns a dm_env, gym or gymnasium environment. If it has a parameter
  `num_environments` it is called once, `factory(seed, num_environments=E, **settings)`,
  and returns a `core.VectorEnvironment`.

All but `bit_flip`, `catch`, `memory_chain` and Atari also take the settings of `action_scaling`.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import importlib.util
import re
from typing import NamedTuple

from seed_acme import core
from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import action_scaling
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import bit_flip
from seed_acme.envs import catch
from seed_acme.envs import dm_control_adapter
from seed_acme.envs import gym_adapter
from seed_acme.envs import memory_chain
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import toy

# Natively vectorised: `(num_environments, seed, **settings)`.
OWN: dict[str, Callable[..., core.VectorEnvironment]] = {
  'bit_flip': bit_flip.BitFlip,
  'catch': catch.Catch,
  'memory_chain': memory_chain.MemoryChain,
  'toy': toy.Toy,
  'toy_memory': toy.ToyMemory,
}
_DESCRIPTIONS = {
  'bit_flip': 'flip bits until they are those of a goal; observations with goals',
  'catch': 'move a paddle under a falling ball',
  'memory_chain': 'repeat at the end of the episode what was shown at its start',
  'toy': 'answer with the vector shown; continuous actions',
  'toy_memory': 'answer with the vector shown some rows ago; continuous actions',
}
OF_OWN = ('num_environments', 'seed')  # parameters that are no settings
OWN_WITH_FLOAT_ACTIONS = ('toy', 'toy_memory')
_GYM_PACKAGES = ('gym', 'gymnasium')
ATARI = 'atari:'
ATARI_PACKAGES = ('ale_py', 'cv2')
DM_CONTROL = 'dm_control:'
# An optional namespace or module, a name, and the version that every gym id ends in.
_GYM_ID = re.compile(r'^([\w.-]+[:/])*[\w.-]+-v\d+$')
FACTORY = re.compile(r'^[^\W\d]\w*(\.[^\W\d]\w*)*[.:][^\W\d]\w*$')


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


def gym_level(environment_id: str) -> tuple[str, str]:
  """(package, id there), or ('', '') if the id is not one of gym's or gymnasium's."""
  package, colon, level = environment_id.partition(':')
  if colon and package in _GYM_PACKAGES:
    return package, level
  return ('gym', environment_id) if _GYM_ID.match(environment_id) else ('', '')


def named_code(environment_id: str) -> str:
  """The id if it names a module to import, of a factory or of gym's `module:Name-v0`; else ''."""
  package, level = gym_level(environment_id)
  if package:
    return environment_id if ':' in level else ''
  if environment_id in OWN or environment_id.startswith((ATARI, DM_CONTROL)):
    return ''
  return environment_id if FACTORY.match(environment_id) else ''


def known_environments() -> list[KnownEnvironments]:
  """What `EnvironmentConfig.id` may be."""
  of_gym = [
    KnownEnvironments(
      f'{package}:ID',
      f'any environment registered with {package}; takes its settings too',
      action_scaling.NAMES,
      is_installed(package),
      extras.install_command(package),
    )
    for package in _GYM_PACKAGES
  ]
  return [*map(_known_own, OWN), _known_atari(), *of_gym, _known_dm_control(), _known_factories()]


def _known_own(name: str) -> KnownEnvironments:
  settings = settings_lib.names(OWN[name], OF_OWN)
  of_actions = action_scaling.NAMES if name in OWN_WITH_FLOAT_ACTIONS else ()
  return KnownEnvironments(name, _DESCRIPTIONS[name], (*settings, *of_actions), True, '')


def _known_atari() -> KnownEnvironments:
  return KnownEnvironments(
    f'{ATARI}GAME',
    'an Atari game, such as atari:MontezumaRevenge',
    tuple(settings_lib.names(atari.Settings)),
    all(map(is_installed, ATARI_PACKAGES)),
    extras.install_command('atari'),
  )


def _known_dm_control() -> KnownEnvironments:
  return KnownEnvironments(
    f'{DM_CONTROL}DOMAIN/TASK',
    "a task of dm_control's suite, such as dm_control:cheetah/run",
    (*dm_control_adapter.SETTINGS, *action_scaling.NAMES),
    is_installed('dm_control'),
    extras.install_command('dm-control'),
  )


def _known_factories() -> KnownEnvironments:
  return KnownEnvironments(
    'package.module:factory',
    'your own factory(seed, **settings); takes its settings too',
    action_scaling.NAMES,
    is_available=True,
    install='',
  )


def known_ids() -> list[str]:
  ids = [*OWN, *(ATARI + game for game in atari_games.GAMES)]
  for package in _GYM_PACKAGES:
    if is_installed(package):
      levels = gym_adapter.known_levels(package)
      ids += levels if package == 'gym' else [f'{package}:{level}' for level in levels]
  if is_installed('dm_control'):
    with contextlib.suppress(types.UserError):  # what it says of drawing is for its own ids
      ids += [DM_CONTROL + level for level in dm_control_adapter.known_levels()]
  return ids


def is_installed(package: str) -> bool:
  return importlib.util.find_spec(package) is not None
