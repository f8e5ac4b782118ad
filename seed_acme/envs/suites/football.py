"""`football:SCENARIO`, `football:academy_empty_goal_close`: the real engine."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.checks import extras
from seed_acme.envs import football
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import suite

_ID = 'football:SCENARIO'


def _settings(given: dict[str, Any]) -> football.Settings:
  return football.Settings(**given)


def _make(order: suite.Order) -> core.VectorEnvironment:
  settings = _settings(order.settings)
  return order.one_by_one(lambda seed: football.Football(order.level, seed, settings))


def _check(config: config_lib.EnvironmentConfig) -> None:
  settings_lib.check(config, football.Settings, skip=())
  _settings(config.settings)
  football.check_level(suite.level(config.id))


def _install() -> str:
  made = os.path.join(extras.checkout() or '', '.venv-football/bin/python')
  with contextlib.suppress(FileNotFoundError):  # the working folder has been deleted
    made = os.path.relpath(made)
  return f'{extras.in_checkout("make football")}, then add --config.actor.python={made}'


SUITE = suite.Suite(
  id=_ID,
  description='a scenario of Google Research Football, such as football:academy_empty_goal_close',
  settings=tuple(settings_lib.names(football.Settings)),
  matches=suite.with_prefix(_ID),
  make=_make,
  check=_check,
  names=lambda: [suite.prefix(_ID) + level for level in football.known_levels()],
  packages=('gfootball', 'gfootball_engine'),
  examples=(suite.Example('football:academy_empty_goal_close'),),
  install=_install(),
  scales_actions=False,
)
