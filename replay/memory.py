"""The learner's hold on its replay memory: priorities written back by key, checkpoints."""

from __future__ import annotations

from collections.abc import Callable
import pathlib
import threading

import numpy as np
import reverb

from seed_acme.replay import tables

_TIMEOUT_S = 60


class ReplayMemory:
  """Writes priorities on a thread of its own, so that the learner never waits for them.

  Updates that are not sent yet are merged by key, the newest counts: what waits here is never
  more than the unrolls in the table. Reverb ignores keys that were removed meanwhile.

  The single-process program calls `flush` itself; a distributed one calls `start`.
  """

  def __init__(self, server_address: str, has_priorities: bool):
    """has_priorities: false for uniform replay, whose updates are dropped."""
    self._client = reverb.Client(server_address)
    self._has_priorities = has_priorities
    self._condition = threading.Condition()
    self._waiting: dict[int, float] = {}
    self._sending = threading.Lock()
    self._stopped = False
    self._on_failure: Callable[[BaseException], None] = lambda error: None
    self._thread: threading.Thread | None = None

  def start(self, on_failure: Callable[[BaseException], None]) -> None:
    """on_failure: called once, from the thread, with whatever ended it early."""
    self._on_failure = on_failure
    self._thread = threading.Thread(target=self._run, name='priorities', daemon=True)
    self._thread.start()

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """keys `[B]` uint64, priorities `[B]` finite, >= 0. Never blocks."""
    if not self._has_priorities:
      return
    with self._condition:
      self._waiting.update(zip(keys.tolist(), priorities.tolist()))
      self._condition.notify()

  def flush(self) -> None:
    """Returns when every update so far has reached the table."""
    with self._sending:
      with self._condition:
        updates, self._waiting = self._waiting, {}
      if updates:
        self._client.mutate_priorities(tables.UNROLLS, updates=updates)

  def counts(self) -> tuple[int, int]:
    """Unrolls inserted and sampled so far, as the table's rate limiter counts them."""
    info = self._client.server_info(timeout=_TIMEOUT_S)[tables.UNROLLS].rate_limiter_info
    return info.insert_stats.completed, info.sample_stats.completed

  def checkpoint(self) -> pathlib.Path:
    """Has the server write all of its tables; nobody inserts or samples meanwhile.

    Returns the folder, which the caller moves away: the next checkpoint deletes it. Raises
    RuntimeError where it cannot be written, on a full disk for instance.
    """
    self.flush()
    try:
      return pathlib.Path(self._client.checkpoint())
    except (IndexError, ValueError, OSError) as error:  # a full disk is an IndexError to Reverb
      raise RuntimeError(str(error)) from error

  def _run(self) -> None:
    try:
      while True:
        with self._condition:
          while not self._stopped and not self._waiting:
            self._condition.wait()
        if self._stopped:
          return
        self.flush()
    except BaseException as error:  # handed to the owner, who ends the node
      if not self._stopped:
        self._on_failure(error)

  def stop(self) -> None:
    """Ends the thread; what waits is dropped."""
    with self._condition:
      self._stopped = True
      self._condition.notify_all()
    if self._thread is not None:
      self._thread.join()
