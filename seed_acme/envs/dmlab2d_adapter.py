"""Levels of DeepMind Lab2D for one player, such as `pushbox`. It is imported when needed."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import importlib
import itertools
import re
from typing import Annotated, Any, NamedTuple

import dm_env
from dm_env import specs as dm_specs
import numpy as np

from seed_acme import types
from seed_acme.checks import bounds
from seed_acme.envs import choices
from seed_acme.envs import settings as settings_lib

PACKAGE = 'dmlab2d'
# Options of a level that the adapter sets, and the setting to use instead.
_RESERVED = {'levelName': 'the id', 'episodeLengthFrames': 'max_steps', 'numPlayers': 'one player'}
# Parts that the package adds to its messages: colours, the place in its scripts, the stack trace.
_COLOUR = re.compile('\x1b\\[[\\d;]*m')
_PLACE = re.compile(r'ERROR: @\S+:\d+: ')
_STACK = re.compile(r' stack trace-back:.*')


class Level(NamedTuple):
  """One level. image: the observation that its player sees. max_steps: default episode length."""

  image: str
  max_steps: int


# The levels that the wheel contains, without its examples of how to write one.
LEVELS: dict[str, Level] = {
  'chase_eat': Level('WORLD.RGB', 3000),
  'clean_up': Level('1.RGB', 3600),
  'commons_harvest': Level('1.RGB', 1000),
  'pushbox': Level('WORLD.RGB', 120),
  'running_with_scissors': Level('1.RGB', 1000),
}


@dataclasses.dataclass(frozen=True)
class Settings:
  """Settings of the adapter; all others are options of the level itself (pushbox: `numBoxes 1`).

  max_steps: an episode is truncated (LAST with discount 1) at this step; 0 = the level's default.
  flat_actions: the action is one choice among all combinations of what the player can do at once;
    False: one choice for each.
  """

  max_steps: Annotated[int, bounds.at_least(0)] = 0
  flat_actions: bool = True

  def __post_init__(self) -> None:
    settings_lib.check_values('dmlab2d', self)


SETTINGS = tuple(settings_lib.names(Settings))


class DmLab2d(dm_env.Environment):
  """One level; called from one thread.

  Observation `image`, `[H, W, 3]` uint8 RGB. The package calls every end of an episode a
  termination, even the step limit. So the level is given one step more, and the adapter truncates
  at `max_steps`; if the level itself ends an episode, as pushbox does when all boxes are in place,
  the discount is 0.
  """

  def __init__(self, level: str, seed: int, settings: dict[str, Any]):
    """level, settings: must have passed `check`. seed: for all episodes, below 2**32."""
    own, of_level = split(settings)
    self._image_name = LEVELS[level].image
    self._max_steps = own.max_steps or LEVELS[level].max_steps
    lab = _load(level, of_level, self._max_steps + 1)
    self._inside = _import().Environment(lab, [self._image_name], seed=seed)
    spec = self._inside.action_spec()
    self._names = list(spec)
    self._values = [range(int(one.minimum), int(one.maximum) + 1) for one in spec.values()]
    self._is_flat = own.flat_actions or len(self._names) == 1
    self._combinations = list(itertools.product(*self._values))
    self._num_steps = 0
    self._has_ended = True
    self._image = np.zeros(self.observation_spec().shape, np.uint8)

  def reset(self) -> dm_env.TimeStep:
    """Starts a new episode."""
    self._num_steps, self._has_ended = 0, False
    return dm_env.restart(self._seen(self._inside.reset()))

  def step(self, action: types.Nest) -> dm_env.TimeStep:
    """action: matches `action_spec`. It is ignored after LAST, where a new episode starts."""
    if self._has_ended:
      return self.reset()
    row = self._inside.step(dict(zip(self._names, self._chosen(action))))
    image, reward = self._seen(row), float(row.reward)
    self._num_steps += 1
    self._has_ended = row.last() or self._num_steps >= self._max_steps
    if row.last():
      return dm_env.termination(reward, image)
    if self._has_ended:
      return dm_env.truncation(reward, image)
    return dm_env.transition(reward, image)

  def observation_spec(self) -> dm_specs.BoundedArray:
    shape = self._inside.observation_spec()[self._image_name].shape
    return dm_specs.BoundedArray(shape, np.uint8, 0, 255, 'image')

  def action_spec(self) -> dm_specs.Array:
    if self._is_flat:
      return dm_specs.DiscreteArray(len(self._combinations), np.int32, 'action')
    return choices.ChoicesArray([len(values) for values in self._values], np.int32, 'action')

  def render(self) -> np.ndarray:
    """Returns the image that the player sees, `[H, W, 3]` uint8."""
    return self._image.copy()

  def _chosen(self, action: types.Nest) -> tuple[int, ...]:
    """Returns a number for each kind of action of the player; ValueError for an invalid action."""
    if self._is_flat:
      if not 0 <= action < len(self._combinations):
        raise ValueError(f'action {action}: expected 0 ... {len(self._combinations) - 1}')
      return self._combinations[int(action)]
    numbers = np.asarray(action)
    sizes = np.array([len(values) for values in self._values])
    if numbers.shape != sizes.shape or (numbers < 0).any() or (numbers >= sizes).any():
      raise ValueError(f'action {numbers.tolist()}: expected choices below {sizes.tolist()}')
    return tuple(values[number] for values, number in zip(self._values, numbers))

  def _seen(self, row: dm_env.TimeStep) -> np.ndarray:
    self._image = row.observation[self._image_name]
    return self._image


def split(settings: dict[str, Any]) -> tuple[Settings, dict[str, Any]]:
  """Returns the adapter's settings and the level's options."""
  own = {name: value for name, value in settings.items() if name in SETTINGS}
  return Settings(**own), {name: value for name, value in settings.items() if name not in SETTINGS}


def check(level: str, settings: dict[str, Any]) -> None:
  """Raises `types.UserError` for a wrong setting. Starts the level, which is quick."""
  _, of_level = split(settings)
  for name, instead in _RESERVED.items():
    if name in of_level:
      raise types.UserError(
        f"environment 'dmlab2d:{level}' does not take {name} ({of_level[name]!r}) as a setting: it "
        f'follows from {instead}'
      )
  lab = _load(level, of_level, LEVELS[level].max_steps)
  with _explained(level, of_level):  # values are checked only when an episode starts
    lab.start(0, seed=0)


def _load(level: str, of_level: dict[str, Any], max_steps: int) -> Any:
  """Loads a level as a `dmlab2d.Lab2d`."""
  module = _import()
  helper = importlib.import_module(f'{PACKAGE}.runfiles_helper')
  flatten = importlib.import_module(f'{PACKAGE}.settings_helper').flatten_args
  options = {**of_level, 'levelName': level, 'episodeLengthFrames': max_steps}
  with _explained(level, of_level):
    return module.Lab2d(helper.find(), flatten(options))


@contextlib.contextmanager
def _explained(level: str, of_level: dict[str, Any]) -> Iterator[None]:
  try:
    yield
  except (ValueError, RuntimeError) as error:
    text = ' '.join(_COLOUR.sub('', str(error)).split())
    reason = _STACK.sub('', _PLACE.sub('', text))
    raise types.UserError(
      f"environment 'dmlab2d:{level}' with {of_level} cannot be loaded: {reason}; expected "
      f'{", ".join(SETTINGS)}, or options of the level'
    ) from error


def _import() -> Any:
  return importlib.import_module(PACKAGE)
