"""Google Research Football on its real engine, which is built from source (`make football`).

One player of the left team is controlled, the one nearest to the ball. gfootball is imported when
needed; its wrappers are not used.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import importlib
import importlib.util
import os
import pathlib
import sys
import tempfile
from typing import Annotated, Any, Literal

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import near_names
from seed_acme.envs import football_views
from seed_acme.envs import gym_levels
from seed_acme.envs import settings as settings_lib

Observation = Literal['mini_map', 'simple115']
Rewards = Literal['scoring', 'scoring,checkpoints']
Picture = Literal['pitch', 'engine']
NUM_ACTIONS = 19  # of the default set
_NOT_LEVELS = ('__init__', 'test_example_multiagent')
_Side = Annotated[int, bounds.Bound(8, 512)]  # of a map, in pixels
_PICTURE_WIDTH, _PICTURE_HEIGHT = 640, 360  # pixels, if the engine draws


@dataclasses.dataclass(frozen=True)
class Settings:
  """Settings of a game; defaults are those of Espeholt et al. 2019 and of the original's scripts.

  observation: the super mini map, or 115 numbers (`simple115v2`).
  map_width, map_height: 96 x 72, in the paper also 120 x 90 and 144 x 108.
  stack: maps in an observation, the newest with the last four planes.
  packed: store the map's planes as the bits of one uint16 per pixel (`packed_planes`).
  rewards: goals only, or also 0.1 for each of ten rings towards the goal. The reported score counts
    goals only.
  time_up_terminates: the end of the clock is a termination. By default it is a truncation: the
    observation does not show the clock, so no value could foresee it.
  picture: what `render` shows, the pitch from above or the engine's own picture. The latter needs
    EGL, and some tenths of a CPU-second per step if it is rendered in software.
  """

  observation: Observation = 'mini_map'
  map_width: _Side = 96
  map_height: _Side = 72
  stack: Annotated[int, bounds.Bound(1, 4)] = 4  # maps of four planes in 16 bits
  packed: bool = True
  rewards: Rewards = 'scoring'
  time_up_terminates: bool = False
  picture: Picture = 'pitch'

  def __post_init__(self) -> None:
    settings_lib.check_values('football', self)


class Football(dm_env.Environment):
  """One game. Called from one thread.

  A step is one step of the engine, which is 10 of its physics, so the action repeat is 1. LAST
  shows the last observation. An episode that the scenario ends because of a goal, or because the
  ball is lost or out of play, is terminated.
  """

  frames_per_step = 1

  def __init__(self, level: str, seed: int, settings: Settings):
    """level: a scenario of gfootball. seed: below 2**32."""
    self._settings = settings
    self._random = np.random.default_rng(seed)
    self._view = _view(settings)
    self._checkpoints = football_views.CheckpointReward()
    self._folder = tempfile.TemporaryDirectory(prefix='seed_acme_football_')
    os.environ.setdefault('SDL_VIDEODRIVER', 'dummy')
    gym_levels.import_package('gym')  # of gfootball
    config = importlib.import_module('gfootball.env.config')
    environment = importlib.import_module('gfootball.env.football_env')
    self._config = config.Config(
      {
        'level': level,
        'players': ['agent:left_players=1,right_players=0'],
        'action_set': 'default',
        'tracesdir': self._folder.name,
        'logdir': self._folder.name,
        'render_resolution_x': _PICTURE_WIDTH,
        'render_resolution_y': _PICTURE_HEIGHT,
        **self._new_seed(),
      }
    )
    self._game = environment.FootballEnv(self._config)
    self.record: dict[str, Any] = {}  # the engine's state of the game, as gfootball documents it
    self._has_ended = True
    self.last_score = 0.0

  def _new_seed(self) -> dict[str, Any]:
    """Returns the seed settings of the next episode; with a fixed seed all would be alike."""
    seed = int(self._random.integers(0, 2_000_000_000))
    # The engine would draw this from its seed, but only once.
    return {'game_engine_random_seed': seed, 'reverse_team_processing': bool(seed % 2)}

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode; the random stream continues."""
    self._config.update(self._new_seed())
    [self.record] = self._game.reset()
    self._checkpoints.reset()
    self._has_ended = False
    self.last_score = 0.0
    return dm_env.restart(self._view.first(self.record))

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: an integer of `action_spec`. It is ignored after LAST, where a new episode starts."""
    if self._has_ended:
      return self.reset()
    if not 0 <= action < NUM_ACTIONS:
      raise ValueError(f'action {action}: expected 0 ... {NUM_ACTIONS - 1}')
    [self.record], [goals], self._has_ended, _ = self._game.step([int(action)])
    observation = self._view.next(self.record)
    self.last_score = reward = float(goals)
    if self._settings.rewards == 'scoring,checkpoints':
      reward += self._checkpoints(reward, self.record)
    if not self._has_ended:
      return dm_env.transition(reward, observation)
    # In scenarios that end with a goal, a goal in the last step is a termination.
    ends_by_goal = goals and self._config.ScenarioConfig().end_episode_on_score
    is_time_up = self.record['steps_left'] <= 0 and not ends_by_goal
    if is_time_up and not self._settings.time_up_terminates:
      return dm_env.truncation(reward, observation)
    return dm_env.termination(reward, observation)

  def observation_spec(self) -> dm_specs.Array:
    return self._view.spec

  def action_spec(self) -> dm_specs.DiscreteArray:
    return dm_specs.DiscreteArray(NUM_ACTIONS, dtype=np.int32, name='action')

  def render(self) -> np.ndarray:
    """Returns uint8 `[252, 480, 3]`, the pitch from above, or `[360, 640, 3]`, the engine's own.

    The engine can draw for only one environment per process.
    """
    if self._settings.picture == 'pitch':
      return football_views.drawn_pitch(self.record)
    if 'frame' not in self.record:  # the first time; from now on the engine draws every step
      with _off_screen():
        self._game.render('rgb_array')  # its return value has blue first, so it is not used
      [self.record] = self._game.observation()
    return np.ascontiguousarray(self.record['frame'])

  def close(self) -> None:
    self._game.close()
    self._folder.cleanup()


@contextlib.contextmanager
def _off_screen() -> Iterator[None]:
  """Makes the engine draw into memory, as it would open a window if DISPLAY is set.

  Its message about that goes to stderr, because stdout may be JSON.
  """
  display = os.environ.pop('DISPLAY', None)
  sys.stdout.flush()
  stdout = os.dup(1)
  os.dup2(2, 1)
  try:
    yield
  finally:
    os.dup2(stdout, 1)
    os.close(stdout)
    if display is not None:
      os.environ['DISPLAY'] = display


def _view(settings: Settings) -> football_views.MiniMap | football_views.Numbers:
  if settings.observation == 'simple115':
    return football_views.Numbers()
  return football_views.MiniMap(
    settings.map_width, settings.map_height, settings.stack, settings.packed
  )


def check_level(level: str) -> None:
  """Raises `types.UserError`, which names similar levels, if there is no such scenario."""
  if level not in known_levels():
    near = near_names.near(level, known_levels(), 'football:')
    raise types.UserError(
      f"unknown environment 'football:{level}'{near}: expected one of {', '.join(known_levels())}"
    )


def known_levels() -> list[str]:
  """Returns the scenarios of the installed gfootball, without loading the engine."""
  found = importlib.util.find_spec('gfootball')
  if found is None or found.origin is None:
    return []
  files = (pathlib.Path(found.origin).parent / 'scenarios').glob('*.py')
  return sorted(file.stem for file in files if file.stem not in _NOT_LEVELS)
