"""Imports the object that a user's `package.module:Name` names. Imports no TensorFlow itself.

A user may edit files while a process lives, as in a notebook. The processes of a run then read the
new files, so this process must not go on with what it has read before.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import sys
import sysconfig
import traceback
import types as python_types
from typing import Any, NamedTuple

from seed_acme import types
from seed_acme.checks import near_names

NAMED = re.compile(r'[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*')  # package.module:Name
# How to mend it if a module is not found.
IMPORTABLE = (
  'It must be importable where you start the program: install it, set PYTHONPATH, or start in its '
  'folder'
)
_OF_OTHERS = ('site-packages', 'dist-packages')  # folders that pip installs into


class _Read(NamedTuple):
  """A module of the user's, and the file as it was read."""

  module: python_types.ModuleType
  file: str
  modified: int | None


_read: dict[str, _Read] = {}  # by the name of the module


def import_module(name: str, where: str) -> python_types.ModuleType:
  """Imports a user's module. Raises ImportError, and `types.UserError` with the place of any other
  error in it. where: what names the module, for the message."""
  if name == '__main__':
    raise ImportError('each process of a run has another __main__: put the code into a module')
  try:
    return import_current(name)
  except ImportError:
    raise
  except Exception as error:  # whatever the module raises
    last = traceback.extract_tb(error.__traceback__)[-1]
    # The text of a syntax error has its place.
    place = '' if isinstance(error, SyntaxError) else f' ({last.filename}:{last.lineno})'
    text = ' '.join(f'{type(error).__name__}: {error}'.split())
    raise types.UserError(f'{where}: {name} cannot be imported: {text}{place}') from error


def import_current(name: str) -> python_types.ModuleType:
  """Imports a user's module as its file is now. Raises what the module raises.

  If a file has changed, all modules of the user's that came in here are imported anew, since each
  may use the others. They are not reloaded in place, because objects of the old ones live on.
  """
  _forget_if_changed()
  before = set(sys.modules)
  try:
    return importlib.import_module(name)
  finally:
    remember(name, *set(sys.modules) - before)


def remember(*names: str) -> None:
  """Notes the files of modules that have just been imported, unless they are not the user's."""
  for name in names:
    module = sys.modules.get(name)
    file = _users_file(name, module)
    if module is not None and file and (name not in _read or _read[name].module is not module):
      _read[name] = _Read(module, file, _modified(file))


def _forget_if_changed() -> None:
  for name, read in list(_read.items()):
    if sys.modules.get(name) is not read.module:  # somebody else has removed or replaced it
      del _read[name]
      remember(name)
  if any(_modified(read.file) != read.modified for read in _read.values()):
    for name in list(_read):
      sys.modules.pop(name, None)
    _read.clear()
    importlib.invalidate_caches()


def _users_file(name: str, module: python_types.ModuleType | None) -> str:
  """Returns the source file of a module; '' if there is none, or if it is of Python, of an
  installed package or of this one."""
  # By the type, because objects of C extensions claim another class.
  if not issubclass(type(module), python_types.ModuleType) or name == '__main__':
    return ''
  # Not by `getattr`, which makes some modules of TensorFlow load others.
  file = object.__getattribute__(module, '__dict__').get('__file__')
  if not file or name.partition('.')[0] == __name__.partition('.')[0]:
    return ''
  path = pathlib.Path(file).absolute()
  is_of_python = pathlib.Path(sysconfig.get_path('stdlib')) in path.parents
  if is_of_python or path.suffix != '.py' or set(_OF_OTHERS) & set(path.parts):
    return ''
  return str(path)


def _modified(file: str) -> int | None:
  """Returns when a file was last changed, in ns; None if it is gone."""
  try:
    return os.stat(file).st_mtime_ns
  except OSError:
    return None


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
      f"{field} ('{path}') cannot be imported: {error}. {IMPORTABLE}"
    ) from error
  if not hasattr(module, name):
    known = [n for n in vars(module) if not n.startswith('_')]
    raise types.UserError(
      f"{field} ('{path}'): the module has no '{name}'{near_names.hint(name, known)}"
    )
  return getattr(module, name)
