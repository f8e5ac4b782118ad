"""`envpool:ID`, `envpool:Pong-v5`: envpool's many suites, under Python 3.11 and later."""

from __future__ import annotations

import shlex
import sys

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import types
from seed_acme.checks import extras
from seed_acme.envs import action_scaling
from seed_acme.envs import envpool_adapter
from seed_acme.envs import suite

_START = 'envpool:'
_OLDEST = (3, 11)  # the oldest Python whose wheels have all of its environments


def _make(order: suite.Order) -> core.VectorEnvironment:
  return envpool_adapter.Envpool(order.level, order.seeds(), order.settings, order.renders)


def _check(config: config_lib.EnvironmentConfig) -> None:
  _require_python(config.id)
  _, settings = action_scaling.split(config.id, config.settings)
  envpool_adapter.check(suite.level(config.id), settings)


def _require_python(environment_id: str) -> None:
  if sys.version_info[:2] < _OLDEST:
    raise types.UserError(
      f'environment {environment_id!r} runs under Python 3.11 and later, and this is '
      f'{sys.version_info[0]}.{sys.version_info[1]}: {SUITE.install_command()}'
    )


def _names() -> list[str]:
  if sys.version_info[:2] < _OLDEST:
    return []
  return [_START + level for level in envpool_adapter.known_levels()]


def _install() -> str:
  """Says how to get envpool; a learner under Python 3.10 needs another interpreter for actors."""
  is_old = sys.version_info[:2] < _OLDEST
  if extras.is_for_learners() and not is_old:
    return extras.install_command('envpool')
  folder = '.venv-envpool' if is_old and not extras.is_for_learners() else extras.actor_folder()
  return (
    f'seed-acme actor-env {shlex.quote(folder)} --extras envpool, then add '
    f'--config.actor.python={shlex.quote(folder)}/bin/python'
  )


SUITE = suite.Suite(
  id=f'{_START}ID',
  description="any of envpool's environments, such as envpool:Pong-v5; takes its settings too",
  settings=(),
  matches=suite.with_prefix(f'{_START}ID'),
  make=_make,
  check=_check,
  names=_names,
  packages=('envpool',),
  install=_install(),
  examples=(suite.Example(f'{_START}CartPole-v1', 'envpool'),),
)
