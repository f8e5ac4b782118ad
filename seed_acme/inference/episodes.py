"""Returns and lengths of episodes, by environment."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
import threading
from typing import NamedTuple

import numpy as np

from seed_acme import types

WINDOW = 100  # episodes that the reported mean return covers, at most
MIN_EPISODES = 10  # that it covers however old they are, because fewer say little
_MAX_AGE = 0.1  # of the agent steps of the run so far

_Episode = tuple[float, float, int]  # score, return, length


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
  """Statistics of finished episodes, written by the inference thread, read by the training loop.

  The window contains the last `WINDOW` episodes. With `agent_steps`, which returns those of the run
  so far, it forgets episodes that ended before the last tenth of them, but never one of the last
  `MIN_EPISODES`. A few evaluation environments next to many training environments would otherwise
  be judged by weights from the beginning of the run.
  """

  def __init__(self, num_environments: int, agent_steps: Callable[[], int] | None = None):
    self._score = np.zeros(num_environments, np.float64)
    self._return = np.zeros(num_environments, np.float64)
    self._length = np.zeros(num_environments, np.int64)
    self._lock = threading.Lock()
    self._agent_steps = agent_steps
    # With the agent steps of the run when each had ended, which are 0 if nothing is forgotten.
    self._window: collections.deque[tuple[_Episode, int]] = collections.deque(maxlen=WINDOW)
    # Those since the last report: their sums, and the episodes themselves, of which only the last
    # are kept, because it may never be made.
    self._sums, self._num_recent = np.zeros(3), 0
    self._recent: collections.deque[_Episode] = collections.deque(maxlen=10_000)
    self._num_ended = 0
    self._marked_at: int | None = None  # episodes that had ended then
    self._around_mark: EpisodeSummary | None = None

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
    """Returns the means over the episodes of the window."""
    return _summarise([episode for episode, _ in self._young()])

  def mark(self) -> None:
    """Begins to look for the window around this moment, see `around_mark`."""
    with self._lock:
      self._marked_at, self._around_mark = self._num_ended, None

  @property
  def around_mark(self) -> EpisodeSummary | None:
    """The means over the first window of at least `MIN_EPISODES` of which half have ended since
    `mark`; None until then."""
    return self._around_mark

  @property
  def num_ended(self) -> int:
    """Episodes that have ended since this start, without those from `restore`."""
    return self._num_ended

  def window(self) -> list[tuple[float, float, int, int]]:
    """Returns the episodes of the window for a checkpoint: score, return, length, and the agent
    steps of the run when it ended."""
    return [(*episode, ended_at) for episode, ended_at in self._young()]

  def restore(self, window: Sequence[Sequence[float]]) -> None:
    """Continues from the `window` of a checkpoint, which contains no unfinished episodes. Where it
    does not say when episodes ended, as in old checkpoints, they count as just ended."""
    now = self._now()
    with self._lock:
      self._window.clear()
      for score, return_, length, *ended_at in window:
        self._window.append(((score, return_, int(length)), int(ended_at[0]) if ended_at else now))

  def _young(self) -> list[tuple[_Episode, int]]:
    with self._lock:
      window = list(self._window)
    return _young(window, self._now())

  def _now(self) -> int:
    return 0 if self._agent_steps is None else self._agent_steps()

  def take_recent(self) -> EpisodeSummary:
    """Returns the means over the episodes that ended since the last call."""
    with self._lock:
      sums, number = self._sums, self._num_recent
      self._forget_recent()
    return _of_sums(sums, number)

  def drain(self) -> list[_Episode]:
    """Returns (score, return, length) of each episode that ended since the last call, but of at
    most the last 10,000."""
    with self._lock:
      recent = list(self._recent)
      self._forget_recent()
    return recent

  def _forget_recent(self) -> None:
    self._sums, self._num_recent = np.zeros(3), 0
    self._recent.clear()

  def extend(self, episodes: Sequence[_Episode]) -> None:
    """Adds (score, return, length) of ended episodes, also of those that `drain` returned on
    another host."""
    if not episodes:
      return
    now = self._now()
    with self._lock:
      for score, return_, length in episodes:
        self._window.append(((score, return_, length), now))
        self._num_ended += 1
        self._look_around_mark(now)
      self._recent.extend((score, return_, length) for score, return_, length in episodes)
      self._sums = self._sums + np.sum(np.array(episodes, np.float64), axis=0)
      self._num_recent += len(episodes)

  def _look_around_mark(self, now: int) -> None:
    """Called for each episode, because a later window may have none from before the mark."""
    if self._marked_at is None or self._around_mark is not None:
      return
    window = _young(list(self._window), now)
    num_after = self._num_ended - self._marked_at
    if len(window) >= MIN_EPISODES and 2 * num_after >= len(window):
      self._around_mark = _summarise([episode for episode, _ in window])


def _young(window: list[tuple[_Episode, int]], now: int) -> list[tuple[_Episode, int]]:
  """Returns the episodes that are not forgotten, at `now` agent steps."""
  young = [entry for entry in window if entry[1] >= (1 - _MAX_AGE) * now]
  return max(young, window[-MIN_EPISODES:], key=len)


def _summarise(episodes: list[_Episode]) -> EpisodeSummary:
  return _of_sums(np.sum(np.array(episodes, np.float64), axis=0), len(episodes))


def _of_sums(sums: np.ndarray, number: int) -> EpisodeSummary:
  if not number:
    return EpisodeSummary(0, None, None, None)
  score, return_, length = (sums / number).tolist()
  return EpisodeSummary(number, score, return_, length)
