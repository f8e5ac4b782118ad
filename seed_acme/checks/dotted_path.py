"""Imports the object that a user's `package.module:Name` names. Imports no TensorFlow itself."""

from __future__ import annotations

import re
import traceback
import types as python_types
from typing import Any

from seed_acme import types
from seed_acme.checks import edited_modules
from seed_acme.checks import near_names

NAMED = re.compile(r'[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*')  # package.module:Name
# How to mend it if a module is not found.
IMPORTABLE = (
  'It must be importable where you start the program: install it, set PYTHONPATH, or start in its '
  'folder'
)


def import_module(name: str, where: str) -> python_types.ModuleType:
  """Imports a user's module. Raises ImportError, and `types.UserError` with the place of any other
  error in it. where: what names the module, for the message."""
  if name == '__main__':
    raise ImportError('each process of a run has another __main__: put the code into a module')
  try:
    return edited_modules.import_current(name)
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
  if not NAMED.fullmatch(path):  # what `storage.trust` takes for code must be all that is imported
    raise types.UserError(f"{field} ('{path}') must be written package.module:Name")
  try:
    module = import_module(module_name, f"{field} ('{path}')")
  except ImportError as error:
    # The user's module may also exist and import a missing one, so the error names what is missing.
    raise types.UserError(
      f"{field} ('{path}') cannot be imported: {error}. {IMPORTABLE}"
    ) from error
  if not hasattr(module, name):
    known = [n for n in vars(module) if not n.startswith('_')]
    raise types.UserError(
      f"{field} ('{path}'): the module has no '{name}'{near_names.hint(name, known)}"
    )
  return getattr(module, name)
