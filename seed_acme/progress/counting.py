"""Counters of a run's progress: agent steps, frames, updates, episodes, trained steps, seconds."""

from __future__ import annotations

import collections
import operator
import threading
import time
from typing import Callable, NamedTuple


class Counts(NamedTuple):
  """One reading of all counters, as a checkpoint stores it.

  agent_steps: unmasked transitions of the training environments.
  frames: environment frames in these transitions (action repeat included).
  updates: batches learnt from, each in one or more gradient steps. trained_steps: unmasked
    transitions used in them.
  episodes: training episodes that ended. wall_s: seconds of training, over all resumptions.
  """

  agent_steps: int = 0
  frames: int = 0
  updates: int = 0
  episodes: int = 0
  trained_steps: int = 0
  wall_s: float = 0.0


class Counters:
  """The counters of one run. Any thread may add and read; they never decrease.

  The clock of `wall_s` runs from construction or from the last `restore`.
  """

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._lock = threading.Lock()
    self._counts = Counts()
    self._started = clock()

  def add(
    self,
    *,
    agent_steps: int = 0,
    frames: int = 0,
    updates: int = 0,
    episodes: int = 0,
    trained_steps: int = 0,
  ) -> None:
    """Adds to several counters at once, so that every reader sees them consistent."""
    # int(): NumPy integers of a fixed width would overflow or not be JSON.
    added = tuple(map(int, (agent_steps, frames, updates, episodes, trained_steps)))
    if min(added) < 0:
      raise ValueError(f'counters never decrease, but were given {added}')
    with self._lock:
      old = self._counts
      self._counts = Counts(*map(operator.add, old, added))._replace(wall_s=old.wall_s)

  @property
  def agent_steps(self) -> int:
    """Same as `snapshot().agent_steps`, but cheaper."""
    return self._counts.agent_steps

  def snapshot(self) -> Counts:
    """Returns all counters at one moment."""
    with self._lock:
      return self._counts._replace(
        wall_s=self._counts.wall_s + max(0.0, self._clock() - self._started)
      )

  def own(self) -> Counts:
    """Returns what this learner host has counted. Every host counts every update."""
    return self.snapshot()

  def agree(self, counts: Counts) -> None:
    """Takes over the common counts of all learner hosts; does nothing with a single host."""

  def restore(self, counts: Counts) -> None:
    """Continues from `counts`; the time between saving and restoring is not counted."""
    with self._lock:
      self._counts = Counts(
        int(counts.agent_steps),
        int(counts.frames),
        int(counts.updates),
        int(counts.episodes),
        int(counts.trained_steps),
        float(counts.wall_s),
      )
      self._started = self._clock()


class RecentRate:
  """Agent steps per second over about the last `span_s` seconds of a run.

  The span should be longer than an unroll takes: the unrolls of environments that are stepped
  together end together, and between their ends no steps are counted.
  """

  def __init__(self, span_s: float):
    self._span_s = span_s
    self._readings: collections.deque[Counts] = collections.deque()

  def begin(self, counts: Counts) -> None:
    """Measures from here on, because a resumed run counts on from its checkpoint."""
    self._readings.clear()
    self._readings.append(counts)

  def add(self, counts: Counts) -> float:
    """Takes a later reading; returns the rate up to it, or 0 for the first one."""
    readings = self._readings
    readings.append(counts)
    while len(readings) > 2 and counts.wall_s - readings[1].wall_s >= self._span_s:
      readings.popleft()
    elapsed_s = counts.wall_s - readings[0].wall_s
    steps = counts.agent_steps - readings[0].agent_steps
    return steps / elapsed_s if elapsed_s > 0 else 0.0


class AgreedCounters(Counters):
  """Counters that several learner hosts agree on. Each host counts what its own environments do,
  and reads the agreed counts, so that all hosts make the same decisions."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    super().__init__(clock)
    self._agreed = Counts()

  @property
  def agent_steps(self) -> int:
    """See the base class."""
    return self._agreed.agent_steps

  def own(self) -> Counts:
    """See the base class."""
    return super().snapshot()

  def restore(self, counts: Counts) -> None:
    """See the base class. The restored counts are valid until the hosts agree on new ones."""
    super().restore(counts)
    self._agreed = counts

  def agree(self, counts: Counts) -> None:
    """See the base class. Ignores updates and trained steps, which all hosts count alike."""
    self._agreed = counts

  def snapshot(self) -> Counts:
    """See the base class."""
    own = self.own()
    return self._agreed._replace(updates=own.updates, trained_steps=own.trained_steps)
