"""`dm_control:DOMAIN/TASK`, `dm_control:cheetah/run`."""

from __future__ import annotations

import contextlib

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.envs import action_scaling
from seed_acme.envs import dm_control_adapter
from seed_acme.envs import suite

_START = 'dm_control:'


def _make(order: suite.Order) -> core.VectorEnvironment:
  return order.one_by_one(
    lambda seed: dm_control_adapter.make(order.level, seed, order.settings, order.renders)
  )


def _check(config: config_lib.EnvironmentConfig) -> None:
  _, settings = action_scaling.split(config.id, config.settings)
  dm_control_adapter.check(suite.level(config.id), settings)


def _names() -> list[str]:
  with contextlib.suppress(types.UserError):  # errors about rendering concern its own ids only
    return [_START + level for level in dm_control_adapter.known_levels()]
  return []


SUITE = suite.Suite(
  id=f'{_START}DOMAIN/TASK',
  description="a task of dm_control's suite, such as dm_control:cheetah/run",
  settings=dm_control_adapter.SETTINGS,
  matches=suite.with_prefix(f'{_START}ID'),
  make=_make,
  check=_check,
  names=_names,
  packages=('dm_control',),
  extra='dm-control',
  examples=(suite.Example(f'{_START}cheetah/run', 'dm-control'),),
)
