"""Collects the requests of concurrent callers into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import threading
import time
from typing import Union

import numpy as np

from seed_acme import types
from seed_acme.inference import event_loop

# A caller's reply: actions, the reason of a refusal, or STOPPED.
Reply = Union[types.Nest, 'Refusal', 'Stopped']


class Stopped:
  """Reply after the server has finished its work; the caller should end, too."""


STOPPED = Stopped()


class Refusal:
  """Reply to a request that was rejected and had no effect."""

  def __init__(self, reason: str):
    self.reason = reason


class PendingRequest:
  """A request that waits for its reply; made by a session, answered by the inference thread."""

  __slots__ = ('request', 'is_training', 'arrived_s', 'answer')

  def __init__(
    self, request: types.ActorRequest, is_training: bool, answer: Callable[[Reply], None]
  ):
    """answer: receives the reply, on the inference thread or on one that closes the batcher or the
    caller's stream; must not block.
    """
    self.request = request
    self.is_training = is_training
    self.arrived_s = time.perf_counter()
    self.answer = answer

  def age_s(self) -> float:
    return time.perf_counter() - self.arrived_s


class Batcher:
  """Groups the requests of any number of callers into batches.

  A batch is ready when `batch_size` rows wait, when the oldest of them has waited
  `timeout_s`, or when every open caller waits, because then no other request can come. So one
  dead or slow actor delays the others by at most `timeout_s`, and never stalls them.

  While `accepts_training()` is false, because replay is full, requests of training
  environments wait; evaluation requests are still served.
  """

  def __init__(
    self,
    batch_size: int,
    timeout_s: float,
    accepts_training: Callable[[], bool],
    hold_back: Callable[[types.ActorRequest], bool],
  ):
    """hold_back(request): whether this one has to wait; called again after each `wake`, by the
    thread that takes the batches.
    """
    self.loop = event_loop.EventLoop()  # the thread that takes the batches also runs its handlers
    self._hold_back = hold_back
    self._batch_size = batch_size
    self._timeout_s = timeout_s
    self._accepts_training = accepts_training
    self._lock = threading.Lock()
    self._pending: list[PendingRequest] = []
    self._num_rows = 0  # of all pending requests
    self._num_callers = 0
    self._closed = False
    self._nothing_to_run = True  # at the last look of `next_batch`: no request, or all held back

  def add_caller(self) -> None:
    """Registers a stream, which may send one request at a time."""
    with self._lock:
      self._num_callers += 1

  def remove_caller(self, pending: PendingRequest | None) -> None:
    """Removes a stream that has ended, and drops its waiting request."""
    with self._lock:
      self._num_callers -= 1
      if pending is not None and pending in self._pending:
        self._pending.remove(pending)
        self._num_rows -= pending.request.env_ids.size
        pending.answer(STOPPED)
    self.loop.wake()

  def submit(self, pending: PendingRequest) -> None:
    """Queues a request. Called by sessions, from any thread."""
    with self._lock:
      if self._closed:
        pending.answer(STOPPED)
        return
      self._pending.append(pending)
      self._num_rows += pending.request.env_ids.size
      # Waking the inference thread costs more than this check. If it waits for the time-out
      # of an older request, this one need not wake it.
      if self._nothing_to_run or self._may_be_full():
        self.loop.wake()

  def _may_be_full(self) -> bool:
    """Whether a batch is ready, unless requests are held back."""
    return self._num_rows >= self._batch_size or len(self._pending) >= self._num_callers

  def wake(self) -> None:
    """Checks the requests that were held back, after replay has room again or weights are new."""
    self.loop.wake()

  def close(self) -> None:
    """Answers all waiting and all later requests with STOPPED."""
    with self._lock:
      self._closed = True
      pending, self._pending = self._pending, []
      self._num_rows = 0
    self.loop.wake()
    for request in pending:
      request.answer(STOPPED)

  def next_batch(self, wait_s: float) -> list[PendingRequest]:
    """Returns the next batch, or an empty list after `wait_s` without one or after `close`."""
    give_up = time.perf_counter() + wait_s
    self.loop.wait(0.0)  # requests that have arrived meanwhile join the batch
    while True:
      with self._lock:
        if self._closed:
          return []
        now = time.perf_counter()
        eligible, ready_in = self._look(now)
        self._nothing_to_run = not eligible
        if ready_in <= 0:
          return self._take(eligible)
      if now >= give_up:
        return []
      self.loop.wait(min(ready_in, give_up - now))

  def _eligible(self) -> Iterator[PendingRequest]:
    """Yields the requests that are not held back, oldest first."""
    if self._accepts_training():
      return (p for p in self._pending if not self._hold_back(p.request))
    return (p for p in self._pending if not p.is_training)

  def _look(self, now: float) -> tuple[list[PendingRequest], float]:
    """Returns all eligible requests if they should run as a batch now, else only the oldest; and
    the seconds until they should, infinite = when a request comes.

    It is called at every message, so it looks at all requests only if they may fill a batch.
    """
    eligible = self._eligible()
    oldest = next(eligible, None)
    if oldest is None:
      return [], float('inf')
    ready_in = oldest.arrived_s + self._timeout_s - now
    if ready_in > 0 and not self._may_be_full():
      return [oldest], ready_in
    found = [oldest, *eligible]
    num_rows = sum(p.request.env_ids.size for p in found)
    is_full = num_rows >= self._batch_size or len(self._pending) >= self._num_callers
    return found, 0.0 if is_full else ready_in

  def _take(self, eligible: list[PendingRequest]) -> list[PendingRequest]:
    """Removes and returns the oldest requests that fit; one larger than a batch goes alone."""
    batch: list[PendingRequest] = []
    num_rows = 0
    for pending in eligible:
      size = pending.request.env_ids.size
      if batch and num_rows + size > self._batch_size:
        break
      batch.append(pending)
      num_rows += size
    self._num_rows -= num_rows
    taken = set(map(id, batch))
    self._pending = [p for p in self._pending if id(p) not in taken]
    return batch


def padded_size(num_rows: int, batch_size: int) -> int:
  """Returns the size a batch is padded to: a power of two from 8 on, or `batch_size` itself."""
  size = 8
  while size < num_rows:
    size *= 2
  return batch_size if num_rows <= batch_size < size else size


def refuse_repeated_environments(
  requests: list[types.ActorRequest], num_environments: int
) -> list[Refusal | None]:
  """Returns a refusal for each request that repeats an environment of its own or of the batch."""
  is_taken = np.zeros(num_environments, bool)
  refusals: list[Refusal | None] = []
  for request in requests:
    refusal = _refusal(request.env_ids, is_taken)
    if refusal is None:
      is_taken[request.env_ids] = True
    refusals.append(refusal)
  return refusals


def _refusal(env_ids: np.ndarray, is_taken: np.ndarray) -> Refusal | None:
  """Returns why a request is refused, if it is. is_taken: environments already in the batch."""
  if env_ids.size and (env_ids.min() < 0 or env_ids.max() >= is_taken.size):
    return Refusal(
      f'env_ids {env_ids.min()} ... {env_ids.max()} are outside 0 ... {is_taken.size - 1}'
    )
  with_these = is_taken.copy()
  with_these[env_ids] = True
  if np.count_nonzero(with_these) != np.count_nonzero(is_taken) + env_ids.size:
    return Refusal(
      f'environment {_first_repeated(env_ids, is_taken)} is in this batch twice: two actors use '
      'the same env_id'
    )
  return None


def _first_repeated(env_ids: np.ndarray, is_taken: np.ndarray) -> int:
  unique, counts = np.unique(env_ids, return_counts=True)
  return int(unique[(counts > 1) | is_taken[unique]][0])
