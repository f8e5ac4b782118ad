"""Returns and lengths of episodes, by environment."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import threading
from typing import NamedTuple

import numpy as np

from seed_acme import types

WINDOW = 100  # episodes that the reported mean return covers


class EpisodeSummary(NamedTuple):
  """Means over `num_episodes` episodes; None if there are none.

  score is the sum of the reported reward, return_ of the reward used in training; length is
  in agent steps (transitions).
  """

  num_episodes: int
  score: float | None
  return_: float | None
  length: float | None


class EpisodeStatistics:
  """Statistics of finished episodes, written by the inference thread, read by the training loop."""

  def __init__(self, num_environments: int):
    self._score = np.zeros(num_environments, np.float64)
    self._return = np.zeros(num_environments, np.float64)
    self._length = np.zeros(num_environments, np.int64)
    self._lock = threading.Lock()
    self._window: collections.deque[tuple[float, float, int]] = collections.deque(maxlen=WINDOW)
    # Those since the last report: their sums, and the episodes themselves, of which only the last
    # are kept, because it may never be made.
    self._sums, self._num_recent = np.zeros(3), 0
    self._recent: collections.deque[tuple[float, float, int]] = collections.deque(maxlen=10_000)
    self._num_ended = 0

  def reset(self, env_ids: np.ndarray) -> None:
    """Drops the unfinished episodes of these environments."""
    self._score[env_ids] = 0
    self._return[env_ids] = 0
    self._length[env_ids] = 0

  def add(
    self, env_ids: np.ndarray, step_type: np.ndarray, reward: np.ndarray, score: np.ndarray
  ) -> int:
    """Adds one row of each of these environments, `[N]`; returns how many episodes ended."""
    self._score[env_ids] += score
    self._return[env_ids] += reward
    self._length[env_ids] += step_type != types.FIRST
    ended = env_ids[step_type == types.LAST]
    if ended.size:
      episodes = list(
        zip(self._score[ended].tolist(), self._return[ended].tolist(), self._length[ended].tolist())
      )
      self.reset(ended)
      self.extend(episodes)
    return int(ended.size)

  def summary(self) -> EpisodeSummary:
    """Returns the means over the last `WINDOW` episodes."""
    return _summarise(self.window())

  @property
  def num_ended(self) -> int:
    """Episodes that have ended since this start, without those from `restore`."""
    return self._num_ended

  def window(self) -> list[tuple[float, float, int]]:
    """Returns (score, return, length) of the last `WINDOW` episodes, for a checkpoint."""
    with self._lock:
      return list(self._window)

  def restore(self, window: list[tuple[float, float, int]]) -> None:
    """Continues from the `window` of a checkpoint, which contains no unfinished episodes."""
    with self._lock:
      self._window.clear()
      self._window.extend((score, return_, length) for score, return_, length in window)

  def take_recent(self) -> EpisodeSummary:
    """Returns the means over the episodes that ended since the last call."""
    with self._lock:
      sums, number = self._sums, self._num_recent
      self._forget_recent()
    return _of_sums(sums, number)

  def drain(self) -> list[tuple[float, float, int]]:
    """Returns (score, return, length) of each episode that ended since the last call, but of at
    most the last 10,000."""
    with self._lock:
      recent = list(self._recent)
      self._forget_recent()
    return recent

  def _forget_recent(self) -> None:
    self._sums, self._num_recent = np.zeros(3), 0
    self._recent.clear()

  def extend(self, episodes: Sequence[tuple[float, float, int]]) -> None:
    """Adds (score, return, length) of ended episodes, also of those that `drain` returned on
    another host."""
    if not episodes:
      return
    with self._lock:
      self._window.extend((score, return_, length) for score, return_, length in episodes)
      self._recent.extend((score, return_, length) for score, return_, length in episodes)
      self._sums = self._sums + np.sum(np.array(episodes, np.float64), axis=0)
      self._num_recent += len(episodes)
      self._num_ended += len(episodes)


def _summarise(episodes: list[tuple[float, float, int]]) -> EpisodeSummary:
  return _of_sums(np.sum(np.array(episodes, np.float64), axis=0), len(episodes))


def _of_sums(sums: np.ndarray, number: int) -> EpisodeSummary:
  if not number:
    return EpisodeSummary(0, None, None, None)
  score, return_, length = (sums / number).tolist()
  return EpisodeSummary(number, score, return_, length)
