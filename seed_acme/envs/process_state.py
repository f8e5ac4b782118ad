"""Restores process-wide state that environments change, although they share the process."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import signal
import sys
import threading
import warnings

import numpy as np

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STREAMS = ('stdin', 'stdout', 'stderr')


def print_on_standard_error() -> None:
  """Redirects this process's standard output, from Python and C, to standard error. For processes
  that step environments, which often print, while standard output may be JSON.
  """
  sys.stdout.flush()
  with contextlib.suppress(OSError):  # where standard error is closed
    os.dup2(2, 1)


def ignore_ctrl_c() -> None:
  """Ignores SIGINT, which a terminal sends to this process and to the one that started it, for a
  process that the other one ends. Main thread only.
  """
  signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Restores process-wide state after code of an environment: when it is made, and at its first
  reset, when simulators start.

  Restored are the handlers of SIGINT, SIGTERM and SIGHUP, because a process that no longer handles
  them cannot save; the standard streams; the umask; numpy's error handling; and warning filters.
  The working folder and the global random state may change, because the run depends on neither.
  Later steps are not covered.
  """
  numpy_errors = np.geterr()
  streams = {name: getattr(sys, name) for name in _STREAMS}
  umask = _umask()
  with _kept_signals(), _kept_descriptors(), warnings.catch_warnings():
    try:
      yield
    finally:
      os.umask(umask)
      np.seterr(**numpy_errors)
      for name, stream in streams.items():
        setattr(sys, name, stream)


def _umask() -> int:
  """Returns the umask, which can be read only by setting it."""
  umask = os.umask(0o077)
  os.umask(umask)
  return umask


@contextlib.contextmanager
def _kept_signals() -> Iterator[None]:
  """Restores signal handlers. Only the main thread can set them, so other threads have nothing to
  restore."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  handlers = {number: signal.getsignal(number) for number in _SIGNALS}
  try:
    yield
  finally:
    for number, handler in handlers.items():
      if handler is not None:  # None: installed by C code, which Python cannot put back
        signal.signal(number, handler)


@contextlib.contextmanager
def _kept_descriptors() -> Iterator[None]:
  """Restores the descriptors of standard streams, which simulators in C redirect to be silent."""
  copies: dict[int, int] = {}
  for descriptor in range(len(_STREAMS)):
    with contextlib.suppress(OSError):  # the descriptor is closed, as in a daemon
      copies[descriptor] = os.dup(descriptor)
  try:
    yield
  finally:
    for descriptor, copy in copies.items():
      if not _is_same_file(descriptor, copy):
        os.dup2(copy, descriptor)
      os.close(copy)


def _is_same_file(descriptor: int, other: int) -> bool:
  try:
    return os.path.samestat(os.fstat(descriptor), os.fstat(other))
  except OSError:
    return False
