"""Signals that ask a program to end: Ctrl-C, SIGTERM, and SIGHUP when its terminal is gone."""

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
  before = {number: signal.getsignal(number) for number in ending()}
  answer(handler)
  try:
    yield
  finally:
    for number, previous in before.items():
      signal.signal(number, previous)


def leave_hangup_to_parent() -> None:
  """For a process of a run whose parent tells it of the end, however many SIGHUP reaches.

  Not ignored, because programs that this process starts would then ignore it, too.
  """
  if signal.SIGHUP in ending():
    signal.signal(signal.SIGHUP, lambda *_: None)
