"""A search for the Python interpreters of this machine that can run environments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import os
import pathlib
import re
import shutil
import subprocess

from seed_acme import types
from seed_acme.envs.interpreters import interpreter

# The first version that is found is taken. Versions that more packages support come first.
PREFERRED = ('3.12', '3.13', '3.11', '3.10')


def find(wanted: str, versions: Sequence[str] = PREFERRED) -> str:
  """Returns the path of an interpreter.

  wanted: its path, or a version such as 3.12 or python3.12; '' = the first of `versions` that is
    found. A name on the PATH may be a shim that does not start, so every candidate is asked for its
    version.

  Raises `types.UserError`, which lists ways to install one, if none is found.
  """
  wanted_version = wanted.removeprefix('python')
  if re.fullmatch(r'\d+(\.\d+)*', wanted_version) and wanted_version not in PREFERRED:
    raise types.UserError(
      f'--python={wanted}: environments run under Python {", ".join(sorted(PREFERRED))}: give one '
      'of them, or the path of an interpreter'
    )
  if wanted and wanted_version not in PREFERRED:
    interpreter.require_version(wanted)
    return interpreter.program(wanted)
  for version in [wanted_version] if wanted else versions:
    for candidate in _candidates(version):
      if _has_version(candidate, version):
        return candidate
  name = f'Python {wanted_version}' if wanted else f'Python {" or ".join(versions)}'
  raise types.UserError(
    f'{name} was not found on this machine: install one (apt install python3.12 python3.12-venv, '
    'pyenv install 3.12, uv python install 3.12 or conda create -n actors python=3.12), or give '
    'its path with --python'
  )


def _has_version(candidate: str, version: str) -> bool:
  try:
    found = interpreter.probe(candidate, ('venv', 'ensurepip'))
  except types.UserError:
    return False
  return '.'.join(map(str, found.version[:2])) == version and not found.missing


def _candidates(version: str) -> Iterator[str]:
  """Yields paths that may be this version, from the PATH, pyenv, conda and uv."""
  name = f'python{version}'
  for on_path in (name, 'python3', 'python'):
    for folder in os.environ.get('PATH', '').split(os.pathsep):
      if found := shutil.which(on_path, path=folder):
        yield found
  home = pathlib.Path.home()
  roots = [pathlib.Path(os.environ.get('PYENV_ROOT', home / '.pyenv')) / 'versions']
  for prefix in ('CONDA_PREFIX', 'MAMBA_ROOT_PREFIX'):
    if os.environ.get(prefix):
      roots += [pathlib.Path(os.environ[prefix]), pathlib.Path(os.environ[prefix]) / 'envs']
  for conda in ('miniconda3', 'anaconda3', 'miniforge3', 'mambaforge', 'micromamba'):
    roots += [home / conda, home / conda / 'envs']
  for root in roots:
    yield from map(str, sorted(root.glob(f'bin/{name}'), reverse=True))
    yield from map(str, sorted(root.glob(f'*/bin/{name}'), reverse=True))
  if uv := shutil.which('uv'):
    done = subprocess.run(
      [uv, 'python', 'find', '--no-project', version],
      capture_output=True,
      text=True,
      errors='replace',
      check=False,
    )
    if done.returncode == 0:
      yield done.stdout.strip()
