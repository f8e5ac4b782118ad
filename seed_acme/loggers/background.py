"""Work for a tracking server, done on a thread of its own: learning never waits for a network."""

from __future__ import annotations

from collections.abc import Callable
import queue
import threading
import time

_CAPACITY = 10_000  # jobs that wait; hours of rows, a few megabytes


class Background:
  """Does jobs one after another, in their order, on a daemon thread.

  on_failure: told of each job that raised, on that thread. A failed job is not done again. While
  a server is away, jobs wait; beyond `_CAPACITY` new ones are dropped and counted.
  """

  def __init__(self, name: str, on_failure: Callable[[Exception], None]):
    self._jobs: queue.Queue[Callable[[], object] | None] = queue.Queue(_CAPACITY)
    self._on_failure = on_failure
    self.num_dropped = 0
    self._thread = threading.Thread(target=self._run, name=name, daemon=True)
    self._thread.start()

  def put(self, job: Callable[[], object]) -> None:
    """Returns at once."""
    try:
      self._jobs.put_nowait(job)
    except queue.Full:
      self.num_dropped += 1

  def close(self, timeout_s: float) -> bool:
    """Waits for the jobs; whether all were done by then. What is left ends with the process."""
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
      except Exception as error:  # whatever a client library raises; it is told, not hidden
        self._on_failure(error)
