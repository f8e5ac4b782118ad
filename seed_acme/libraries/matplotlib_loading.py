"""Imports matplotlib, even if the machine's settings would make that fail."""

from __future__ import annotations

import atexit
import importlib
import os
import pathlib
import shutil
import sys
import tempfile

from seed_acme import types

# Pictures are only written to files, so the backend for windows that a user may have set is unused.
BACKEND = {'MPLBACKEND': 'agg'}
_FOLDER = 'MPLCONFIGDIR'


def use_own_backend() -> None:
  """Selects the backend for files, in processes of seed_acme only: a user's notebook has its own
  backend."""
  if 'matplotlib' not in sys.modules:
    os.environ.update(BACKEND)


def load() -> None:
  """Imports matplotlib; in every process, call this before any other import of matplotlib.

  Without a home directory, as in a container with a user id that has no name, a plain import would
  fail. Raises `types.UserError` if matplotlib is not installed.
  """
  if 'matplotlib' not in sys.modules and _FOLDER not in os.environ and not _has_home():
    folder = tempfile.mkdtemp(prefix='seed_acme_matplotlib_')
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[_FOLDER] = folder
  try:
    importlib.import_module('matplotlib')
  except ModuleNotFoundError as error:
    if error.name != 'matplotlib':
      raise
    raise types.UserError(
      f'a picture needs matplotlib, which {sys.executable} lacks: pip install matplotlib'
    ) from error


def _has_home() -> bool:
  try:
    pathlib.Path.home()
  except RuntimeError:
    return False
  return True
