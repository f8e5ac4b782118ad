"""The threads for a server's calls."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import queue
import threading
from typing import Any


class CallThreads(futures.Executor):
  """An executor with a thread for every call under way, and a few idle ones.

  A limit could deadlock: if each of N calls waits for the next one (at a barrier, for example), a
  pool of fewer threads never finishes any. The threads are daemons, because a method that does not
  return must not delay the exit of its process.
  """

  def __init__(self, num_kept: int):
    """num_kept: threads that stay when their call is done."""
    self._num_kept = num_kept
    self._lock = threading.Lock()
    self._num_idle = 0  # idle threads, less the calls that wait for one of them
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
      except BaseException as error:  # the holder of the future gets it
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
      del call  # an idle thread must not keep objects of its last call alive
      with self._lock:
        if self._is_shut_down or self._num_idle >= self._num_kept:
          return
        self._num_idle += 1

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    """Ends the idle threads; does not wait for running calls."""
    del wait, cancel_futures
    with self._lock:
      self._is_shut_down = True
      for _ in range(self._num_idle):
        self._calls.put(None)
      self._num_idle = 0
