"""The output of C++ libraries to standard error, which bypasses Python's `sys.stderr`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
import sys
import tempfile

from seed_acme import types


@contextlib.contextmanager
def held_back(shown: Callable[[bytes], bytes]) -> Iterator[None]:
  """Redirects descriptor 2 to a file within the context; then prints what `shown` returns of it."""
  sys.stderr.flush()
  real = os.dup(2)
  with tempfile.TemporaryFile() as log:
    os.dup2(log.fileno(), 2)
    try:
      yield
    finally:
      sys.stderr.flush()
      os.dup2(real, 2)
      os.close(real)
      log.seek(0)
      left = shown(log.read())
      if left:
        sys.stderr.write(left.decode(errors='replace'))
        sys.stderr.flush()


@contextlib.contextmanager
def without_noise() -> Iterator[None]:
  """Keeps all of it off stderr, but prints it after an unexpected exception."""
  is_expected = False
  with held_back(lambda written: b'' if is_expected else written):
    try:
      yield
      is_expected = True
    except (types.UserError, KeyboardInterrupt, SystemExit, BrokenPipeError):
      is_expected = True
      raise
