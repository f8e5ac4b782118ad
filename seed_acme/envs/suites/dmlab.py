"""`dmlab:LEVEL`: `dmlab:rooms_watermaze`, `dmlab:contributed/dmlab30/rooms_watermaze`."""

from __future__ import annotations

import dataclasses
from typing import Any

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import dmlab
from seed_acme.envs import dmlab_levels
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import suite

_ID = 'dmlab:LEVEL'


def _settings(given: dict[str, Any]) -> dmlab.Settings:
  return dmlab.Settings(**given)


def _make(order: suite.Order) -> core.VectorEnvironment:
  settings = _settings(order.settings)
  return order.one_by_one(lambda seed: dmlab.DmLab(order.level, seed, settings))


def _check(config: config_lib.EnvironmentConfig) -> None:
  """Checks a configuration, except for levels in folders, which only the package knows."""
  settings_lib.check(config, dmlab.Settings, skip=())
  level = suite.level(config.id)
  if '/' not in level and level not in dmlab_levels.NAMES:
    raise suite.UnknownId(
      f'unknown environment {config.id!r}: expected a level of DMLab-30 such as '
      'dmlab:rooms_watermaze, or the path of another such as dmlab:demos/extra_entities'
    )
  dmlab.check(level, _settings(config.settings))


def _normalized_score(environment_id: str, score: float) -> float | None:
  level = suite.level(environment_id)
  if dmlab_levels.for_training(level) not in dmlab_levels.LEVELS:
    return None
  return dmlab_levels.human_normalized_percent(level, score) / 100


SUITE = suite.Suite(
  id=_ID,
  description='a level of DeepMind Lab, such as dmlab:rooms_watermaze',
  settings=tuple(field.name for field in dataclasses.fields(dmlab.Settings)),
  matches=suite.with_prefix(_ID),
  make=_make,
  check=_check,
  names=lambda: [suite.prefix(_ID) + level for level in dmlab_levels.NAMES],
  packages=(dmlab.PACKAGE,),
  install=dmlab.INSTALL,
  examples=(suite.Example('dmlab:rooms_watermaze'),),
  scales_actions=False,
  normalized_score=_normalized_score,
)
