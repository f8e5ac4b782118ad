"""The learner's access to its replay memory: writes priorities back by key, takes checkpoints."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import json
import math
import pathlib
import threading
import time

import numpy as np
import reverb

from seed_acme.progress import waiting
from seed_acme.replay import connection
from seed_acme.replay import table_counts
from seed_acme.replay import tables

_TIMEOUT_S, _ANSWER_S = 60, 1
# A server that saves counts as dead if it writes nothing for so long. Besides the time for saving
# memories, a node has 45 s to end, in which it must also write the rest of the checkpoint.
SILENT_S = 20.0
_LOOK_S = 0.1
_STOP_S = 10.0  # for a server that does not answer any more
_GREATEST = 'greatest_priority.json'  # beside Reverb's files, in what `checkpoint` returns


class ReplayMemory:
  """Writes priorities on a thread of its own, so that the learner never waits for them.

  Updates that have not been sent yet are merged by key, and the newest counts, so there are never
  more of them than unrolls in the table. Reverb ignores keys that were removed meanwhile.

  The single-process program waits until updates have arrived, so that they affect the next sample.
  """

  def __init__(
    self,
    server_address: str,
    has_priorities: bool,
    in_progress: pathlib.Path,
    restored_from: pathlib.Path | None = None,
  ):
    """has_priorities: false for uniform replay, whose updates are dropped. in_progress: the folder
    into which the server saves. restored_from: the folder of an earlier `checkpoint`, from which
    the server is restored if it can be."""
    self._in_progress = in_progress
    self._saving: _Saving | None = None
    self._client = connection.client(server_address)
    self._has_priorities = has_priorities
    self._condition = threading.Condition()
    self._waiting: dict[int, float] = {}
    self._num_sending = 0
    # The greatest that was written back, also before the server was saved and restored; at least 1.
    self.greatest_priority = _saved_greatest(restored_from)
    self._sending = threading.Lock()
    self._stopped = False
    self._on_failure: Callable[[BaseException], None] = lambda error: None
    self._thread: threading.Thread | None = None

  def start(self, on_failure: Callable[[BaseException], None]) -> None:
    """Starts the thread. on_failure: called once, in it, with the exception that ended it early."""
    self._on_failure = on_failure
    self._thread = threading.Thread(target=self._run, name='priorities', daemon=True)
    self._thread.start()

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """Queues new priorities: keys `[B]` uint64, priorities `[B]` >= 0, or NaN for items that keep
    theirs. Never blocks. Raises `FloatingPointError` for infinite or negative ones."""
    is_new = ~np.isnan(priorities)
    keys, priorities = keys[is_new], priorities[is_new]
    if not self._has_priorities or not keys.size:
      return
    is_wrong = ~np.isfinite(priorities) | (priorities < 0)
    if is_wrong.any():
      raise FloatingPointError(
        f'the agent gives an unroll the priority {priorities[is_wrong][0]}, which must be a finite '
        'number of at least 0, or NaN to keep the old one'
      )
    with self._condition:
      self._waiting.update(zip(keys.tolist(), priorities.tolist()))
      self.greatest_priority = max(self.greatest_priority, float(priorities.max()))
      self._condition.notify_all()

  def flush(self) -> None:
    """Returns when every update so far has reached the table."""
    with self._sending:
      with self._condition:
        updates, self._waiting = self._waiting, {}
        self._num_sending = len(updates)
      if updates:
        with waiting.on('the replay server to take priorities'):
          self._client.mutate_priorities(tables.UNROLLS, updates=updates)
      with self._condition:
        self._num_sending = 0
        self._condition.notify_all()

  def counts(self) -> tuple[int, int]:
    """Unrolls inserted and sampled so far, as the table's rate limiter counts them."""
    return table_counts.read(self._client, _TIMEOUT_S)[:2]

  def counts_now(self) -> tuple[int, int] | None:
    """Returns `counts()`, or None if the server does not answer at once."""
    try:
      return table_counts.read(self._client, _ANSWER_S)[:2]
    except (reverb.ReverbError, RuntimeError):
      return None

  def wait_until_sent(self, timeout_s: float) -> bool:
    """Waits until every update so far has reached the table; False on time-out. Needs `start`."""
    with self._condition:
      return self._condition.wait_for(
        lambda: not self._waiting and not self._num_sending, timeout_s
      )

  def checkpoint(self) -> pathlib.Path:
    """Makes the server write all of its tables; inserts and samples block meanwhile.

    Returns the folder, which the caller must move away, because the next checkpoint deletes it.
    Raises RuntimeError if it cannot be written, on a full disk for instance, or if the server does
    not answer.
    """
    if self._saving is None or not self._saving.is_under_way():
      self._saving = _Saving(self._save)
    try:
      with waiting.on('the replay server to save its memory'):
        return pathlib.Path(self._saving.result(self._in_progress))
    except (IndexError, ValueError, OSError) as error:  # a full disk is an IndexError to Reverb
      raise RuntimeError(str(error)) from error

  def _save(self) -> str:
    self.flush()
    folder = self._client.checkpoint()
    if self._has_priorities:
      (pathlib.Path(folder) / _GREATEST).write_text(json.dumps(self.greatest_priority))
    return folder

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
    """Ends the thread; updates that wait are dropped."""
    with self._condition:
      self._stopped = True
      self._condition.notify_all()
    if self._thread is not None:
      self._thread.join(_STOP_S)


def _saved_greatest(folder: pathlib.Path | None) -> float:
  """Returns the greatest priority that was saved with a memory; 1 if there is none."""
  if folder is None:
    return 1.0
  try:
    value = json.loads((folder / _GREATEST).read_text())
  except (OSError, ValueError):  # memories of earlier commits have none
    return 1.0
  return max(1.0, value) if isinstance(value, float) and math.isfinite(value) else 1.0


class _Saving:
  """A call in its own thread, because nothing can interrupt it if the server never answers."""

  def __init__(self, call: Callable[[], str]):
    self._results: list[str] = []
    self._errors: list[BaseException] = []
    self._thread = threading.Thread(target=self._run, args=[call], name='saving', daemon=True)
    self._thread.start()

  def _run(self, call: Callable[[], str]) -> None:
    try:
      self._results.append(call())
    except BaseException as error:  # raised by `result`
      self._errors.append(error)

  def is_under_way(self) -> bool:
    return self._thread.is_alive()

  def result(self, folder: pathlib.Path) -> str:
    """Waits for the result. Raises the call's error; RuntimeError if the folder stops growing."""
    size, grown_s = -1, time.monotonic()
    while self.is_under_way():
      if (found := _num_bytes(folder)) != size:
        size, grown_s = found, time.monotonic()
      if time.monotonic() - grown_s > SILENT_S:
        raise RuntimeError(
          f'the replay server does not answer, and has written nothing for {SILENT_S:g} s'
        )
      self._thread.join(_LOOK_S)
    if self._errors:
      raise self._errors[0]
    return self._results[0]


def _num_bytes(folder: pathlib.Path) -> int:
  """Returns the size of all files below a folder."""
  number = 0
  for path in folder.rglob('*'):
    with contextlib.suppress(OSError):  # deleted meanwhile
      number += path.stat().st_size
  return number
