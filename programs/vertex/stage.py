"""The contents of an image: a clean copy of the package, and the exact versions to install.

The versions are those installed here, and equal those of constraints.txt if the environment was
made with it, as `make setup` does.
"""

from __future__ import annotations

from collections.abc import Iterable
import csv
import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

from packaging import requirements as requirements_lib
from packaging import utils as packaging_utils

import seed_acme
from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.envs import registry as environments
from seed_acme.envs import suite
from seed_acme.envs.interpreters import interpreter
from seed_acme.storage import saved_config
from seed_acme.storage import trust

PACKAGE = 'seed_acme'
LAUNCHPAD = 'dm-launchpad'
# Where pip finds packages that are on no index: beside the requirements.
_FROM_HERE = '--find-links=.'
_SUFFIXES = ('.py', '.typed')
_TENSORFLOW, _WITH_CUDA = 'tensorflow', 'tensorflow[and-cuda]'
_ALWAYS = ('google-auth',)  # for TensorFlow's file system, which finds the credentials itself


class ActorPython(NamedTuple):
  """The interpreter of `actor.python`, as an image reproduces it; version '' = none."""

  version: str
  requirements: list[str]


def actor_python(python: str) -> ActorPython:
  """Returns its version, such as 3.12, and the exact packages that are installed there."""
  if interpreter.is_this_one(python):
    return ActorPython('', [])
  version = '.'.join(map(str, interpreter.probe(python).version[:2]))
  return ActorPython(version, interpreter.installed(python))


def write_lines(lines: Iterable[str], path: pathlib.Path) -> None:
  """Writes a file of requirements."""
  path.write_text('\n'.join(lines) + '\n', encoding='utf-8')


def stage_package(folder: pathlib.Path) -> None:
  """Copies the package with links followed: Python files and markers only."""
  root = pathlib.Path(seed_acme.__file__).parent
  for path, folders, names in os.walk(root, followlinks=True):
    folders[:] = sorted(name for name in folders if not name.startswith(('.', '__pycache__')))
    target = folder / PACKAGE / pathlib.Path(path).relative_to(root)
    chosen = [name for name in sorted(names) if name.endswith(_SUFFIXES)]
    if chosen:
      target.mkdir(parents=True, exist_ok=True)
    for name in chosen:
      shutil.copyfile(pathlib.Path(path) / name, target / name)


