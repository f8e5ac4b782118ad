"""Signals that ask a program to end: Ctrl-C, SIGTERM, and SIGHUP when its terminal is gone.

All handlers of this package are set in this module. Launchpad sets its own in its launcher and
nodes.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Iterator
import contextlib
import os
import signal
import threading
from typing import NoReturn

from seed_acme.programs.system import streams

LOST_S = 5  # after which `leave` takes its exception for lost


def ending() -> tuple[signal.Signals, ...]:
  """Returns the signals that this process handles: SIGHUP only if `nohup` has not disabled it, and
  none whose handler is not Python's."""
  numbers = [signal.SIGINT, signal.SIGTERM]
  if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
    numbers.append(signal.SIGHUP)
  return tuple(filter(_can_be_restored, numbers))


def _can_be_restored(number: signal.Signals) -> bool:
  """Whether Python can put the present handler back, unlike one that C code has installed, as in a
  program in which Python is embedded."""
  return signal.getsignal(number) is not None


def answer(handler: Callable[[int], None], *but: signal.Signals) -> None:
  """Makes the signals of `ending` call `handler` with their number, except `but`. Main thread only.

  A SIGHUP after another signal is ignored, because a shell and a terminal may each send one
  although the user has sent none, and a second signal means that the user does not want to wait.
  """
  is_first = True

  def hear(number: int, _: object) -> None:
    nonlocal is_first
    is_repeated_hangup = False
    if number == signal.SIGHUP:
      streams.leave_lost_terminals()
      is_repeated_hangup = not is_first
    is_first = False
    if not is_repeated_hangup:
      handler(number)

  for number in set(ending()) - set(but):
    signal.signal(number, hear)


@contextlib.contextmanager
def signals_to(handler: Callable[[int], None]) -> Iterator[None]:
  """Sends the signals of `ending` to `handler` within the context; no effect in other threads."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  with kept(*ending()):
    answer(handler)
    yield


@contextlib.contextmanager
def kept(*numbers: signal.Signals) -> Iterator[None]:
  """Restores the signals' current handlers after the context, where that is possible. Main thread
  only."""
  before = {number: signal.getsignal(number) for number in filter(_can_be_restored, numbers)}
  try:
    yield
  finally:
    for number, previous in before.items():
      signal.signal(number, previous)


@contextlib.contextmanager
def replaced(number: signal.Signals, handler: Callable[[], None]) -> Iterator[None]:
  """Makes a signal call `handler` within the context, unless C code handles it. Main thread
  only."""
  with kept(number):
    if _can_be_restored(number):
      signal.signal(number, lambda *_: handler())
    yield


def set_event(event: threading.Event) -> None:
  """Sets an event from a handler, in another thread, because the interrupted one may be in
  `event.wait` and hold the lock that `set` needs."""
  _thread.start_new_thread(event.set, ())  # needs no lock, unlike `threading.Thread.start`


def terminate(handler: Callable[[], None]) -> None:
  """Makes SIGTERM call `handler` from now on. Main thread only."""
  signal.signal(signal.SIGTERM, lambda *_: handler())


def leave(code: int) -> NoReturn:
  """Ends the process from a handler with `SystemExit`, or without it if that is lost.

  An exception that is raised while a C library calls Python, as gRPC does, is printed and
  forgotten.
  """
  signal.signal(signal.SIGALRM, lambda *_: os._exit(code))
  signal.alarm(LOST_S)
  raise SystemExit(code)


def ignore(*numbers: signal.Signals) -> None:
  """Ignores these signals from now on. Main thread only."""
  for number in numbers:
    signal.signal(number, signal.SIG_IGN)


def forget(*numbers: signal.Signals) -> None:
  """Restores the default actions of these signals. Main thread only."""
  for number in numbers:
    signal.signal(number, signal.SIG_DFL)


def leave_hangup_to_parent() -> None:
  """Makes this process survive SIGHUP, because its parent tells it when to end.

  The signal is not ignored, because programs that this process starts would inherit that.
  """
  if signal.SIGHUP in ending():
    signal.signal(signal.SIGHUP, lambda *_: None)
