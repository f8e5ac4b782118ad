"""Makes environments from an `EnvironmentConfig`. Optional packages are imported when needed.

The suites, and the form of their ids:

* `bit_flip`, `catch`, `memory_chain`, `toy`, `toy_memory`: seed_acme's own.
* `atari:GAME`, `atari:MontezumaRevenge`: settings as in `atari.Settings`.
* `gym:ID`, `gymnasium:ID`; a bare id that ends in a version (`CartPole-v1`) is gym's. With the
  setting `vectorization_mode` gymnasium makes all environments at once.
* `dm_control:DOMAIN/TASK`, `dm_control:cheetah/run`.
* `envpool:ID`, `envpool:Pong-v5`: under Python 3.11 and later.
* `football:SCENARIO`, `football:academy_empty_goal_close`: settings as in `football.Settings`.
* `dmlab:LEVEL`, `dmlab:rooms_watermaze`: DeepMind Lab, settings as in `dmlab.Settings`.
* `dmlab2d:LEVEL`, `dmlab2d:pushbox`: DeepMind Lab2D, settings as in `dmlab2d_adapter.Settings` and
  those of the level.
* `package.module:factory` or `package.module.factory`: your own function
  `factory(seed, **settings)`, called once for each environment with a different seed;
  it returns a dm_env, gym or gymnasium environment. If it has a parameter
  `num_environments` it is called once, `factory(seed, num_environments=E, **settings)`,
  and returns a `core.VectorEnvironment` or a vector of gymnasium.

All but `bit_flip`, `catch`, `memory_chain`, Atari, Football, DeepMind Lab and DeepMind Lab2D also
take the settings of `action_scaling`.
"""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import near_names
from seed_acme.envs import action_scaling
from seed_acme.envs import atari_games
from seed_acme.envs import closing
from seed_acme.envs import process_state
from seed_acme.envs import suite as suite_lib
from seed_acme.envs.suites import atari
from seed_acme.envs.suites import dm_control
from seed_acme.envs.suites import dmlab
from seed_acme.envs.suites import dmlab2d
from seed_acme.envs.suites import envpool
from seed_acme.envs.suites import football
from seed_acme.envs.suites import gym_family
from seed_acme.envs.suites import own
from seed_acme.envs.suites import own_factory

# The first suite that matches an id is used.
SUITES: tuple[suite_lib.Suite, ...] = (
  *own.SUITES,
  atari.SUITE,
  dm_control.SUITE,
  envpool.SUITE,
  football.SUITE,
  dmlab.SUITE,
  dmlab2d.SUITE,
  gym_family.GYMNASIUM,
  gym_family.GYM,
  own_factory.SUITE,
)


def make(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, *, renders: bool = False
) -> core.VectorEnvironment:
  """Makes `num_environments` environments with seeds drawn from (seed, index).

  Environment i therefore behaves the same however many others there are, unless it is natively
  vectorised and draws for all from one stream (like most of seed_acme's own). Wrong ids and
  settings raise `types.UserError`, as in `check`.

  renders: the environment has a method `render() -> [H, W, 3]` uint8, which shows
    environment 0; `types.UserError` for one that cannot.
  """
  if num_environments < 1:
    raise types.UserError(f'num_environments ({num_environments}) must be >= 1')
  check(config)
  with process_state.kept():
    environment = _make(config, num_environments, seed, renders)
  if renders:
    _require_screen(environment, config.id)
  return environment


def _make(
  config: config_lib.EnvironmentConfig, num_environments: int, seed: int, renders: bool
) -> core.VectorEnvironment:
  suite = find(config.id)
  actions, settings = None, config.settings
  if suite.scales_actions:
    actions, settings = action_scaling.split(config.id, settings)
  environment = suite.make(
    suite_lib.Order(
      config.id, suite_lib.level(config.id), settings, num_environments, seed, renders
    )
  )
  return action_scaling.wrap(environment, actions, config.id) if actions else environment


