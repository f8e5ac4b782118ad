"""Atari 2600 games, one emulator per environment, through ale-py's `ALEInterface`.

`atari_vector.py` steps many games in C++ threads and shows the same screens; both take
`Settings`. ale_py and cv2 (extra `atari`) are imported when a game is loaded.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
from typing import Annotated, Any

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.checks import extras
from seed_acme.envs import atari_lives
from seed_acme.envs import settings as settings_lib

# ale-py has ROMs of these only for two and four players, and its loader ends the process.
_MULTIPLAYER_ROMS = frozenset({'combat', 'joust', 'maze_craze', 'warlords'})
FIRE = 1
_NUM_ACTIONS = 18  # of the full set: 9 directions, without and with the button
NOOP = 0


@dataclasses.dataclass(frozen=True)
class Settings:
  """Preprocessing as in Mnih et al. 2015, without clipping of rewards. Their treatment of lost
  lives and of the fire button at the start is off by default.

  frames_per_step: emulator frames that an action lasts; their rewards are summed. The screen is
    the pixelwise maximum of the last two of these frames (sprites flicker at 30 Hz), with
    `frames_per_step` 1 the one frame.
  max_num_noops: an episode starts with 1 ... this many frames without action, uniformly
    drawn; 0 = none.
  repeat_action_probability: probability, in each *frame*, of playing the previous frame's action
    instead (sticky actions, Machado et al. 2018 use 0.25).
  full_action_set: 18 actions for every game; False: only those that have an effect in the game.
  stack: screens in an observation, the newest in channel 0; zeros before the episode.
  max_frames: an episode is truncated (LAST with discount 1) at the step that reaches this
    many frames, no-ops not counted.
  life_loss: `cut`: the row that loses a life has discount 0, so values do not reach beyond
    it, while the game goes on to its end (rows of type MID) and its whole score is the
    return. `ignore`: nothing happens.
  fire_at_start: the step after FIRST, and after each lost life, plays FIRE whatever action
    was sent, because some games wait for it. The row keeps the action that was sent, so
    these few rows of a game (one more than lives lost) are learnt with an action that was
    not played. The action set must contain FIRE.
  image_size: height and width in pixels.
  vectorized: use `atari_vector.AtariVector`; False: one `Atari` per environment.
  num_threads: threads of the emulators, if vectorized.
  """

  frames_per_step: Annotated[int, bounds.Bound(1, 60)] = 4
  max_num_noops: Annotated[int, bounds.Bound(0, 1000)] = 30
  repeat_action_probability: Annotated[float, bounds.Bound(0, 1, is_open_above=True)] = 0.0
  full_action_set: bool = True
  stack: Annotated[int, bounds.Bound(1, 16)] = 1
  max_frames: Annotated[int, bounds.Bound(1, 10**9)] = 108_000
  image_size: Annotated[int, bounds.Bound(8, 512)] = 84
  life_loss: atari_lives.LifeLoss = 'ignore'
  fire_at_start: bool = False
  vectorized: bool = True
  num_threads: Annotated[int, bounds.Bound(1, 256)] = 1

  def __post_init__(self) -> None:
    settings_lib.check_values('atari', self)
    if self.num_threads > 1 and not self.vectorized:
      raise types.UserError(
        f'atari: num_threads ({self.num_threads}) needs vectorized=True; set it to 1'
      )


class Atari(dm_env.Environment):
  """One game. Called from one thread.

  Observation `screen` `[image_size, image_size, stack]` uint8, gray. Game over is LAST with
  discount 0 and shows only the last frame played (the step may have been cut short);
  `max_frames` is LAST with discount 1. If both come together game over wins, and so does
  a lost life that cuts.
  """

  def __init__(self, game: str, seed: int, settings: Settings):
    """game: `MontezumaRevenge`. seed: below 2**32. `types.UserError` for an unknown game."""
    self._ale = load_game(game, seed, settings.repeat_action_probability)
    self._resize = _import('cv2').resize
    self._area = _import('cv2').INTER_AREA
    self._settings = settings
    self._codes = action_codes(self._ale, settings.full_action_set)
    check_fire(game, self._codes, settings)
    self._spec = environment_spec(len(self._codes), settings)
    self._random = np.random.default_rng(seed)
    height, width = self._ale.getScreenDims()
    self._frame, self._previous = (np.empty((height, width), np.uint8) for _ in range(2))
    self._num_frames = 0  # of this episode
    self._lives = 0
    self._fires = False  # whether the next step plays FIRE
    self._has_ended = True
    self._observation = self._blank()
    self.frames_per_step = settings.frames_per_step

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode; the random stream continues."""
    self._ale.reset_game()
    if self._settings.max_num_noops:
      for _ in range(self._random.integers(1, self._settings.max_num_noops, endpoint=True)):
        self._ale.act(NOOP)
        if self._ale.game_over():
          self._ale.reset_game()
    self._has_ended, self._num_frames = False, 0
    self._lives, self._fires = self._ale.lives(), self._settings.fire_at_start
    self._observation = self._blank()
    self._ale.getScreenGrayscale(self._frame)
    return dm_env.restart(self._observe())

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: an integer of `action_spec`. It is ignored after LAST, where a new episode starts."""
    if self._has_ended:
      return self.reset()
    if not 0 <= action < len(self._codes):
      raise ValueError(f'action {action}: expected 0 ... {len(self._codes) - 1}')
    reward, is_over = self._play(FIRE if self._fires else self._codes[action])
    observation = self._observe()
    lives = self._ale.lives()
    is_lost, self._lives = lives < self._lives, lives
    self._fires = is_lost and self._settings.fire_at_start
    self._num_frames += self.frames_per_step
    self._has_ended = is_over or self._num_frames >= self._settings.max_frames
    is_cut = is_over or (is_lost and self._settings.life_loss == 'cut')
    step_type = dm_env.StepType.LAST if self._has_ended else dm_env.StepType.MID
    return dm_env.TimeStep(step_type, reward, 0.0 if is_cut else 1.0, observation)

  def observation_spec(self) -> dm_specs.BoundedArray:
    return self._spec.observation

  def action_spec(self) -> dm_specs.DiscreteArray:
    return self._spec.action

  def render(self) -> np.ndarray:
    """`[height, width, 3]` uint8, the emulator's screen in colour (mostly 210 x 160)."""
    return self._ale.getScreenRGB()

  def _play(self, code: int) -> tuple[float, bool]:
    """Plays one step and leaves its picture in `_frame`; returns (reward, game over)."""
    reward = 0
    for remaining in reversed(range(self.frames_per_step)):
      reward += self._ale.act(code)
      if self._ale.game_over():
        self._ale.getScreenGrayscale(self._frame)
        return float(reward), True
      if remaining == 1:
        self._ale.getScreenGrayscale(self._previous)
    self._ale.getScreenGrayscale(self._frame)
    if self.frames_per_step > 1:
      np.maximum(self._frame, self._previous, out=self._frame)
    return float(reward), False

  def _observe(self) -> np.ndarray:
    """Returns a new array with `_frame` in front of the earlier screens."""
    observation = self._blank()
    size = self._settings.image_size
    observation[:, :, 0] = self._resize(self._frame, (size, size), interpolation=self._area)
    observation[:, :, 1:] = self._observation[:, :, :-1]
    self._observation = observation
    # A copy, because the caller may write into it, and with a stack the next step reads it again.
    return observation.copy() if self._settings.stack > 1 else observation

  def _blank(self) -> np.ndarray:
    size = self._settings.image_size
    return np.zeros((size, size, self._settings.stack), np.uint8)


