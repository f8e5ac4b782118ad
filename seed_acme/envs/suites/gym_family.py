"""`gym:ID` and `gymnasium:ID`; a bare id that ends in a version (`ALE/Pong-v5`) is gym's."""

from __future__ import annotations

import re

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import action_scaling
from seed_acme.envs import gym_levels
from seed_acme.envs import gym_vector_adapter
from seed_acme.envs import suite

# An optional namespace or module, a name, and the version that every gym id ends in.
_BARE_ID = re.compile(r'^([\w.-]+[:/])*[\w.-]+-v\d+$')


def _suite(
  package: str, mujoco_level: str, box2d_level: str, *, takes_bare_ids: bool
) -> suite.Suite:
  start = f'{package}:'

  def matches(environment_id: str) -> bool:
    if environment_id.startswith(start):
      return True
    return takes_bare_ids and _BARE_ID.match(environment_id) is not None

  def level(environment_id: str) -> str:
    return environment_id.removeprefix(start)

  def make(order: suite.Order) -> core.VectorEnvironment:
    name, settings = level(order.environment_id), dict(order.settings)
    if package == 'gymnasium' and gym_levels.VECTORIZATION_MODE in settings:
      if not order.renders:
        return gym_vector_adapter.make(name, order.num_environments, order.seeds(), settings)
      del settings[gym_levels.VECTORIZATION_MODE]  # single environments can render
    return order.one_by_one(
      lambda seed: gym_levels.make(package, name, seed, settings, order.renders)
    )

  def check(config: config_lib.EnvironmentConfig) -> None:
    _, settings = action_scaling.split(config.id, config.settings)
    gym_levels.check(package, level(config.id), settings)

  def spelled_elsewhere(environment_id: str) -> str:
    return gym_levels.spelled_elsewhere(package, level(environment_id))

  def names() -> list[str]:
    levels = gym_levels.known_levels(package)
    return levels if takes_bare_ids else [start + level for level in levels]

  return suite.Suite(
    id=f'{package}:ID',
    description=f'any environment registered with {package}; takes its settings too',
    settings=(),
    matches=matches,
    make=make,
    check=check,
    names=names,
    packages=(package,),
    extra=package,
    spelled_elsewhere=spelled_elsewhere,
    examples=(
      suite.Example(start + 'CartPole-v1', package),
      suite.Example(start + mujoco_level, 'mujoco', ('mujoco',)),
      suite.Example(start + box2d_level, 'box2d', ('Box2D',)),
    ),
    # gym imports the module of `module:Name-v0`.
    named_module=lambda environment_id: level(environment_id).rpartition(':')[0],
  )


GYM = _suite('gym', 'HalfCheetah-v4', 'LunarLander-v2', takes_bare_ids=True)
GYMNASIUM = _suite('gymnasium', 'HalfCheetah-v5', 'LunarLander-v3', takes_bare_ids=False)
