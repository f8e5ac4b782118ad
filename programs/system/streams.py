"""The standard streams of a command: text in any encoding, terminals that go away, and results that
no other output may interrupt."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
import contextlib
import errno
import os
import stat
import sys
from typing import TextIO
import unicodedata

from seed_acme.envs import process_state
from seed_acme.files import disk

_OUTPUTS = (1, 2)


def accept_any_text() -> None:
  """Makes outputs print a character that they cannot encode as its number, as `\\xfc`.

  By default it would raise, for example with `PYTHONIOENCODING=ascii` and an umlaut in a path.
  """
  for stream in (sys.stdout, sys.stderr):
    # objects that replace a stream may not have it
    reconfigure = getattr(stream, 'reconfigure', None)
    if reconfigure is not None:
      reconfigure(errors='backslashreplace')


def printable(line: str) -> str:
  """Returns a line with each control or formatting character but tabs as its code, as `\\x1b`.

  Names in run folders of others could otherwise recolour a terminal, set its title, or reverse the
  direction of writing.
  """
  return ''.join(
    char.encode('unicode_escape').decode() if _controls(char) else char for char in line
  )


def _controls(char: str) -> bool:
  # The joiner is a part of some written words and of pictures.
  return unicodedata.category(char) in ('Cc', 'Cf', 'Cs') and char not in '\t\u200d'


def leave_lost_terminals() -> None:
  """Drops further output to a terminal that is gone, because writing to it would raise."""
  for descriptor in _OUTPUTS:
    with contextlib.suppress(OSError):  # closed
      if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
        _drop(descriptor)


@contextlib.contextmanager
def outliving_output() -> Iterator[None]:
  """Ignores output to a terminal that has gone away, or to a full disk, since that is no reason to
  fail. A pipe that nobody reads raises `BrokenPipeError` as ever."""
  try:
    yield
  except OSError as error:
    if error.errno == errno.EIO:
      leave_lost_terminals()
    elif not disk.is_full(error):
      raise


@contextlib.contextmanager
def results_only() -> Iterator[TextIO]:
  """Reserves standard output for the results of a process that runs code of environments.

  Write them to the stream that this yields. All other output to standard output, from Python or C,
  goes to standard error, also at the end of the process.
  """
  try:
    kept = os.dup(1)
  except OSError:  # standard output is closed, so there are no results
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
    # Runs before the handlers that environments have registered.
    atexit.register(process_state.print_on_standard_error)


def _same_output(descriptor: int) -> contextlib.AbstractContextManager[TextIO]:
  """Returns a stream to the current target of `sys.stdout`. descriptor: a copy of 1."""
  try:
    number = sys.stdout.fileno()
  except (AttributeError, OSError, ValueError):
    number = -1
  if number != 1:  # a caller of the command's function has replaced it
    return contextlib.nullcontext(sys.stdout)
  encoding, errors = sys.stdout.encoding, sys.stdout.errors
  return open(os.dup(descriptor), 'w', buffering=1, encoding=encoding, errors=errors)


def _drop(descriptor: int) -> None:
  nowhere = os.open(os.devnull, os.O_WRONLY)
  try:
    os.dup2(nowhere, descriptor)
  finally:
    os.close(nowhere)