def environment_spec(num_actions: int, settings: Settings) -> types.EnvironmentSpec:
  """Returns the specification of both adapters."""
  shape = (settings.image_size, settings.image_size, settings.stack)
  return types.EnvironmentSpec(
    observation=dm_specs.BoundedArray(shape, np.uint8, minimum=0, maximum=255, name='screen'),
    action=dm_specs.DiscreteArray(num_actions, dtype=np.int32, name='action'),
    frames_per_step=settings.frames_per_step,
  )


def load_game(game: str, seed: int, repeat_action_probability: float) -> Any:
  """Returns an `ale_py.ALEInterface` with `game` loaded and every option that matters set.

  seed: below 2**32; see `emulator_seed`.
  """
  ale_py = _import('ale_py')
  path = rom_path(game)
  ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # else a page for each game
  ale = ale_py.ALEInterface()
  ale.setInt('random_seed', emulator_seed(seed))
  ale.setFloat('repeat_action_probability', repeat_action_probability)
  ale.setInt('frame_skip', 1)
  ale.setInt('max_num_frames_per_episode', 0)  # no limit of its own
  ale.setBool('truncate_on_loss_of_life', False)
  ale.setBool('color_averaging', False)
  ale.loadROM(path)
  return ale


def emulator_seed(seed: int) -> int:
  """Returns 31 bits of a seed: the emulator's is a C++ int, and negative means the time of day."""
  return seed >> 1


