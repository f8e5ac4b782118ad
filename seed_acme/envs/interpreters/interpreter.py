"""Checks and starts another Python interpreter that runs environments.

It imports seed_acme from the files that this process uses, so the two never differ in version,
and seed_acme need not be installed there. The other modules that it needs are in `REQUIRED`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from typing import Any, NamedTuple

from seed_acme import types
from seed_acme.checks import extras
from seed_acme.files import local

OLDEST, NEWEST = (3, 10), (3, 13)  # versions of Python that are tested
SERVED = ' to '.join('.'.join(map(str, version)) for version in (OLDEST, NEWEST))
REQUIRED = ('numpy', 'grpc', 'dm_env', 'tree')  # modules
_PROBE_TIMEOUT_S = 60.0
# Marks the line of the answer, because a start file of the interpreter, or an activation script
# around it, may print before and after.
ANSWER = 'seed_acme: '
# It must also run under old versions of Python, which it serves to detect.
_PROBE = f"""
import importlib.util, json, sys
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
record = dict(version=list(sys.version_info[:3]), missing=missing)
print('\\n{ANSWER}' + json.dumps(record))
"""
# Without the working folder, where `pip install -e` may have left the metadata of a checkout.
_LIST = f"""
import importlib.metadata, json, sys
sys.path[:] = filter(None, sys.path)
found = [[d.metadata['Name'], d.version] for d in importlib.metadata.distributions()]
print('\\n{ANSWER}' + json.dumps(found))
"""
HOW_TO_MAKE = f'make one with: seed-acme actor-env {extras.ACTOR_FOLDER}'


class NoAnswer(types.UserError):
  """Raised if the interpreter was started and did not answer in time; the machine may be busy."""


class Found(NamedTuple):
  """Facts about an interpreter. version: such as `3.12.1`. missing: modules that it lacks."""

  version: tuple[int, ...]
  missing: tuple[str, ...]


def is_this_one(python: str) -> bool:
  """Whether `actor.python` is this interpreter: `''`, or the path of this program."""
  return not python or os.path.abspath(program(python)) == os.path.abspath(sys.executable)


def command(python: str, module: str, *arguments: str) -> list[str]:
  """Returns the command that runs a module of seed_acme in an interpreter; `''` = this one."""
  return [program(python) if python else sys.executable, '-m', module, *arguments]


def variables(python: str) -> dict[str, str]:
  """Returns environment variables that `command` needs in addition to those of this process."""
  if is_this_one(python):
    return {}
  parts = [str(_folder_of_package()), os.environ.get('PYTHONPATH', '')]
  # From Python 3.12 on only setuptools has distutils, which our own processes do not need.
  return {'PYTHONPATH': os.pathsep.join(filter(None, parts)), 'SETUPTOOLS_USE_DISTUTILS': 'local'}


def require(python: str) -> None:
  """Raises `types.UserError` if this interpreter cannot run environments."""
  if is_this_one(python):
    return
  require_version(python)
  found = probe(python)
  if found.missing:
    raise types.UserError(
      f'actor.python ({python}, Python {_shown(found.version)}) lacks {", ".join(found.missing)}: '
      f'{HOW_TO_MAKE}'
    )


def serves_actors(version: tuple[int, ...]) -> bool:
  """Whether environments run under this version of Python."""
  return OLDEST <= version[:2] <= NEWEST


def require_version(python: str) -> None:
  """Raises `types.UserError` if it is not a Python, or one that is too old or too new."""
  version = probe(python).version
  if not serves_actors(version):
    raise types.UserError(
      f'actor.python ({python}) is Python {_shown(version)}: environments run under '
      f'{SERVED}; {HOW_TO_MAKE}'
    )


def _shown(version: tuple[int, ...]) -> str:
  return '.'.join(map(str, version))


@functools.cache
def probe(python: str, modules: tuple[str, ...] = REQUIRED) -> Found:
  """Asks an interpreter for its version and missing modules; `types.UserError` if it does not
  start or answer."""
  record = _asked(python, _PROBE, *modules)
  return Found(tuple(record['version']), tuple(record['missing']))


def installed(python: str) -> list[str]:
  """Returns `name==version` of an interpreter's packages, sorted, without pip and its like."""
  names = {f'{name}=={version}' for name, version in _asked(python, _LIST)}
  return sorted(name for name in names if not name.startswith(('pip==', 'setuptools==', 'wheel==')))


