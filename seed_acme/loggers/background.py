"""Runs jobs for a tracking server in another thread, so that learning never waits for a network."""

from __future__ import annotations

from collections.abc import Callable
import queue
import threading
import time

_CAPACITY = 10_000  # jobs that wait; hours of rows, a few megabytes


class Background:
  """Runs jobs one after another, in their order, on a daemon thread.

  on_failure: called on that thread with each job's exception. A failed job is not repeated. While
  a server is unreachable, jobs wait; beyond `_CAPACITY`, new ones are dropped and counted.
  """

  def __init__(self, name: str, on_failure: Callable[[Exception], None]):
    self._jobs: queue.Queue[Callable[[], object] | None] = queue.Queue(_CAPACITY)
    self._on_failure = on_failure
    self.num_dropped = 0
    self._thread = threading.Thread(target=self._run, name=name, daemon=True)
    self._thread.start()

  def put(self, job: Callable[[], object]) -> None:
    """Queues a job; returns immediately."""
    try:
      self._jobs.put_nowait(job)
    except queue.Full:
      self.num_dropped += 1

  def close(self, timeout_s: float) -> bool:
    """Waits for the jobs; returns whether all are done. Jobs that are left end with the process."""
    deadline_s = time.monotonic() + timeout_s
    try:
      self._jobs.put(None, timeout=timeout_s)
    except queue.Full:
      return False
    self._thread.join(max(0.0, deadline_s - time.monotonic()))
    return not self._thread.is_alive()

  def _run(self) -> None:
    while (job := self._jobs.get()) is not None:
      try:
        job()
      except Exception as error:  # whatever a client library raises; it is reported, not hidden
        self._on_failure(error)
