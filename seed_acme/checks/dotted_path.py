"""Imports the object that a user's `package.module:Name` names. Imports no TensorFlow itself."""

from __future__ import annotations

import importlib
import traceback
import types as python_types
from typing import Any

from seed_acme import types
from seed_acme.checks import near_names


def import_module(name: str, where: str) -> python_types.ModuleType:
  """Imports a user's module. Raises ImportError, and `types.UserError` with the place of any other
  error in it. where: what names the module, for the message."""
  try:
    return importlib.import_module(name)
  except ImportError:
    raise
  except Exception as error:  # whatever the module raises
    last = traceback.extract_tb(error.__traceback__)[-1]
    # The text of a syntax error has its place.
    place = '' if isinstance(error, SyntaxError) else f' ({last.filename}:{last.lineno})'
    text = ' '.join(f'{type(error).__name__}: {error}'.split())
    raise types.UserError(f'{where}: {name} cannot be imported: {text}{place}') from error


def load_object(path: str, field: str) -> Any:
  """Returns the object that `package.module:Name` names. field: the setting that names it."""
  module_name, _, name = path.partition(':')
  if not module_name or not name or module_name.startswith('.'):
    raise types.UserError(f"{field} ('{path}') must be written package.module:Name")
  try:
    module = import_module(module_name, f"{field} ('{path}')")
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
