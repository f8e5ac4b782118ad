"""Waits that may last: nobody should have to guess what a run that stands still waits for.

Whoever waits does so within `on`, and looks for the end every second where that is possible.
A `Watch` tells the user of every wait of its process that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import threading
import time
from typing import NamedTuple

SILENT_S = 60.0
_LOOK_S = 1.0


class _Wait(NamedTuple):
  what: str | Callable[[], str]
  since_s: float


_lock = threading.Lock()
_waits: dict[object, _Wait] = {}  # of all threads, from the start of each to its end


@contextlib.contextmanager
def on(what: str | Callable[[], str]) -> Iterator[None]:
  """While its body waits. what: completes "waiting for"; called, on another thread, if it lasts."""
  key = object()
  with _lock:
    _waits[key] = _Wait(what, time.monotonic())
  try:
    yield
  finally:
    with _lock:
      del _waits[key]


def oldest(at_least_s: float) -> str:
  """What this process has waited for longest, if for so long; or ''."""
  with _lock:
    waits = [w for w in _waits.values() if time.monotonic() - w.since_s >= at_least_s]
  if not waits:
    return ''
  what = min(waits, key=lambda wait: wait.since_s).what
  return what if isinstance(what, str) else what()


class Watch:
  """A thread that tells, once each, of waits that have lasted `SILENT_S`."""

  def __init__(self, tell: Callable[[str], None]):
    self._tell = tell
    self._told: set[object] = set()
    self._stopped = threading.Event()
    self._thread = threading.Thread(target=self._run, name='waits', daemon=True)

  def start(self) -> None:
    self._thread.start()

  def look(self) -> None:
    """Tells of the waits that have lasted by now."""
    with _lock:
      waits = dict(_waits)
    self._told.intersection_update(waits)
    for key, wait in waits.items():
      if key not in self._told and time.monotonic() - wait.since_s >= SILENT_S:
        self._told.add(key)
        what = wait.what if isinstance(wait.what, str) else wait.what()
        self._tell(f'waiting for {what}, for {SILENT_S:g} s by now')

  def _run(self) -> None:
    while not self._stopped.wait(_LOOK_S):
      self.look()

  def stop(self) -> None:
    """Tells of nothing any more; does not wait for the thread."""
    self._stopped.set()
