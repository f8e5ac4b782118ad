"""Parents and orphans of processes, through C's library. Imports only the standard library."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_it() -> None:
  """Makes Linux kill this process when its parent ends in any way; no effect elsewhere.

  More precisely, when the thread ends that started this process. If that has happened before this
  call, nothing happens, so the caller must find that out in another way.
  """
  _control(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
  """Makes Linux give this process the descendants whose parents end, instead of the first process
  of the system; no effect elsewhere."""
  _control(_PR_SET_CHILD_SUBREAPER, 1)


def _control(option: int, value: int) -> None:
  if sys.platform.startswith('linux'):
    ctypes.CDLL(None, use_errno=True).prctl(option, value)