def stage_launchpad(folder: pathlib.Path) -> None:
  """Repacks the installed wheel of Launchpad, which is on no index."""
  installed = importlib.metadata.distribution(LAUNCHPAD)
  record = csv.reader((installed.read_text('RECORD') or '').splitlines())
  with tempfile.TemporaryDirectory(prefix='seed-acme-') as scratch:
    for name, *_ in record:
      path = pathlib.PurePosixPath(name)
      # Files that the installer has added belong to no wheel.
      added = path.suffix == '.pyc' or path.name in ('INSTALLER', 'REQUESTED', 'direct_url.json')
      if not added and '..' not in path.parts:
        target = pathlib.Path(scratch, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(pathlib.Path(str(installed.locate_file(name))), target)
    command = [sys.executable, '-m', 'wheel', 'pack', scratch, f'--dest-dir={folder}']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
  if done.returncode:
    last = (done.stderr.strip().splitlines() or ['no message'])[-1]
    raise types.UserError(
      f'the wheel of {LAUNCHPAD} cannot be packed for the images: {last}; '
      "pip install -e '.[vertex]' again, or make setup"
    )


def requirements(
  config: config_lib.ExperimentConfig, code: str, more: str, has_accelerator: bool
) -> list[str]:
  """Returns the lines of requirements.txt: `name==version` of all packages, then the user's.

  They expect the result of `stage_launchpad` in the same folder. Raises `types.UserError` for a
  module of the user's that would not be in the image.
  """
  wanted = [PACKAGE, *(f'{PACKAGE}[{extra}]' for extra in _extras(config))]
  wanted += _of_user_modules(config, code)
  pins = _closure([*wanted, *_ALWAYS])
  pins.pop(packaging_utils.canonicalize_name(PACKAGE))
  if has_accelerator:  # its extra pins CUDA packages, which need not be installed here
    pins[_WITH_CUDA] = pins.pop(_TENSORFLOW)
  lines = [_FROM_HERE, *(f'{name}=={version}' for name, version in sorted(pins.items()))]
  return [*lines, *_lines_of_user(more)] if more else lines


def _lines_of_user(path: str) -> list[str]:
  try:
    return pathlib.Path(path).read_text(encoding='utf-8').splitlines()
  except (OSError, UnicodeError) as error:
    reason = getattr(error, 'strerror', None) or 'it is no text'
    raise types.UserError(
      f'--cloud.requirements={path} cannot be read: {reason}; give a file with a requirement a line'
    ) from None


def _extras(config: config_lib.ExperimentConfig) -> list[str]:
  if not interpreter.is_this_one(config.actor.python):
    return []  # the other interpreter has the environments' packages
  extra = environments.find(config.environment.id).extra
  found = [extra] if extra else []
  if extra in ('gym', 'gymnasium'):
    of_levels = {'mujoco': 'mujoco', 'Box2D': 'box2d'}
    found += [other for module, other in of_levels.items() if suite.is_installed(module)]
  return found


def _of_user_modules(config: config_lib.ExperimentConfig, code: str) -> list[str]:
  """Returns the distributions of modules that the configuration names, `package.module:name`."""
  wanted = []
  for field, path in sorted(trust.named_code(saved_config.to_json(config))):
    module = environments.named_module(path) if field == 'environment.id' else path
    top = re.split('[.:]', module)[0]
    if top == PACKAGE or code and _has_module(pathlib.Path(code), top):
      continue
    distribution = _distribution_of(top)
    if distribution is None:
      raise types.UserError(
        f'{field}={path}: {top} is on this machine only; give the folder it '
        'lies in with --cloud.code=FOLDER, and it goes into the images'
      )
    wanted.append(distribution)
  return wanted


def _distribution_of(module: str) -> str | None:
  """Returns the distribution that this top-level module belongs to, or None."""
  its_file = re.compile(rf'^{re.escape(module)}(/|\.py,)', re.MULTILINE)
  for distribution in importlib.metadata.distributions():
    # `files` would check each file on the disk, which takes seconds.
    record = distribution.read_text('RECORD')
    if record is None:
      record = '\n'.join(f'{file},' for file in distribution.files or ())
    if its_file.search(record):
      return distribution.metadata['Name']
  return None


def _has_module(folder: pathlib.Path, name: str) -> bool:
  return (folder / f'{name}.py').is_file() or (folder / name).is_dir()


def _closure(wanted: Iterable[str]) -> dict[str, str]:
  """Returns the installed versions of these distributions and of all their requirements."""
  pins: dict[str, str] = {}
  seen: set[str] = set()
  waiting = list(wanted)
  while waiting:
    requirement = requirements_lib.Requirement(waiting.pop())
    name = packaging_utils.canonicalize_name(requirement.name)
    key = f'{name}[{",".join(sorted(requirement.extras))}]'
    if key in seen:
      continue
    seen.add(key)
    try:
      found = importlib.metadata.distribution(requirement.name)
    except importlib.metadata.PackageNotFoundError:
      raise types.UserError(
        f'{requirement.name} is needed in the images and not installed here: '
        'pip install it, or make setup'
      ) from None
    known = {
      packaging_utils.canonicalize_name(extra)
      for extra in found.metadata.get_all('Provides-Extra') or ()
    }
    for extra in requirement.extras:
      if packaging_utils.canonicalize_name(extra) not in known:
        raise types.UserError(
          f'{requirement.name} is installed without its extra {extra}: pip '
          f'install {requirement.name}[{extra}] again, or make setup'
        )
    pins[name] = found.version
    waiting += [line for line in found.requires or () if _applies(line, requirement.extras)]
  return pins


def _applies(line: str, extras: set[str]) -> bool:
  marker = requirements_lib.Requirement(line).marker
  return marker is None or any(marker.evaluate({'extra': extra}) for extra in (*extras, ''))
