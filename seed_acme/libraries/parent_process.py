"""The process that started this one, through C's library. Imports only the standard library."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def die_with_it() -> None:
  """Makes Linux kill this process when its parent ends in any way; no effect elsewhere.

  More precisely, when the thread ends that started this process. If that has happened before this
  call, nothing happens, so the caller must find that out in another way.
  """
  if sys.platform.startswith('linux'):
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