def _asked(python: str, code: str, *arguments: str) -> Any:
  """Returns what the code prints in that interpreter, parsed as JSON."""
  wrong = f'actor.python ({python})'
  fix = f'give the path of a Python, or {HOW_TO_MAKE}'
  try:
    done = subprocess.run(
      [program(python), '-c', code, *arguments],
      capture_output=True,
      text=True,
      errors='replace',
      timeout=_PROBE_TIMEOUT_S,
      stdin=subprocess.DEVNULL,
      check=False,
    )
    return _answer(done.stdout)
  except OSError as error:
    what = f'cannot be started: {error.strerror}'
    if not os.path.lexists(program(python)):
      what = f'was not found{_where(python)}'
    raise types.MissingPackage(f'{wrong} {what}: {fix}') from error
  except subprocess.TimeoutExpired as error:
    raise NoAnswer(
      f'{wrong} does not answer within {_PROBE_TIMEOUT_S:g} s: try again when the machine is less '
      f'busy, or {fix}'
    ) from error
  except ValueError as error:  # it is another program, or a Python that does not work
    said = done.stderr.strip() or done.stdout.strip()
    last = (said.splitlines() or ['no message'])[-1]
    raise types.UserError(
      f'{wrong} is no Python that works (exit code {done.returncode}: {last[:200]}): {fix}'
    ) from error


def _answer(output: str) -> Any:
  """Parses the answer in an output; ValueError if there is none."""
  _, _, answer = output.rpartition(f'\n{ANSWER}')
  return json.loads(answer.partition('\n')[0])


def program(python: str) -> str:
  """Returns a path that can be started, absolute if it exists.

  A name without a slash is looked up on the PATH, any other relative path in `_folders`.
  """
  if os.sep not in python:
    return shutil.which(python) or python
  for folder in _folders():
    path = os.path.join(folder, os.path.expanduser(python))
    if os.path.exists(path):
      return path
  return python


def is_foreign(python: str) -> bool:
  """Whether `actor.python` names a program that somebody else may have put there.

  This interpreter is not, nor is that of a virtual environment `.venv...` in the checkout or beside
  the one of this process, where a user makes them. What does not exist cannot be started.
  """
  if is_this_one(python) or not os.path.exists(path := program(python)):
    return False
  for folder in _folders_of_user():
    parts = os.path.relpath(os.path.abspath(path), folder).split(os.sep)
    if len(parts) == 3 and parts[0].startswith('.venv') and parts[1] == 'bin':
      return False
  return True


def _folders() -> list[str]:
  """Returns the folders that relative paths are looked up in: the working folder, the checkout, and
  the folder of the virtual environment, because `.venv-actor` is next to `.venv` wherever a run is
  started."""
  return [os.getcwd(), *_folders_of_user()]


def _folders_of_user() -> list[str]:
  """Returns the checkout and the folder of this process's virtual environment, if they exist."""
  found = []
  if (checkout := extras.checkout()) is not None:
    found.append(str(checkout))
  if sys.prefix != sys.base_prefix:
    found.append(os.path.dirname(sys.prefix))
  return list(dict.fromkeys(found))


def _where(python: str) -> str:
  """Says where a path was looked for, for a message."""
  if os.sep not in python:
    return ' on the PATH'
  return '' if os.path.isabs(os.path.expanduser(python)) else f' from {" or ".join(_folders())}'


@functools.cache
def _folder_of_package() -> pathlib.Path:
  """Returns a folder that contains a link to this package and nothing else.

  The package's own parent may contain a whole installation, which would hide the other
  interpreter's.
  """
  package = pathlib.Path(types.__file__).resolve().parent
  name = hashlib.sha256(str(package).encode()).hexdigest()[:16]
  cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
  folder = pathlib.Path(cache) / 'seed_acme' / 'package' / name
  try:
    folder.mkdir(parents=True, exist_ok=True)
    _link(folder / 'seed_acme', package)
  except OSError:  # no home, or one that cannot be written to
    folder = local.lasting_folder()
    _link(folder / 'seed_acme', package)
  return folder


def _link(link: pathlib.Path, target: pathlib.Path) -> None:
  """Makes a link atomically, because other processes may make it at the same time."""
  if link.is_symlink() and os.readlink(link) == str(target):
    return
  fresh = link.with_name(f'.{os.getpid()}')
  fresh.symlink_to(target)
  fresh.replace(link)
