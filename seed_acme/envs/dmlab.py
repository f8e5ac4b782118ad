"""Levels of DeepMind Lab, through the Python API that its docs/users/python_api.md describes.

The package `deepmind_lab` is on no index and must be built from source. It is imported when needed.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Annotated, Any, Literal

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.envs import dmlab_cache
from seed_acme.envs import dmlab_levels
from seed_acme.envs import instructions
from seed_acme.envs import settings as settings_lib

PACKAGE = 'deepmind_lab'
INSTALL = 'build its Python module from https://github.com/google-deepmind/lab'
# Look left (-) or right, look down or up, strafe left or right, move back or forward, fire, jump,
# crouch.
ACTION_NAMES = (
  'LOOK_LEFT_RIGHT_PIXELS_PER_FRAME',
  'LOOK_DOWN_UP_PIXELS_PER_FRAME',
  'STRAFE_LEFT_RIGHT',
  'MOVE_BACK_FORWARD',
  'FIRE',
  'JUMP',
  'CROUCH',
)
# The nine actions of IMPALA and SEED RL.
ACTIONS: tuple[tuple[int, ...], ...] = (
  (0, 0, 0, 1, 0, 0, 0),  # forward
  (0, 0, 0, -1, 0, 0, 0),  # back
  (0, 0, -1, 0, 0, 0, 0),  # strafe left
  (0, 0, 1, 0, 0, 0, 0),  # strafe right
  (-20, 0, 0, 0, 0, 0, 0),  # look left
  (20, 0, 0, 0, 0, 0, 0),  # look right
  (-20, 0, 0, 1, 0, 0, 0),  # look left and forward
  (20, 0, 0, 1, 0, 0, 0),  # look right and forward
  (0, 0, 0, 0, 1, 0, 0),  # fire
)
# Gives testing another set of seeds than training.
TEST_MIXER_SEED = 0x600D5EED
_MAX_SEED = 2**31 - 1
_IMAGE, _INSTRUCTION = 'RGB_INTERLEAVED', 'INSTR'
_WITH_IMAGES = 'psychlab_arbitrary_visuomotor_mapping', 'psychlab_continuous_recognition'
Renderer = Literal['software', 'hardware']


@dataclasses.dataclass(frozen=True)
class Settings:
  """Settings of every level.

  width, height: size of the image, in pixels.
  num_action_repeats: frames (60 per second) that an action lasts; their rewards are summed.
  instructions: observations are `{'image', 'instruction'}`; for the language levels.
  max_words: number of ids in an instruction.
  episode_length_s: seconds of the game until time is up; 0 = the level's default.
  test: play the test level of a pair, with hold-out levels allowed and with the seeds of testing.
  level_cache: folder or `gs://` URL of compiled levels; '' = none.
  dataset_path: folder of the images that two psychlab levels show (brady_konkle_oliva2008).
  renderer: `hardware` draws on a GPU.
  runfiles_path: folder of the package's files, if it cannot find them itself; '' = it can.
  temp_folder: folder that the package unpacks files into; '' = its own choice.
  """

  width: Annotated[int, bounds.at_least(4)] = 96
  height: Annotated[int, bounds.at_least(4)] = 72
  num_action_repeats: Annotated[int, bounds.at_least(1)] = 4
  instructions: bool = False
  max_words: Annotated[int, bounds.at_least(1)] = 16
  episode_length_s: Annotated[int, bounds.at_least(0)] = 0
  test: bool = False
  level_cache: str = ''
  dataset_path: str = ''
  renderer: Renderer = 'software'
  runfiles_path: str = ''
  temp_folder: str = ''

  def __post_init__(self) -> None:
    settings_lib.check_values('dmlab', self)


class DmLab(dm_env.Environment):
  """One level; called from one thread.

  Observation: the image `[height, width, 3]` uint8 RGB; with `instructions` a dict of the image and
  of word ids (see `instructions.spec`). The environment's seed gives each episode its own seed.

  DeepMind Lab shows nothing once an episode has ended, so LAST repeats the observation of the row
  before. It does not say why an episode ended, either. An episode that lasted until time was up is
  truncated (LAST with discount 1), because the level would have gone on. One that ended earlier (a
  goal that ends the level, all trials done) has discount 0. If the length of a level is not known
  (outside DMLab-30, without `episode_length_s`) every end has discount 0.
  """

  def __init__(self, level: str, seed: int, settings: Settings):
    """Raises `types.UserError` if the package rejects the level with these settings."""
    self._settings = settings
    self._lab = _load(level, settings)
    self._action_table = _action_table(self._lab.action_spec(), level)
    self._random = np.random.default_rng(seed)
    seconds = settings.episode_length_s or dmlab_levels.episode_s(level)
    self._max_frames = seconds * self._lab.fps()  # 0 = not known
    self._has_ended = True
    self._image = np.zeros((settings.height, settings.width, 3), np.uint8)
    self._observation: types.Nest = None
    self.frames_per_step = settings.num_action_repeats

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode."""
    self._lab.reset(seed=int(self._random.integers(_MAX_SEED)))
    self._has_ended = False
    self._observe()
    return dm_env.restart(self._observation)

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: an integer of `action_spec`. It is ignored after LAST, where a new episode starts."""
    if self._has_ended:
      return self.reset()
    if not 0 <= action < len(ACTIONS):
      raise ValueError(f'action {action}: expected 0 ... {len(ACTIONS) - 1}')
    # A new array, because the package keeps the memory it is given.
    raw_action = np.array(self._action_table[int(action)], np.intc)
    reward = float(self._lab.step(raw_action, num_steps=self._settings.num_action_repeats))
    if self._lab.is_running():
      self._observe()
      return dm_env.transition(reward, self._observation)
    self._has_ended = True
    if self._max_frames and self._lab.num_steps() >= self._max_frames:
      return dm_env.truncation(reward, self._observation)
    return dm_env.termination(reward, self._observation)

  def observation_spec(self) -> types.Nest:
    image = dm_specs.BoundedArray(self._image.shape, np.uint8, 0, 255, 'image')
    if not self._settings.instructions:
      return image
    return {'image': image, 'instruction': instructions.spec(self._settings.max_words)}

  def action_spec(self) -> dm_specs.DiscreteArray:
    return dm_specs.DiscreteArray(len(ACTIONS), np.int32, 'action')

  def render(self) -> np.ndarray:
    """Returns the image that the agent sees, `[height, width, 3]` uint8."""
    return self._image.copy()

  def close(self) -> None:
    self._lab.close()

  def _observe(self) -> None:
    seen = self._lab.observations()
    self._image = seen[_IMAGE]
    self._observation = self._image
    if self._settings.instructions:
      words = instructions.encode(seen[_INSTRUCTION], self._settings.max_words)
      self._observation = {'image': self._image, 'instruction': words}


def check(level: str, settings: Settings) -> None:
  """Raises `types.UserError` for mistakes that can be found without loading the level."""
  name = dmlab_levels.short_name(level)
  if name in dmlab_levels.HELD_OUT and not settings.test:
    raise types.UserError(
      f"environment 'dmlab:{level}' is held out for testing: set test to True, or train on "
      f'dmlab:{dmlab_levels.for_training(level)}'
    )
  if name in _WITH_IMAGES and not settings.dataset_path:
    raise types.UserError(
      f"environment 'dmlab:{level}' needs the setting dataset_path, the folder of the images of "
      'brady_konkle_oliva2008 (data/brady_konkle_oliva2008 of DeepMind Lab says how to get them)'
    )


def lab_config(settings: Settings) -> dict[str, str]:
  """Returns the configuration that is passed to the level, all of it as strings."""
  config = {'width': str(settings.width), 'height': str(settings.height), 'logLevel': 'WARN'}
  if settings.episode_length_s:
    config['episodeLengthSeconds'] = str(settings.episode_length_s)
  if settings.dataset_path:
    config['datasetPath'] = settings.dataset_path
  if settings.test:
    config.update(allowHoldOutLevels='true', mixerSeed=str(TEST_MIXER_SEED))
  return config


def _load(level: str, settings: Settings) -> Any:
  """Loads a level as a `deepmind_lab.Lab`."""
  module = _import()
  name = dmlab_levels.for_testing(level) if settings.test else level
  options: dict[str, Any] = {}
  if settings.level_cache:
    options['level_cache'] = dmlab_cache.LevelCache(settings.level_cache)
  if settings.temp_folder:  # older builds do not take it
    options['temp_folder'] = settings.temp_folder
  try:
    if settings.runfiles_path:
      module.set_runfiles_path(settings.runfiles_path)
    return module.Lab(
      dmlab_levels.path(name),
      [_IMAGE, _INSTRUCTION] if settings.instructions else [_IMAGE],
      config=lab_config(settings),
      renderer=settings.renderer,
      **options,
    )
  except (RuntimeError, TypeError, ValueError) as error:
    reason = ' '.join(str(error).split())
    raise types.UserError(
      f"environment 'dmlab:{level}' cannot be loaded: {reason}; check the level and its settings"
    ) from error


def _action_table(action_spec: list[dict[str, Any]], level: str) -> np.ndarray:
  """Returns `[9, K]`: K numbers for each action, 0 for actions that only this level has."""
  names = tuple(action['name'] for action in action_spec)
  if names[: len(ACTION_NAMES)] != ACTION_NAMES:
    raise types.UserError(
      f"environment 'dmlab:{level}' has the actions {', '.join(names)}: expected "
      f'{", ".join(ACTION_NAMES)}, and maybe more after them'
    )
  return np.pad(np.array(ACTIONS), ((0, 0), (0, len(names) - len(ACTION_NAMES))))


def _import() -> Any:
  try:
    return importlib.import_module(PACKAGE)
  except ImportError as error:
    raise types.UserError(f'DeepMind Lab needs {PACKAGE}: {INSTALL} ({error})') from error
