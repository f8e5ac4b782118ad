"""The names by which the user can call this installation's commands."""

from __future__ import annotations

import os
import shutil
import sys


def command(name: str) -> str:
  """Returns how to call this installation's `name`: by name only if the PATH finds that one."""
  installed = os.path.join(os.path.dirname(sys.executable), name)
  return name if shutil.which(name) == installed else shorter(installed)


def shorter(path: str) -> str:
  """Returns the path relative to the working folder if that is shorter, else unchanged."""
  try:
    relative = os.path.relpath(path)
  except FileNotFoundError:  # the working folder has been deleted
    return path
  return relative if len(relative) < len(path) else path
