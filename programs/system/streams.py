"""The standard streams of a command: any text in any encoding, terminals that go away, and results
that nobody else writes between."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
import contextlib
import errno
import os
import stat
import sys
from typing import TextIO

from seed_acme.envs import process_state

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


@contextlib.contextmanager
def results_only() -> Iterator[TextIO]:
  """Around code of environments in a process whose standard output is for its results alone.

  They go to the stream that this yields. What anything else writes to standard output, in Python or
  in C, goes to standard error, also at the end of the process.
  """
  try:
    kept = os.dup(1)
  except OSError:  # standard output is closed: there are no results to keep clean
    yield sys.stdout
    return
  sys.stdout.flush()
  try:
    with _same_output(kept) as stream, contextlib.redirect_stdout(sys.stderr):
      process_state.print_on_standard_error()
      yield stream
  finally:
    os.dup2(kept, 1)
    os.close(kept)
    # Called before what environments have registered.
    atexit.register(process_state.print_on_standard_error)


def _same_output(descriptor: int) -> contextlib.AbstractContextManager[TextIO]:
  """A stream to where `sys.stdout` writes now. descriptor: a copy of 1."""
  try:
    number = sys.stdout.fileno()
  except (AttributeError, OSError, ValueError):
    number = -1
  if number != 1:  # whoever calls a command as a function has put another stream there
    return contextlib.nullcontext(sys.stdout)
  encoding, errors = sys.stdout.encoding, sys.stdout.errors
  return open(os.dup(descriptor), 'w', buffering=1, encoding=encoding, errors=errors)


def _drop(descriptor: int) -> None:
  nowhere = os.open(os.devnull, os.O_WRONLY)
  try:
    os.dup2(nowhere, descriptor)
  finally:
    os.close(nowhere)
