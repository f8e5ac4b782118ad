"""Signals that ask a program to end: Ctrl-C, SIGTERM, and SIGHUP when its terminal is gone.

Every handler of ours is set in here. Launchpad sets its own in its launcher and in its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import signal
import threading

from seed_acme.programs.system import streams


def ending() -> tuple[signal.Signals, ...]:
  """Those that this process answers: SIGHUP only if it was not started to ignore it (`nohup`)."""
  if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    return signal.SIGINT, signal.SIGTERM
  return signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def answer(handler: Callable[[int], None], *but: signal.Signals) -> None:
  """From now on `handler` is called with the number of each; main thread. but: left as they are.

  A SIGHUP after another signal is not handed on, because a shell and a terminal may each send
  one when the user has sent none, and a second signal means that the user does not want to wait.
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
  """Within it, they call `handler` instead; only the main thread can have that."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  with kept(*ending()):
    answer(handler)
    yield


@contextlib.contextmanager
def kept(*numbers: signal.Signals) -> Iterator[None]:
  """Whatever is set within, they have the handlers of before afterwards; main thread."""
  before = {number: signal.getsignal(number) for number in numbers}
  try:
    yield
  finally:
    for number, previous in before.items():
      signal.signal(number, previous)


@contextlib.contextmanager
def replaced(number: signal.Signals, handler: Callable[[], None]) -> Iterator[None]:
  """Within it, this one calls `handler`; main thread."""
  with kept(number):
    signal.signal(number, lambda *_: handler())
    yield


def terminate(handler: Callable[[], None]) -> None:
  """From now on SIGTERM calls `handler`; main thread."""
  signal.signal(signal.SIGTERM, lambda *_: handler())


def ignore(*numbers: signal.Signals) -> None:
  """From now on; main thread."""
  for number in numbers:
    signal.signal(number, signal.SIG_IGN)


def forget(*numbers: signal.Signals) -> None:
  """They do again what they do in a program that says nothing of them; main thread."""
  for number in numbers:
    signal.signal(number, signal.SIG_DFL)


def leave_hangup_to_parent() -> None:
  """For a process of a run whose parent tells it of the end, however many SIGHUP reaches.

  Not ignored, because programs that this process starts would then ignore it, too.
  """
  if signal.SIGHUP in ending():
    signal.signal(signal.SIGHUP, lambda *_: None)
