"""Observations and rewards of Football, computed from the engine's record of the game.

The mini map and the 115 numbers equal those of gfootball's wrappers, as tests check. The wrappers
themselves do not work with gym 0.26.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any

from dm_env import specs as dm_specs
import numpy as np

from seed_acme.envs import packed_planes

LAYERS = ('left_team', 'right_team', 'ball', 'active')
# Corners of the map in the engine's units; a pitch is 2 wide and 0.84 high.
_WEST, _EAST = -1.0, 1.0
_NORTH, _SOUTH = -1.0 / 2.25, 1.0 / 2.25
_SET = 255
_NUM_NUMBERS = 115
_TEAM_FIELDS = ('left_team', 'left_team_direction', 'right_team', 'right_team_direction')
_NUMBERS_A_TEAM = 22  # numbers per team: x and y of 11 players
_NUM_GAME_MODES = 7
_NUM_PLAYERS = 11


class MiniMap:
  """Super mini map: planes of the own team, the other team, the ball and the controlled player.

  The newest of `stack` maps has the last four planes; before the first step all maps are equal.
  """

  def __init__(self, width: int, height: int, stack: int, packed: bool):
    self._size = (height, width)
    self._packed = packed
    self._maps: collections.deque[np.ndarray] = collections.deque(maxlen=stack)
    planes = stack * len(LAYERS)
    self.spec: dm_specs.BoundedArray = (
      packed_planes.spec(height, width, planes, 'mini_map')
      if packed
      else dm_specs.BoundedArray((height, width, planes), np.uint8, 0, _SET, 'mini_map')
    )

  def first(self, record: Mapping[str, Any]) -> np.ndarray:
    """Returns the observation at the start of an episode."""
    self._maps.extend([self._drawn(record)] * (self._maps.maxlen or 1))
    return self._stacked()

  def next(self, record: Mapping[str, Any]) -> np.ndarray:
    """Returns the observation of the next step."""
    self._maps.append(self._drawn(record))
    return self._stacked()

  def _drawn(self, record: Mapping[str, Any]) -> np.ndarray:
    """Draws one map, `[height, width]` uint16: bit i is set where layer i has something."""
    bits = np.zeros(self._size, np.uint16)
    for number, layer in enumerate(LAYERS):
      if layer == 'active':
        if record[layer] == -1:
          continue
        points = np.asarray(record['left_team'])[record[layer]]
      else:
        points = np.asarray(record[layer])
      bits[self._pixels(points)] |= np.uint16(1 << number)
    return bits

  def _pixels(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns rows and columns of points `[n, 2]`, or of the first two numbers of one point."""
    points = points.reshape(-1, 2) if points.ndim == 2 else points[np.newaxis, :2]
    height, width = self._size
    columns = ((points[:, 0] - _WEST) / (_EAST - _WEST) * width).astype(int)
    rows = ((points[:, 1] - _NORTH) / (_SOUTH - _NORTH) * height).astype(int)
    return np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)

  def _stacked(self) -> np.ndarray:
    bits = np.zeros(self._size, np.uint16)
    for number, one in enumerate(self._maps):
      bits |= one << np.uint16(number * len(LAYERS))
    if self._packed:
      return bits[..., np.newaxis]
    return packed_planes.unpack(bits[..., np.newaxis], self.spec.shape[-1])


class Numbers:
  """`simple115v2`: positions and directions of players and ball, its owner, the active player."""

  def __init__(self) -> None:
    self.spec = dm_specs.Array((_NUM_NUMBERS,), np.float32, 'simple115')

  def first(self, record: Mapping[str, Any]) -> np.ndarray:
    return self.next(record)

  def next(self, record: Mapping[str, Any]) -> np.ndarray:
    """Returns `[115]` float32; -1 stands for missing players."""
    parts = []
    for field in _TEAM_FIELDS:
      numbers = np.full(_NUMBERS_A_TEAM, -1.0)
      given = np.asarray(record[field]).ravel()
      numbers[: given.size] = given
      parts.append(numbers)
    parts += [np.asarray(record['ball']), np.asarray(record['ball_direction'])]
    parts.append(_one_hot(record['ball_owned_team'] + 1, 3))  # nobody, left, right
    parts.append(_one_hot(record['active'], _NUM_PLAYERS))
    parts.append(_one_hot(record['game_mode'], _NUM_GAME_MODES))
    return np.concatenate(parts).astype(np.float32)


def _one_hot(index: int, size: int) -> np.ndarray:
  """Returns a one-hot vector; all zeros if the index is -1."""
  values = np.zeros(size)
  if index >= 0:
    values[index] = 1.0
  return values


class CheckpointReward:
  """Reward of 0.1 for each of ten rings around the goal into which the active player carries the
  ball.

  The rings are evenly spaced at distances 0.99 ... 0.19 from the middle of the goal. Each counts
  once per episode, and a goal collects those that are left.
  """

  NUM = 10
  REWARD = 0.1
  _FARTHEST, _SPAN = 0.99, 0.8

  def __init__(self) -> None:
    self._collected = 0

  def reset(self) -> None:
    self._collected = 0

  def __call__(self, goals: float, record: Mapping[str, Any]) -> float:
    """Returns a step's reward in addition to its goals. goals: own goals minus the opponents'."""
    before = self._collected
    if goals == 1:
      self._collected = self.NUM
    elif record['ball_owned_team'] == 0 and record['ball_owned_player'] == record['active']:
      x, y = record['ball'][:2]
      distance = ((x - 1) ** 2 + y**2) ** 0.5
      while self._collected < self.NUM and distance <= self._ring(self._collected):
        self._collected += 1
    return self.REWARD * (self._collected - before)

  def _ring(self, number: int) -> float:
    return self._FARTHEST - self._SPAN / (self.NUM - 1) * number


_HEIGHT, _WIDTH = 252, 480  # size of a drawn pitch, in pixels
_GRASS, _LINES = (62, 122, 58), (214, 226, 210)
_LEFT, _RIGHT, _BALL, _ACTIVE = (214, 62, 52), (58, 108, 214), (250, 250, 250), (250, 214, 60)


def drawn_pitch(record: Mapping[str, Any]) -> np.ndarray:
  """Draws the pitch from above, `[252, 480, 3]` uint8: the own team in red, the ball in white."""
  picture = np.full((_HEIGHT, _WIDTH, 3), _GRASS, np.uint8)
  rows, columns = np.ogrid[:_HEIGHT, :_WIDTH]
  x = (columns + 0.5) / _WIDTH * 2.2 - 1.1  # the pitch and a tenth around it
  y = (rows + 0.5) / _HEIGHT * 1.155 - 0.5775
  inside = (np.abs(x) <= 1.0) & (np.abs(y) <= 0.42)
  smaller = (np.abs(x) <= 0.99) & (np.abs(y) <= 0.41)
  picture[inside & ~smaller] = _LINES
  picture[inside & (np.abs(x) < 0.005)] = _LINES
  picture[(np.abs(np.abs(x) - 1.0) < 0.02) & (np.abs(y) < 0.044)] = _BALL  # the goals

  def disc(point: Any, radius: float, colour: tuple[int, int, int]) -> None:
    picture[(x - point[0]) ** 2 + (y - point[1]) ** 2 <= radius**2] = colour

  for team, colour in (('right_team', _RIGHT), ('left_team', _LEFT)):
    for number, point in enumerate(np.asarray(record[team])):
      if team == 'left_team' and number == record['active']:
        disc(point, 0.032, _ACTIVE)
      disc(point, 0.022, colour)
  disc(record['ball'], 0.012, _BALL)
  return picture
