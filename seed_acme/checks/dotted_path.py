"""Imports the object that a user's `package.module:Name` names. Imports no TensorFlow itself."""

from __future__ import annotations

import importlib
from typing import Any

from seed_acme import types
from seed_acme.checks import near_names


def load_object(path: str, field: str) -> Any:
  """Returns the object that `package.module:Name` names. field: the setting that names it."""
  module_name, _, name = path.partition(':')
  if not module_name or not name or module_name.startswith('.'):
    raise types.UserError(f"{field} ('{path}') must be written package.module:Name")
  try:
    module = importlib.import_module(module_name)
  except ImportError as error:
    # The user's module may also exist and import a missing one, so the error names what is missing.
    raise types.UserError(
      f"{field} ('{path}') cannot be imported: {error}. It must be importable where you "
      'start the program: install it or set PYTHONPATH'
    ) from error
  if not hasattr(module, name):
    known = [n for n in vars(module) if not n.startswith('_')]
    raise types.UserError(
      f"{field} ('{path}'): the module has no '{name}'{near_names.hint(name, known)}"
    )
  return getattr(module, name)
