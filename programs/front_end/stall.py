"""A watch on the progress of a run from outside, because a process that hangs cannot report it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import time
from typing import Any

from seed_acme import config as config_lib
from seed_acme.loggers import terminal

_SILENT_S = 10.0  # a healthy learner writes its status every second or two


def limit_s(learner: config_lib.LearnerConfig) -> float:
  """Returns the longest time without progress that is accepted; 0 = no limit.

  The status is written as often as the logs, so a stall cannot be seen sooner than that.
  """
  return max(learner.stall_s, 2 * learner.log_period_s) if learner.stall_s else 0.0


class Stall:
  """A detector of stalls, which is shown the run's status periodically."""

  def __init__(
    self, limit_s: float, longest_gap_s: float = 1.0, clock: Callable[[], float] = time.monotonic
  ):
    """limit_s: result of the function `limit_s`; 0 = no stall is ever reported.
    longest_gap_s: longer gaps between two calls count only this much, because the run may have been
      suspended or overloaded in between, together with this process."""
    self._limit_s = limit_s
    self._longest_gap_s = longest_gap_s
    self._clock = clock
    self._looked_s = clock()
    self._progress: tuple[Any, ...] = ()
    self._written: Any = None
    self._still_s = self._silent_s = 0.0

  def look(self, status: Mapping[str, Any]) -> str:
    """Returns how long the run has made no progress and what it waits for, as text; or ''.

    Call it more often than every `longest_gap_s`. status: from `summary.read_progress`.
    """
    now = self._clock()
    gap_s, self._looked_s = min(now - self._looked_s, self._longest_gap_s), now
    progress = (status.get('updates'), status.get('agent_steps'), status.get('phase'))
    self._still_s = 0.0 if progress != self._progress else self._still_s + gap_s
    is_silent = status.get('time_s') == self._written
    self._silent_s = self._silent_s + gap_s if is_silent else 0.0
    self._progress, self._written = progress, status.get('time_s')
    if not self._limit_s or self._still_s < self._limit_s:
      return ''
    return f'no progress for {terminal.duration(self._still_s)}: {self._reason(status)}'

  def _reason(self, status: Mapping[str, Any]) -> str:
    if phase := status.get('phase'):
      return str(phase)
    if status and self._silent_s > _SILENT_S:
      return 'the learner says nothing any more, see the folder logs'
    return f'waiting for {status.get("waits_for") or "data"}'
