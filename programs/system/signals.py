"""Ctrl-C and SIGTERM while a program has runs under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import signal
import threading


@contextlib.contextmanager
def signals_to(handler: Callable[[int], None]) -> Iterator[None]:
  """Ctrl-C and SIGTERM call `handler` instead; only the main thread can have that."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  numbers = (signal.SIGINT, signal.SIGTERM)
  old = [signal.signal(number, lambda n, _: handler(n)) for number in numbers]
  try:
    yield
  finally:
    for number, previous in zip(numbers, old):
      signal.signal(number, previous)
