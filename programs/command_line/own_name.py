"""How a command of this installation is called from here."""

from __future__ import annotations

import os
import shutil
import sys


def command(name: str) -> str:
  """How this installation's `name` is called from here: by name only if that finds it."""
  installed = os.path.join(os.path.dirname(sys.executable), name)
  return name if shutil.which(name) == installed else shorter(installed)


def shorter(path: str) -> str:
  """Relative to the working folder where that is shorter, else as it is."""
  try:
    relative = os.path.relpath(path)
  except FileNotFoundError:  # somebody has removed the working folder
    return path
  return relative if len(relative) < len(path) else path
