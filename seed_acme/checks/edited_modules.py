"""Imports a user's modules as their files are now.

A user may edit files while a process lives, as in a notebook. The processes of a run then read the
new files, so this process must not go on with what it has read before. Imports no TensorFlow.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
import contextlib
import functools
import importlib
import importlib.util
import os
import pathlib
import struct
import sys
import sysconfig
import types as python_types
from typing import Any, NamedTuple

_MAIN = ('__main__', '__mp_main__')
_OF_OTHERS = ('site-packages', 'dist-packages')  # folders that pip installs into


class _Read(NamedTuple):
  """A module of the user's, and the file as it was read."""

  module: python_types.ModuleType
  file: str
  modified: int | None


_read: dict[str, _Read] = {}  # by the name of the module


def import_current(name: str) -> python_types.ModuleType:
  """Imports a user's module as its file is now. Raises what the module raises."""
  return current(lambda: importlib.import_module(name))


def current(load: Callable[[], python_types.ModuleType]) -> python_types.ModuleType:
  """Returns the user's module that `load` imports, as its file is now, and those of the modules
  that it uses. Raises what `load` raises, which may be called twice.

  If a file has changed, its whole package is imported anew, and so are the user's modules that
  import any of that. They are not reloaded in place, because objects of the old ones live on.
  """
  forget_edited()
  with remembering():
    module = load()
  # Of these the user has imported some before, as in a cell of a notebook, so what was read then is
  # not known here.
  loaded_before = _used_by(module) - _read.keys()
  remember(*loaded_before)
  older = [name for name in loaded_before & _read.keys() if _is_older(_read[name])]
  if older:
    _forget(older)
    with remembering():
      module = load()
  return module


@contextlib.contextmanager
def remembering() -> Iterator[None]:
  """Remembers the user's modules that are imported within."""
  before = dict(sys.modules)
  try:
    yield
  finally:
    now = list(sys.modules.items())
    remember(*(name for name, module in now if before.get(name) is not module))


def remember(*names: str) -> None:
  """Notes the files of loaded modules, unless they are not the user's."""
  for name in names:
    module = sys.modules.get(name)
    file = _users_file(name, module)
    if module is not None and file and (name not in _read or _read[name].module is not module):
      _read[name] = _Read(module, file, _modified(file))


@contextlib.contextmanager
def restoring(name: str) -> Iterator[None]:
  """Puts the module of that name back, with what is known of it, if the block raises."""
  module, read = sys.modules.get(name), _read.get(name)
  try:
    yield
  except BaseException:
    sys.modules.pop(name, None)
    _read.pop(name, None)
    if module is not None:
      sys.modules[name] = module
    if read is not None and read.module is module:
      _read[name] = read
    raise


def forget_edited() -> None:
  """Has the user's modules that are known here imported anew when they are next needed, if the file
  of one has changed."""
  for name, read in list(_read.items()):
    if sys.modules.get(name) is not read.module:  # somebody else has removed or replaced it
      del _read[name]
      remember(name)
  edited = [name for name, read in _read.items() if _modified(read.file) != read.modified]
  if edited:
    _forget(edited)


def _forget(edited: Collection[str]) -> None:
  """Has the packages of edited modules imported anew, with all that imports them."""
  packages = {_package(name) for name in edited}
  users = {name: {_package(used) for used in _imported_by(_read[name].module)} for name in _read}
  while more := {_package(name) for name, used in users.items() if used & packages} - packages:
    packages |= more
  for name, module in list(sys.modules.items()):
    if _package(name) in packages and _users_file(name, module):
      sys.modules.pop(name)
      _read.pop(name, None)
      above, _, attribute = name.rpartition('.')
      parent = sys.modules.get(above)
      # `from package import name` would find it there, if the package is a folder without a file.
      if parent is not None and not _users_file(above, parent):
        if vars(parent).get(attribute) is module:
          delattr(parent, attribute)
  importlib.invalidate_caches()


def _package(name: str) -> str:
  return name.partition('.')[0]


def _used_by(module: python_types.ModuleType) -> set[str]:
  """Returns the loaded modules of the user's that a module imports, and so on, itself included."""
  if not issubclass(type(module), python_types.ModuleType):
    return set()  # it has put another object in its place
  found: set[str] = set()
  to_visit = [module.__name__, *_imported_by(module)]  # a file may have the name of another module
  while to_visit:
    name = to_visit.pop()
    loaded = sys.modules.get(name)
    if name in found or loaded is None:
      continue
    if not _users_file(name, loaded) and not _is_folder(loaded):
      continue
    found.add(name)
    to_visit += _imported_by(loaded)
  return found


def _imported_by(module: python_types.ModuleType) -> tuple[str, ...]:
  """Returns the names that the file of a user's module imports, also within its functions."""
  file = _users_file(module.__name__, module)
  package = _attributes(module).get('__package__') or ''
  return _imports(file, package, _modified(file)) if file else ()


@functools.cache
def _imports(file: str, package: str, modified: int | None) -> tuple[str, ...]:
  del modified  # an edited file is read again
  try:
    tree = ast.parse(pathlib.Path(file).read_bytes())
  except (OSError, SyntaxError, ValueError):  # such as one that is being edited
    return ()
  return tuple(_names(tree, package))


def _names(tree: ast.Module, package: str) -> Iterator[str]:
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      for alias in node.names:
        parts = alias.name.split('.')
        yield from ('.'.join(parts[:n]) for n in range(1, len(parts) + 1))
    elif isinstance(node, ast.ImportFrom):
      origin = node.module or ''
      if node.level:
        above = package.split('.')[: len(package.split('.')) - node.level + 1]
        origin = '.'.join([*above, *([origin] if origin else [])])
      yield origin
      yield from (f'{origin}.{alias.name}' for alias in node.names)


def _is_older(read: _Read) -> bool:
  """Whether a module was imported before its file got its present contents, according to the
  bytecode that the import has left. Where none is written, this is not known, and False."""
  if sys.dont_write_bytecode:
    return False
  try:
    with open(importlib.util.cache_from_source(read.file), 'rb') as file:
      header = file.read(16)
    now = os.stat(read.file)
  except (OSError, NotImplementedError):
    return False
  seconds, size = struct.unpack('<2I', header[8:]) if len(header) == 16 else (0, 0)
  return (seconds, size) != (int(now.st_mtime) & 0xFFFFFFFF, now.st_size & 0xFFFFFFFF)


def _attributes(module: python_types.ModuleType) -> dict[str, Any]:
  """Returns a module's attributes, not by `getattr`, which makes some of TensorFlow load others."""
  return object.__getattribute__(module, '__dict__')


def _users_file(name: str, module: python_types.ModuleType | None) -> str:
  """Returns the source file of a module; '' if there is none, or if it is of Python, of an
  installed package or of this one."""
  # By the type, because objects of C extensions claim another class.
  if not issubclass(type(module), python_types.ModuleType) or name in _MAIN:
    return ''
  assert module is not None
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
