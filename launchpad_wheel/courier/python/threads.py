"""Threads for a server's calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import queue
import threading
from typing import Any


class CallThreads(futures.Executor):
  """As many threads as there are calls under way; a few wait for the next ones.

  A bound would be a trap: where each of N calls waits for the one after it (a barrier, say), a
  pool of N threads never answers. They are daemons, because a method that does not return must not
  hold up the end of its process.
  """

  def __init__(self, num_kept: int):
    """num_kept: threads that stay when their call is done."""
    self._num_kept = num_kept
    self._lock = threading.Lock()
    self._num_idle = 0  # those that wait, less the calls that wait for one of them
    self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
    self._is_shut_down = False

  def submit(
    self, function: Callable[..., Any], /, *arguments: Any, **named: Any
  ) -> futures.Future:
    future: futures.Future = futures.Future()

    def call() -> None:
      if not future.set_running_or_notify_cancel():
        return
      try:
        future.set_result(function(*arguments, **named))
      except BaseException as error:  # handed to whoever holds the future
        future.set_exception(error)

    with self._lock:
      if self._is_shut_down:
        raise RuntimeError('the server has ended')
      if self._num_idle:
        self._num_idle -= 1
      else:
        threading.Thread(target=self._run, name='courier', daemon=True).start()
      self._calls.put(call)
    return future

  def _run(self) -> None:
    while (call := self._calls.get()) is not None:
      call()
      del call  # a thread that waits keeps nothing of the last call alive
      with self._lock:
        if self._is_shut_down or self._num_idle >= self._num_kept:
          return
        self._num_idle += 1

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    """Ends the threads that wait; what runs is not waited for."""
    del wait, cancel_futures
    with self._lock:
      self._is_shut_down = True
      for _ in range(self._num_idle):
        self._calls.put(None)
      self._num_idle = 0