def rom_path(game: str) -> str:
  """Returns the path of a game's ROM; `types.UserError`, with similar names, if there is none."""
  roms = {_game_name(rom): rom for rom in _rom_names()}
  if game not in roms:
    # `pong` and `montezuma_revenge` are near, too.
    plain = {name.lower(): name for name in roms}
    near = difflib.get_close_matches(game.replace('_', '').lower(), plain, n=3)
    hint = f' (near: {", ".join(plain[name] for name in near)})' if near else ''
    raise types.UserError(
      f'unknown Atari game {game!r}{hint}: expected a name such as MontezumaRevenge'
    )
  return str(importlib.import_module('ale_py.roms').get_rom_path(roms[game]))


def known_games() -> list[str]:
  """Returns all single-player games of the installed ale-py, sorted; they include the 57."""
  return sorted(map(_game_name, _rom_names()))


def action_codes(ale: Any, full_action_set: bool) -> list[int]:
  """Returns the emulator's code of each action.

  If ale-py knows no button for a game (Skiing has 9 actions), the full set still has 18 actions:
  those with the button do the same as those without.
  """
  if not full_action_set:
    return [action.value for action in ale.getMinimalActionSet()]
  legal = {action.value for action in ale.getLegalActionSet()}
  without_button = {FIRE: NOOP, **{code: code - 8 for code in range(10, _NUM_ACTIONS)}}
  return [code if code in legal else without_button[code] for code in range(_NUM_ACTIONS)]


def check_fire(game: str, codes: list[int], settings: Settings) -> None:
  """Raises `types.UserError` if FIRE is to be played but is not among the actions' `codes`."""
  if settings.fire_at_start and FIRE not in codes:
    other = '' if settings.full_action_set else ' or full_action_set=True'
    raise types.UserError(
      f'atari:{game}: fire_at_start needs the action FIRE, which is not among the {len(codes)} '
      f'actions: set fire_at_start=False{other}'
    )


def _rom_names() -> list[str]:
  _import('ale_py')
  names = importlib.import_module('ale_py.roms').get_all_rom_ids()
  return [name for name in names if name not in _MULTIPLAYER_ROMS]


def _game_name(rom: str) -> str:
  """Converts `up_n_down` to `UpNDown`, as ale-py registers it with gymnasium."""
  return rom.title().replace('_', '')


def _import(module: str) -> Any:
  """Imports ale_py or cv2."""
  imported = extras.import_module(module, 'atari', 'an Atari game')
  if module == 'cv2':
    imported.setNumThreads(1)  # a screen is too small for several threads
  return imported
