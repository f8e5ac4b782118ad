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

from packaging import requirements
from packaging import utils
import tyro

from seed_acme import types
from seed_acme.checks import near_names
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import packages
from seed_acme.programs.actor_environment import finding

_LAST_LINES = 8  # of pip's output, where it fails


@dataclasses.dataclass(frozen=True)
class ActorEnvArguments:
  """Make a virtual environment of another Python in which actors run environments.

  folder: where; one that is there already gets what it lacks.
  python: path, name or version of the interpreter, 3.10 to 3.13; '' = the best that is found.
  extras: suites to install: atari, dm-control, envpool, gymnasium, mujoco.
  packages: more requirements, as pip takes them.
  """

  folder: tyro.conf.Positional[str]
  python: str = ''
  extras: tuple[str, ...] = ()
  packages: tuple[str, ...] = ()


def make(arguments: ActorEnvArguments) -> int:
  """Returns the exit code."""
  _check_extras(arguments.extras)
  folder = pathlib.Path(arguments.folder)
  python = folder / 'bin' / 'python'
  if folder.exists() and not (folder / 'pyvenv.cfg').exists() and any(folder.iterdir()):
    raise types.UserError(f'{folder} is there and is no virtual environment: choose another folder')
  if not _fits(python, arguments.python):
    found = finding.find(arguments.python)
    print(f'Making {folder} with {found}', flush=True)
    _run([found, '-m', 'venv', '--clear', str(folder)], f'{found} could not make {folder}')
  _install(python, arguments)
  interpreter.probe.cache_clear()  # it has more than before
  interpreter.require(str(python))
  version = '.'.join(map(str, interpreter.probe(str(python)).version))
  option = shlex.quote(f'--config.actor.python={python}')
  print(f'Python {version} in {folder}. Actors run there with {option}')
  return 0


def _check_extras(extras: tuple[str, ...]) -> None:
  for extra in extras:
    if extra not in packages.EXTRAS:
      hint = near_names.hint(extra, packages.EXTRAS)
      raise types.UserError(
        f'--extras {extra}: unknown{hint}; expected some of {", ".join(packages.EXTRAS)}. Other '
        'packages go with --packages'
      )


def _fits(python: pathlib.Path, wanted: str) -> bool:
  """Whether the folder holds an environment of that version; of any where none is asked for."""
  if not python.exists():
    return False
  try:
    interpreter.require_version(str(python))
    found = interpreter.probe(str(python)).version
    return not wanted or found[:2] == interpreter.probe(finding.find(wanted)).version[:2]
  except types.UserError:
    return False


def _install(python: pathlib.Path, arguments: ActorEnvArguments) -> None:
  wanted = [
    *packages.REQUIRES,
    *(package for extra in arguments.extras for package in packages.EXTRAS[extra]),
    *arguments.packages,
  ]
  print(f'Installing {", ".join(wanted)}', flush=True)
  with tempfile.NamedTemporaryFile('w', suffix='.txt') as constraints:
    constraints.write('\n'.join(constraints_beside(arguments.packages)) + '\n')
    constraints.flush()
    _run(
      [
        str(python),
        *('-m', 'pip', 'install', '--disable-pip-version-check', '--progress-bar', 'off'),
        *('--constraint', constraints.name, *wanted),
      ],
      f'pip could not install {", ".join(wanted)}',
    )


def constraints_beside(given: Sequence[str]) -> list[str]:
  """The versions that are tried, but of what is given with a version of its own."""
  own = set()
  for package in given:
    with contextlib.suppress(requirements.InvalidRequirement):  # a path or an address
      requirement = requirements.Requirement(package)
      if requirement.specifier:
        own.add(utils.canonicalize_name(requirement.name))
  names = {line: requirements.Requirement(line).name for line in packages.CONSTRAINTS}
  return [line for line, name in names.items() if utils.canonicalize_name(name) not in own]


def _run(command: list[str], failure: str) -> None:
  """Shows what it does; raises `types.Failure` with its last lines where it fails."""
  # A constraint of the learner's environment would hold for this one, too.
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
