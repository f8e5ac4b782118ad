"""`seed-acme actor-env FOLDER`: a virtual environment of another Python, for actors."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import contextlib
import dataclasses
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
from typing import NamedTuple

from packaging import requirements
from packaging import utils
import tyro

from seed_acme import types
from seed_acme.checks import actor_packages
from seed_acme.checks import extras as extras_lib
from seed_acme.checks import near_names
from seed_acme.envs.interpreters import interpreter
from seed_acme.files import local
from seed_acme.programs.tools.actor_environment import finding

_LAST_LINES = 8  # of pip's output, where it fails
_OF_LEARNERS = 'reverb'  # a module that every learner needs, and no environment does


@dataclasses.dataclass(frozen=True)
class ActorEnvArguments:
  """Make a virtual environment of another Python in which actors run environments.

  folder: where to make it; an existing one for actors only gets the packages that it lacks.
  python: path, name or version of the interpreter, 3.10 to 3.13; '' = the best that is found.
  extras: suites to install: atari, box2d, dm-control, envpool, gymnasium, mujoco, video.
  packages: more requirements, as pip takes them.
  """

  folder: tyro.conf.Positional[str]
  python: str = ''
  extras: tuple[str, ...] = ()
  packages: tuple[str, ...] = ()


class Plan(NamedTuple):
  """The interpreter and the packages of the environment that is to be made.

  base: the interpreter that creates the environment; '' = the existing one is kept.
  packages: requirements. alone: packages to install afterwards with `--no-deps`.
  """

  base: str
  packages: list[str]
  alone: list[str]


def make(arguments: ActorEnvArguments) -> int:
  """Creates or completes the environment, installs the packages, and returns the exit code."""
  planned = plan(arguments)
  folder = pathlib.Path(arguments.folder)
  python = _python_of(folder)
  if planned.base:
    print(f'Making {folder} with {planned.base}', flush=True)
    command = [planned.base, '-m', 'venv', str(folder)]
    _run(command, f'{planned.base} could not make {folder}')
  constraints = constraints_beside(arguments.packages)
  _install(python, planned.packages, constraints)
  if planned.alone:
    _install(python, planned.alone, [], '--no-deps')
  interpreter.probe.cache_clear()  # the installation has just changed what it finds
  interpreter.require(str(python))
  version = '.'.join(map(str, interpreter.probe(str(python)).version))
  option = shlex.quote(f'--config.actor.python={python}')
  print(f'Python {version} in {folder}. Actors run there with {option}')
  return 0


def plan(arguments: ActorEnvArguments) -> Plan:
  """Works out what `make` has to do, and changes nothing.

  Raises `types.UserError` if the environment cannot be made.
  """
  versions = _pythons_of_all(arguments.extras)
  local.refuse_url(arguments.folder)
  folder = pathlib.Path(arguments.folder)
  if folder.exists() and not folder.is_dir():
    raise types.UserError(f'{folder} is a file: choose another folder')
  python = _python_of(folder)
  is_used = folder.exists() and any(folder.iterdir())
  if is_used and not (folder / 'pyvenv.cfg').exists():
    raise types.UserError(f'{folder} is there and is no virtual environment: choose another folder')
  base = '' if _fits(python, arguments.python) else finding.find(arguments.python, versions)
  if base and is_used:
    raise types.UserError(
      f'{folder} holds an environment of {_held(python)}, not of the wanted one ({base}): choose '
      'another folder, or delete this one'
    )
  if not base and not interpreter.probe(str(python), (_OF_LEARNERS,)).missing:
    raise types.UserError(
      f"{folder} is a learner's environment (it has {_OF_LEARNERS}), and actors' packages may have "
      f'other versions: choose another folder, such as {extras_lib.ACTOR_FOLDER}'
    )
  version = _version(base or str(python))
  for extra in arguments.extras:
    if version not in pythons(extra):
      place = f'{base} is that' if base else f'{folder} has that'
      raise types.UserError(
        f'--extras {extra} is for Python {", ".join(pythons(extra))}, not for {version} ({place}): '
        'choose another folder, or another --python'
      )
  of_suites, alone = (
    [one for extra in arguments.extras for one in of.get(extra, ()) if _applies(one, version)]
    for of in (actor_packages.EXTRAS, actor_packages.WITHOUT_REQUIREMENTS)
  )
  return Plan(base, [*actor_packages.REQUIRES, *of_suites, *arguments.packages], alone)


def pythons(extra: str) -> list[str]:
  """Returns the Python versions that a suite supports, oldest first, such as `3.11`."""
  return [
    version
    for version in sorted(finding.PREFERRED)
    if any(_applies(package, version) for package in actor_packages.EXTRAS[extra])
  ]


def _applies(package: str, version: str) -> bool:
  marker = requirements.Requirement(package).marker
  return marker is None or marker.evaluate({'python_version': version})


def _pythons_of_all(extras: tuple[str, ...]) -> list[str]:
  """Returns the Python versions that support all of these suites, the preferred ones first."""
  for extra in extras:
    if extra not in actor_packages.EXTRAS:
      hint = near_names.hint(extra, actor_packages.EXTRAS)
      raise types.UserError(
        f'--extras {extra}: no suite for actors{hint}; expected some of '
        f'{", ".join(actor_packages.EXTRAS)}. Other packages go with --packages'
      )
  return [
    version for version in finding.PREFERRED if all(version in pythons(extra) for extra in extras)
  ]


def _python_of(folder: pathlib.Path) -> pathlib.Path:
  return folder / 'bin' / 'python'


def _version(python: str) -> str:
  """Returns the version of an interpreter as `3.12`."""
  return '.'.join(map(str, interpreter.probe(python).version[:2]))


def _held(python: pathlib.Path) -> str:
  """Describes the interpreter of an existing environment, for a message."""
  try:
    return f'Python {_version(str(python))}'
  except types.UserError:
    return 'a Python that does not answer'


def _fits(python: pathlib.Path, wanted: str) -> bool:
  """Whether the folder holds an environment of the wanted version, or of any if none is wanted."""
  if not python.exists():
    return False
  try:
    interpreter.require_version(str(python))
    return not wanted or _version(str(python)) == _version(finding.find(wanted))
  except types.UserError:
    return False


def _install(
  python: pathlib.Path, packages: Sequence[str], constraints: Sequence[str], *options: str
) -> None:
  print(f'Installing {", ".join(packages)}', flush=True)
  with tempfile.NamedTemporaryFile('w', suffix='.txt') as file:
    file.write('\n'.join(constraints) + '\n')
    file.flush()
    _run(
      [
        str(python),
        *('-m', 'pip', 'install', '--disable-pip-version-check', '--progress-bar', 'off'),
        *options,
        *('--constraint', file.name, *packages),
      ],
      f'pip could not install {", ".join(packages)}',
    )


def constraints_beside(given: Sequence[str]) -> list[str]:
  """Returns the tested versions as constraints, except for packages that the user pinned."""
  own = set()
  for package in given:
    with contextlib.suppress(requirements.InvalidRequirement):  # a path or a URL
      requirement = requirements.Requirement(package)
      if requirement.specifier:
        own.add(utils.canonicalize_name(requirement.name))
  names = {line: requirements.Requirement(line).name for line in actor_packages.CONSTRAINTS}
  return [line for line, name in names.items() if utils.canonicalize_name(name) not in own]


def _run(command: list[str], failure: str) -> None:
  """Runs a command and prints its progress.

  Raises `types.Failure` if it fails, after printing the last lines of its output.
  """
  # A constraints file for the learner's environment would apply to this one, too.
  variables = {name: value for name, value in os.environ.items() if name != 'PIP_CONSTRAINT'}
  last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
  with subprocess.Popen(
    command,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    errors='replace',
    env=variables,
  ) as process:
    assert process.stdout is not None
    for line in process.stdout:
      last.append(line)
      if line.startswith(('Collecting', 'Installing')):
        print(f'  {line.strip()}', flush=True)
  if process.returncode:
    print(''.join(last), file=sys.stderr)
    raise types.Failure(f'{failure} (exit code {process.returncode}); its last words are above')
