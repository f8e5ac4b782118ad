"""Another Python than this one: whether it can run environments, and how to start it.

It imports seed_acme from the files that this process uses, so the two never differ in version,
and nothing of seed_acme has to be installed there. What else it needs is in `REQUIRED`.
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
import tempfile
from typing import Any, NamedTuple

from seed_acme import types

OLDEST, NEWEST = (3, 10), (3, 13)  # that it is tried with
REQUIRED = ('numpy', 'grpc', 'dm_env', 'tree')  # modules
_PROBE_TIMEOUT_S = 60.0
# Old versions run it, too: it is how they are found out.
_PROBE = """
import importlib.util, json, sys
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
print(json.dumps({'version': list(sys.version_info[:3]), 'missing': missing}))
"""
_LIST = """
import importlib.metadata, json
print(json.dumps([[d.metadata['Name'], d.version] for d in importlib.metadata.distributions()]))
"""
HOW_TO_MAKE = 'make one with: make actor-python, or seed-acme actor-env FOLDER'


class Found(NamedTuple):
  """What an interpreter says of itself. version: `3.12.1`. missing: modules."""

  version: tuple[int, ...]
  missing: tuple[str, ...]


def is_this_one(python: str) -> bool:
  """Whether `actor.python` asks for nothing else: `''`, or the path of this very program."""
  return not python or os.path.abspath(_program(python)) == os.path.abspath(sys.executable)


def command(python: str, module: str, *arguments: str) -> list[str]:
  """Runs a module of seed_acme there; `''` = here."""
  return [_program(python) if python else sys.executable, '-m', module, *arguments]


def variables(python: str) -> dict[str, str]:
  """Environment variables that `command` needs beside those of this process."""
  if is_this_one(python):
    return {}
  parts = [str(_folder_of_package()), os.environ.get('PYTHONPATH', '')]
  # Python 3.12 has no distutils but that of setuptools, which our own processes may do without.
  return {'PYTHONPATH': os.pathsep.join(filter(None, parts)), 'SETUPTOOLS_USE_DISTUTILS': 'local'}


def require(python: str) -> None:
  """Raises `types.UserError` where this interpreter cannot run environments."""
  if is_this_one(python):
    return
  require_version(python)
  found = probe(python)
  if found.missing:
    raise types.UserError(
      f'actor.python ({python}, Python {_shown(found.version)}) lacks {", ".join(found.missing)}: '
      f'{HOW_TO_MAKE}'
    )


def require_version(python: str) -> None:
  """Raises `types.UserError` where it is no Python, or too old or too new a one."""
  version = probe(python).version
  if not OLDEST <= version[:2] <= NEWEST:
    raise types.UserError(
      f'actor.python ({python}) is Python {_shown(version)}: environments run under '
      f'{_shown(OLDEST)} to {_shown(NEWEST)}; {HOW_TO_MAKE}'
    )


def _shown(version: tuple[int, ...]) -> str:
  return '.'.join(map(str, version))


@functools.cache
def probe(python: str, modules: tuple[str, ...] = REQUIRED) -> Found:
  """Asks it; `types.UserError` where it does not start, or does not answer."""
  record = _asked(python, _PROBE, *modules)
  return Found(tuple(record['version']), tuple(record['missing']))


def installed(python: str) -> list[str]:
  """`name==version` of the packages there, sorted; without those that install others."""
  names = {f'{name}=={version}' for name, version in _asked(python, _LIST)}
  return sorted(name for name in names if not name.startswith(('pip==', 'setuptools==', 'wheel==')))


def _asked(python: str, code: str, *arguments: str) -> Any:
  """What the code prints in that interpreter, as JSON."""
  wrong = f'actor.python ({python})'
  fix = f'give the path of a Python, or {HOW_TO_MAKE}'
  try:
    done = subprocess.run(
      [_program(python), '-c', code, *arguments],
      capture_output=True,
      text=True,
      errors='replace',
      timeout=_PROBE_TIMEOUT_S,
      stdin=subprocess.DEVNULL,
      check=False,
    )
    return json.loads(done.stdout)
  except OSError as error:
    raise types.MissingPackage(f'{wrong} cannot be started: {error.strerror}: {fix}') from error
  except subprocess.TimeoutExpired as error:
    raise types.UserError(
      f'{wrong} does not answer within {_PROBE_TIMEOUT_S:g} s: {fix}'
    ) from error
  except ValueError as error:  # it is another program, or a Python that does not work
    last = (done.stderr.strip().splitlines() or ['no message'])[-1]
    raise types.UserError(
      f'{wrong} is no Python that works (exit code {done.returncode}: {last[:200]}): {fix}'
    ) from error


def _program(python: str) -> str:
  """A name without a slash is looked up on the PATH."""
  return shutil.which(python) or python


@functools.cache
def _folder_of_package() -> pathlib.Path:
  """A folder that holds a link to this package and nothing else.

  The package's own folder may have a whole installation beside it, which would hide that of the
  other interpreter.
  """
  package = pathlib.Path(types.__file__).resolve().parent
  name = hashlib.sha256(str(package).encode()).hexdigest()[:16]
  cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
  folder = pathlib.Path(cache) / 'seed_acme' / 'package' / name
  try:
    folder.mkdir(parents=True, exist_ok=True)
    _link(folder / 'seed_acme', package)
  except OSError:  # no home, or one that cannot be written to
    folder = pathlib.Path(tempfile.mkdtemp(prefix='seed_acme_package_'))
    _link(folder / 'seed_acme', package)
  return folder


def _link(link: pathlib.Path, target: pathlib.Path) -> None:
  """Others may make it at the same moment."""
  if link.is_symlink() and os.readlink(link) == str(target):
    return
  fresh = link.with_name(f'.{os.getpid()}')
  fresh.symlink_to(target)
  fresh.replace(link)
