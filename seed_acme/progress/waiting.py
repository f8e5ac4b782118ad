"""Registry of waits, so that users see what a run waits for when it makes no progress.

Code that may wait long does so inside `on`, and checks for the end of the run every second where
that is possible. A `Watch` reports every long wait of its process to the user.
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
_waits: dict[object, _Wait] = {}  # the current waits of all threads


@contextlib.contextmanager
def on(what: str | Callable[[], str]) -> Iterator[None]:
  """Registers the wait inside the context. what: completes "waiting for"; a function is called only
  if the wait is reported, from another thread."""
  key = object()
  with _lock:
    _waits[key] = _Wait(what, time.monotonic())
  try:
    yield
  finally:
    with _lock:
      del _waits[key]


def oldest(at_least_s: float) -> str:
  """Describes the longest current wait of this process; '' if it is shorter than `at_least_s`."""
  with _lock:
    waits = [w for w in _waits.values() if time.monotonic() - w.since_s >= at_least_s]
  if not waits:
    return ''
  what = min(waits, key=lambda wait: wait.since_s).what
  return what if isinstance(what, str) else what()


class Watch:
  """A thread that reports each wait once, when it has lasted `SILENT_S`."""

  def __init__(self, tell: Callable[[str], None]):
    self._tell = tell
    self._told: set[object] = set()
    self._stopped = threading.Event()
    self._thread = threading.Thread(target=self._run, name='waits', daemon=True)

  def start(self) -> None:
    self._thread.start()

  def look(self) -> None:
    """Reports the waits that have lasted `SILENT_S` and were not reported yet."""
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
    """Ends the reports; does not wait for the thread."""
    self._stopped.set()
