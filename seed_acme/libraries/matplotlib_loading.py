"""Loads matplotlib where the machine says something that it cannot use."""

from __future__ import annotations

import atexit
import importlib
import os
import pathlib
import shutil
import sys
import tempfile

from seed_acme import types

# Pictures are written to files, so whatever a shell's profile names for windows is of no use.
BACKEND = {'MPLBACKEND': 'agg'}
_FOLDER = 'MPLCONFIGDIR'


def use_own_backend() -> None:
  """For a process of ours; never called in a user's Python, whose notebook has its own."""
  if 'matplotlib' not in sys.modules:
    os.environ.update(BACKEND)


def load() -> None:
  """Before anything of matplotlib is imported, in any process.

  Where nobody's home is known, as in a container under a user id without a name, matplotlib could
  not be imported. Raises `types.UserError` where it is not installed.
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
