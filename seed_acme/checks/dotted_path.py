"""Imports the object that a user's `package.module:Name` names. Imports no TensorFlow itself.

A user may edit files while a process lives, as in a notebook. The processes of a run then read the
new files, so this process must not go on with what it has read before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import importlib
import importlib.util
import os
import pathlib
import re
import struct
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
  """Imports a user's module as its file is now. Raises what the module raises."""
  return current(lambda: importlib.import_module(name))


def current(load: Callable[[], python_types.ModuleType]) -> python_types.ModuleType:
  """Returns the user's module that `load` imports, as its file is now, and those of the modules
  that it uses. Raises what `load` raises, which may be called twice.

  If a file has changed, all modules of the user's that are known here are imported anew, since each
  may use the others. They are not reloaded in place, because objects of the old ones live on.
  """
  if any(_modified(read.file) != read.modified for read in _still_loaded()):
    _forget()
  with remembering():
    module = load()
  # Of these the user has imported some before, as in a cell of a notebook, so what was read then is
  # not known here.
  loaded_before = _used_by(module) - _read.keys()
  remember(*loaded_before)
  if any(_may_be_older(_read[name]) for name in loaded_before & _read.keys()):
    _forget()
    with remembering():
      module = load()
  return module


@contextlib.contextmanager
def remembering() -> Iterator[None]:
  """Remembers the user's modules that are imported within."""
  before = set(sys.modules)
  try:
    yield
  finally:
    remember(*set(sys.modules) - before)


def remember(*names: str) -> None:
  """Notes the files of loaded modules, unless they are not the user's."""
  for name in names:
    module = sys.modules.get(name)
    file = _users_file(name, module)
    if module is not None and file and (name not in _read or _read[name].module is not module):
      _read[name] = _Read(module, file, _modified(file))


def _still_loaded() -> list[_Read]:
  """Returns what was read, without modules that somebody else has removed or replaced."""
  for name, read in list(_read.items()):
    if sys.modules.get(name) is not read.module:
      del _read[name]
      remember(name)
  return list(_read.values())


def _forget() -> None:
  """Has all modules of the user's that are known here imported anew when they are next needed."""
  for name, read in _read.items():
    sys.modules.pop(name, None)
    package, _, attribute = name.rpartition('.')
    parent = sys.modules.get(package)
    # `from package import name` would find it there, if the package is a folder without a file.
    if parent is not None and vars(parent).get(attribute) is read.module:
      delattr(parent, attribute)
  _read.clear()
  importlib.invalidate_caches()


def _used_by(module: python_types.ModuleType) -> set[str]:
  """Returns the loaded modules of the user's that a module uses, itself included, as far as the
  objects in it tell; with a package, all that is loaded of it."""
  found: set[str] = set()
  to_visit = [module.__name__, *_homes(module)]  # a file may have the name of another module
  while to_visit:
    name = to_visit.pop()
    loaded = sys.modules.get(name)
    if name in found or loaded is None:
      continue
    if not _users_file(name, loaded) and not _is_folder(loaded):
      continue
    found.add(name)
    to_visit += [below for below in list(sys.modules) if below.startswith(f'{name}.')]
    to_visit += _homes(loaded)
  return found


def _homes(module: python_types.ModuleType) -> list[str]:
  """Returns the names of the modules that the objects in a module are, or are from."""
  return [_home(value) for value in list(_attributes(module).values())]


def _home(value: Any) -> str:
  kind = type(value)
  if issubclass(kind, python_types.ModuleType):
    name = _attributes(value).get('__name__')
  elif issubclass(kind, (type, python_types.FunctionType)):
    name = value.__module__
  else:
    name = kind.__module__
  return name if isinstance(name, str) else ''


def _may_be_older(read: _Read) -> bool:
  """Whether a module was perhaps imported before its file got its present contents.

  It was not if the file is older than this process, or if the bytecode that the import has left is
  of the present contents.
  """
  import psutil  # actors under another Python lack it, and import each module for the first time

  if read.modified is None or read.modified < psutil.Process().create_time() * 1e9:
    return read.modified is None
  try:
    with open(importlib.util.cache_from_source(read.file), 'rb') as file:
      header = file.read(16)
  except (OSError, NotImplementedError):
    return True
  seconds, size = struct.unpack('<2I', header[8:]) if len(header) == 16 else (0, 0)
  now = os.stat(read.file)
  return (seconds, size) != (int(now.st_mtime) & 0xFFFFFFFF, now.st_size & 0xFFFFFFFF)


def _attributes(module: python_types.ModuleType) -> dict[str, Any]:
  """Returns a module's attributes, not by `getattr`, which makes some of TensorFlow load others."""
  return object.__getattribute__(module, '__dict__')


def _users_file(name: str, module: python_types.ModuleType | None) -> str:
  """Returns the source file of a module; '' if there is none, or if it is of Python, of an
  installed package or of this one."""
  # By the type, because objects of C extensions claim another class.
  if module is None or not issubclass(type(module), python_types.ModuleType) or name == '__main__':
    return ''
  file = _attributes(module).get('__file__')
  if not file or name.partition('.')[0] == __name__.partition('.')[0]:
    return ''
  path = pathlib.Path(file).absolute()
  is_of_python = pathlib.Path(sysconfig.get_path('stdlib')) in path.parents
  if is_of_python or path.suffix != '.py' or set(_OF_OTHERS) & set(path.parts):
    return ''
  return str(path)


def _is_folder(module: python_types.ModuleType) -> bool:
  """Whether a module is a package without a file of its own."""
  if not issubclass(type(module), python_types.ModuleType):
    return False
  return not _attributes(module).get('__file__') and '__path__' in _attributes(module)


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
