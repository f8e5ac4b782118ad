"""The progress of a run whose actors may connect and get lost at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import time
from typing import Any, TextIO

from seed_acme.loggers import terminal


class ClusterProgress(terminal.Progress):
  """The progress line, and a line above it whenever an actor connects or is lost."""

  def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic):
    super().__init__(stream, clock)
    self._now = clock
    self._connected: list[bool] = []
    self._lost_s: dict[int, float] = {}

  def update(self, status: Mapping[str, Any]) -> None:
    """Takes the status as `terminal.Progress` does, and its `actors`."""
    is_running = status.get('status') == 'running'  # at the end they leave one by one
    connected = [actor['is_connected'] for actor in status.get('actors', [])]
    if is_running:
      self._tell(connected)
    super().update(status)

  def _tell(self, connected: list[bool]) -> None:
    number = sum(connected)
    before = self._connected or [False] * len(connected)
    for index, (was, is_) in enumerate(zip(before, connected)):
      if was == is_:
        continue
      if is_:
        lost_s = self._lost_s.pop(index, None)
        back = '' if lost_s is None else f' again, after {self._now() - lost_s:.0f} s'
        what = f'connected{back}'
      else:
        self._lost_s[index] = self._now()
        what = 'lost'
      self.message(f'actor/{index} {what} ({number} of {len(connected)} connected)')
    self._connected = connected
