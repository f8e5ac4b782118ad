"""The standard streams of a command: any text in any encoding, and a terminal that may go away."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import errno
import os
import stat
import sys

_OUTPUTS = (1, 2)


def accept_any_text() -> None:
  """Has a character that an output cannot show be printed as its number, as `\\xfc`.

  By default it would raise, as where `PYTHONIOENCODING=ascii` is set and a folder has an umlaut.
  """
  for stream in (sys.stdout, sys.stderr):
    reconfigure = getattr(stream, 'reconfigure', None)  # none of what stands in for a stream
    if reconfigure is not None:
      reconfigure(errors='backslashreplace')


def leave_lost_terminals() -> None:
  """What is written to a terminal that is gone is dropped from now on, where it would raise."""
  for descriptor in _OUTPUTS:
    with contextlib.suppress(OSError):  # closed
      if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
        _drop(descriptor)


@contextlib.contextmanager
def outliving_terminal() -> Iterator[None]:
  """Around output that is worth no failure where the terminal is gone and nobody has said so."""
  try:
    yield
  except OSError as error:
    if error.errno != errno.EIO:
      raise
    leave_lost_terminals()


def _drop(descriptor: int) -> None:
  nowhere = os.open(os.devnull, os.O_WRONLY)
  try:
    os.dup2(nowhere, descriptor)
  finally:
    os.close(nowhere)
