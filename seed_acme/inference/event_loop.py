"""Event loop with which one thread waits for sockets and for other threads at the same time."""

from __future__ import annotations

from collections.abc import Callable
import os
import select
import threading

OnReady = Callable[[int], None]


class EventLoop:
  """Sockets and their handlers. `wait` calls the handlers of sockets that are ready.

  They run on the waiting thread, the inference thread, so that no other thread has to run between a
  message and its batch. Only `wake` and `call` may be used from other threads.
  """

  def __init__(self) -> None:
    self._epoll = select.epoll()
    self._waking = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
    self._handlers: dict[int, OnReady] = {self._waking: self._on_wake}
    self._epoll.register(self._waking, select.EPOLLIN)
    self._calls: list[Callable[[], None]] = []
    self._lock = threading.Lock()  # protects `_calls` and `_closed`
    self._waiter = 0  # the thread that waited last
    self._closed = False

  def add(self, fd: int, on_ready: OnReady) -> None:
    """Adds a socket. on_ready(events): called when `fd` can be read, or its other end is gone."""
    self._handlers[fd] = on_ready
    self._epoll.register(fd, select.EPOLLIN)

  def expect(self, fd: int, *, writable: bool) -> None:
    """Sets whether `on_ready` is also called when `fd` can be written."""
    self._epoll.modify(fd, select.EPOLLIN | (select.EPOLLOUT if writable else 0))

  def remove(self, fd: int) -> None:
    """Removes a socket; must be called before `fd` is closed."""
    del self._handlers[fd]
    self._epoll.unregister(fd)

  def wait(self, timeout_s: float) -> None:
    """Waits until a socket was ready, `wake` was called, or the time is over."""
    self._waiter = threading.get_ident()
    for fd, events in self._epoll.poll(timeout_s):
      handler = self._handlers.get(fd)
      if handler is not None:  # an earlier handler of this round may have removed it
        handler(events)

  def wake(self) -> None:
    """Makes the current or the next `wait` return. Called from any thread; it does nothing on the
    waiting thread itself, which checks everything before it waits again.
    """
    if threading.get_ident() != self._waiter:
      with self._lock:
        if not self._closed:
          os.eventfd_write(self._waking, 1)

  def call(self, function: Callable[[], None]) -> None:
    """Makes the waiting thread call a function. Called from any thread."""
    if threading.get_ident() == self._waiter:
      function()
      return
    with self._lock:
      self._calls.append(function)
    self.wake()

  def close(self) -> None:
    """Closes the loop, once no thread waits on it. Later wakes do nothing. Safe to call twice."""
    with self._lock:
      if self._closed:
        return
      self._closed = True
    self._epoll.close()
    os.close(self._waking)

  def _on_wake(self, _: int) -> None:
    os.eventfd_read(self._waking)
    with self._lock:
      calls, self._calls = self._calls, []
    for function in calls:
      function()
