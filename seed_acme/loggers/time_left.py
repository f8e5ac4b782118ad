"""Estimates how long a run will still take, from its statuses."""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Any

_MEMORY_S = 60.0  # time after which an interval has 1/e of its weight in the average speed
_MAX_CHANGE = 1.5  # largest factor from one estimate to the next
_MIN_S = 3.0  # a speed measured over less time says little


class TimeLeft:
  """Divides the remaining steps by an exponential average of the speed.

  The first update is left out, because tracing and compiling take seconds only once. A single long
  pause, such as saving a large memory, changes the estimate gradually.
  """

  def __init__(self) -> None:
    self._last: tuple[float, float] | None = None  # wall_s and steps at the end of the average
    self._before_s: float | None = None  # wall_s of the last status before the first update
    self._seconds = self._steps = 0.0  # weighted sums
    self._left_s: float | None = None

  def update(self, status: Mapping[str, Any]) -> float | None:
    """Returns the seconds left; None = not known yet. A status may be given several times.

    status: `agent_steps`, `total_steps`, `wall_s`, `max_wall_s`, and the `phase` that the run is
    in before its first update.
    """
    steps, wall_s = status.get('agent_steps'), status.get('wall_s')
    total = status.get('total_steps')
    if steps is None or wall_s is None or not total:
      return None
    if self._last is not None and (wall_s < self._last[0] or steps < self._last[1]):
      self._last = None  # the run restarted at a checkpoint, as fast as before
    if self._last is None:
      if status.get('phase'):
        self._before_s = wall_s
      elif wall_s != self._before_s:
        self._last = wall_s, steps
    elif wall_s > self._last[0]:
      seconds = wall_s - self._last[0]
      self._add(seconds, steps - self._last[1])
      self._last = wall_s, steps
      self._renew(max(0.0, total - steps), seconds)
    max_wall_s = status.get('max_wall_s')
    if self._left_s is not None and max_wall_s:
      return min(self._left_s, max(0.0, max_wall_s - wall_s))
    return self._left_s

  def _renew(self, steps_left: float, passed_s: float) -> None:
    if self._seconds < _MIN_S or not self._steps:
      return
    left_s = steps_left * self._seconds / self._steps
    if self._left_s is not None:
      least = self._left_s / _MAX_CHANGE - passed_s
      left_s = max(least, min(self._left_s * _MAX_CHANGE, left_s))
    self._left_s = max(0.0, left_s)

  def _add(self, seconds: float, steps: float) -> None:
    weight = math.exp(-seconds / _MEMORY_S)
    self._seconds = weight * self._seconds + seconds
    self._steps = weight * self._steps + steps
