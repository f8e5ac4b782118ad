"""The output of C++ libraries to standard error, which bypasses Python's `sys.stderr`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
import sys
import tempfile

from seed_acme import types

# Lines that TensorFlow 2.15 prints on import: the first three always, the others without a GPU or
# TensorRT, which `seed-acme doctor` checks.
_OF_EVERY_IMPORT = (
  'Unable to register cuDNN factory',
  'Unable to register cuFFT factory',
  'Unable to register cuBLAS factory',
  'Could not find cuda drivers on your machine',
  'TF-TRT Warning: Could not find TensorRT',
)


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


def import_tensorflow() -> None:
  """Imports TensorFlow without the lines that it prints on every import."""
  with held_back(_without_words_of_every_import):
    import tensorflow  # noqa: F401


def _without_words_of_every_import(written: bytes) -> bytes:
  known = [words.encode() for words in _OF_EVERY_IMPORT]
  lines = written.splitlines(keepends=True)
  return b''.join(line for line in lines if not any(words in line for words in known))
