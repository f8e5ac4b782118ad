"""`atari:GAME`, `atari:MontezumaRevenge`: settings as in `atari.Settings`."""

from __future__ import annotations

import dataclasses
from typing import Any

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme.envs import atari
from seed_acme.envs import atari_games
from seed_acme.envs import atari_vector
from seed_acme.envs import settings as settings_lib
from seed_acme.envs import suite

_ID = 'atari:GAME'


def _settings(given: dict[str, Any]) -> atari.Settings:
  return atari.Settings(**given)


def _make(order: suite.Order) -> core.VectorEnvironment:
  settings = _settings(order.settings)
  if settings.vectorized and not order.renders:
    return atari_vector.AtariVector(order.level, order.seeds(), settings)
  settings = dataclasses.replace(settings, vectorized=False, num_threads=1)
  return order.one_by_one(lambda seed: atari.Atari(order.level, seed, settings))


def _check(config: config_lib.EnvironmentConfig) -> None:
  settings_lib.check(config, atari.Settings, skip=())
  _settings(config.settings)
  atari.rom_path(suite.level(config.id))


def _normalized_score(environment_id: str, score: float) -> float | None:
  game = suite.level(environment_id)
  if game not in atari_games.SCORES:
    return None
  return atari_games.human_normalized_score(game, score)


SUITE = suite.Suite(
  id=_ID,
  description='an Atari game, such as atari:MontezumaRevenge',
  settings=tuple(settings_lib.names(atari.Settings)),
  matches=suite.with_prefix(_ID),
  make=_make,
  check=_check,
  names=lambda: [suite.prefix(_ID) + game for game in atari.known_games()],
  packages=('ale_py', 'cv2'),
  extra='atari',
  examples=(suite.Example('atari:Pong', 'atari'),),
  scales_actions=False,
  normalized_score=_normalized_score,
)