def _require_screen(environment: core.VectorEnvironment, environment_id: str) -> None:
  """Closes an environment that cannot render, and raises `types.UserError`."""
  if not (hasattr(environment, 'render') and getattr(environment, 'can_render', True)):
    with closing.told(environment_id):
      environment.close()
    raise types.UserError(
      f'environment {environment_id!r} cannot show its screen: give it a method '
      'render() -> uint8 [H, W, 3], or do without pictures of it'
    )


def environment_spec(config: config_lib.EnvironmentConfig) -> types.EnvironmentSpec:
  """Makes one environment in this process, reads its specification and closes it."""
  with closing.afterwards(make(config, num_environments=1, seed=0), config.id) as environment:
    return environment.spec


def check(config: config_lib.EnvironmentConfig) -> None:
  """Raises `types.UserError` for mistakes that can be found without making an environment.

  These are an id that does not exist (the message names similar ones), a setting that is not
  accepted (it names the accepted ones), a package that is not installed (it names the extra).
  """
  suite = find(config.id)
  suite.require_packages(config.id)
  try:
    suite.check(config)
  except suite_lib.UnknownId as error:
    near = near_names.near(config.id, _known_ids())
    raise types.UserError(f'{error}{near}{error.fix}') from error


def find(environment_id: str) -> suite_lib.Suite:
  """Returns the suite that an id belongs to; `types.UserError` if there is none."""
  for suite in SUITES:
    if suite.matches(environment_id):
      return suite
  hint = atari_games.hint(environment_id) or near_names.near(environment_id, _known_ids())
  raise types.UserError(
    f'unknown environment {environment_id!r}{hint}: expected one of '
    f'{", ".join(suite.id for suite in SUITES)}, or a gym id with its version'
  )


def named_module(environment_id: str) -> str:
  """Returns the module to import that an id names, as those of factories and gym's `module:Name-v0`
  do, else ''."""
  for suite in SUITES:
    if suite.matches(environment_id):
      return suite.named_module(environment_id)
  return ''


def normalized_score(environment_id: str, score: float) -> float | None:
  """Returns a mean return on the scale where the random player has 0 and the human one 1; None if
  their scores are not known.
  """
  for suite in SUITES:
    if suite.matches(environment_id):
      return suite.normalized_score(environment_id, score)
  return None


def known_environments() -> list[suite_lib.KnownEnvironments]:
  """Describes the possible values of `EnvironmentConfig.id`."""
  return [
    suite_lib.KnownEnvironments(
      suite.id,
      suite.description,
      (*suite.settings, *(action_scaling.NAMES if suite.scales_actions else ())),
      not suite.missing_packages(),
      suite.install_command(),
      suite.possible_examples(),
    )
    for suite in SUITES
  ]


def suite_names() -> list[str]:
  """Returns the names that `known_ids` accepts."""
  return [_name(suite) for suite in SUITES if suite is not own_factory.SUITE]


def known_ids(suite_name: str) -> list[str]:
  """Returns all ids of one suite under this Python.

  suite_name: the part before the colon, such as `atari`. Raises `types.UserError` if there is no
  such suite or it cannot be used here, specifically `types.MissingPackage` if a package is missing.
  """
  if suite_name not in suite_names():
    raise types.UserError(
      f'unknown suite {suite_name!r}{near_names.near(suite_name, suite_names())}: expected one '
      f'of {", ".join(suite_names())}'
    )
  suite = next(suite for suite in SUITES if _name(suite) == suite_name)
  suite.require_packages(suite.id)
  ids = suite.names()
  if not ids:
    raise types.UserError(
      f'no environment of {suite_name} can be made under this Python: {suite.install_command()}'
    )
  return ids


def _name(suite: suite_lib.Suite) -> str:
  return suite.id.partition(':')[0]


def _known_ids() -> list[str]:
  """Returns all ids that can be made here."""
  return [name for suite in SUITES if not suite.missing_packages() for name in suite.names()]
