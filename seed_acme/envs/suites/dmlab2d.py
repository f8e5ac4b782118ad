"""`dmlab2d:LEVEL`, `dmlab2d:pushbox`."""

from __future__ import annotations

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import dmlab2d_adapter
from seed_acme.envs import suite

_ID = 'dmlab2d:LEVEL'


def _make(order: suite.Order) -> core.VectorEnvironment:
  return order.one_by_one(lambda seed: dmlab2d_adapter.DmLab2d(order.level, seed, order.settings))


def _check(config: config_lib.EnvironmentConfig) -> None:
  level = suite.level(config.id)
  if level not in dmlab2d_adapter.LEVELS:
    raise suite.UnknownId(
      f'unknown environment {config.id!r}: expected a level of DeepMind Lab2D, one of '
      f'{", ".join(dmlab2d_adapter.LEVELS)}'
    )
  dmlab2d_adapter.check(level, config.settings)


SUITE = suite.Suite(
  id=_ID,
  description='a level of DeepMind Lab2D, such as dmlab2d:pushbox; takes its options too',
  settings=dmlab2d_adapter.SETTINGS,
  matches=suite.with_prefix(_ID),
  make=_make,
  check=_check,
  names=lambda: [suite.prefix(_ID) + level for level in dmlab2d_adapter.LEVELS],
  packages=(dmlab2d_adapter.PACKAGE,),
  extra='dmlab2d',
  examples=(suite.Example('dmlab2d:pushbox', 'dmlab2d'),),
  scales_actions=False,
)
