"""Makes and steps an environment of every extra, in a new virtual environment, on each Python.

    .venv/bin/python scripts/try_extras.py actors --pythons 3.12 3.13 --extras mujoco dm-control
    .venv/bin/python scripts/try_extras.py learners --pythons 3.10

`actors`: `seed-acme actor-env` for each extra and Python. `learners`: pip as in docs/start.md, and
  the refusal by `make setup` of a Python that learners do not support.
Each is installed alone, into a new virtual environment that is removed afterwards, because another
extra might install a package that it lacks. An extra that does not exist for a Python has to be
refused with a message, and every package has to be pinned by a constraint. Exits with 1 if anything
is wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
from typing import NamedTuple

from packaging import requirements
from packaging import utils

from seed_acme.checks import actor_packages
from seed_acme.envs import registry
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote
from seed_acme.programs.tools.actor_environment import command as actor_environment
from seed_acme.programs.tools.actor_environment import finding
from seed_acme.programs.tools.doctor import suites

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_COMMAND = pathlib.Path(sys.executable).with_name('seed-acme')
_EXTRAS: dict[str, list[str]] = runpy.run_path(str(_ROOT / 'setup.py'))['EXTRAS_REQUIRE']
_LEARNERS = ('3.10', '3.11')
_PYTHONS = tuple(sorted(finding.PREFERRED))
_USER_ERROR_EXIT = 2
_TIMEOUT_S = 120.0
_LAST_LINES = 15


class Result(NamedTuple):
  """The result of an attempt. is_right: works where supported, else refused. said: a message."""

  is_right: bool
  said: str


def of_extra(extra: str) -> list[str]:
  """Returns ids of the environments that show that an extra works; [] if it has no environments."""
  return [
    example.id for suite in registry.SUITES for example in suite.examples if example.extra == extra
  ]


def not_held(installed: Sequence[str], constraints: Sequence[str], version: str) -> list[str]:
  """Returns the `name==version` that differ from the constraints for a Python such as 3.12."""
  fixed = set()
  for line in constraints:
    pin = requirements.Requirement(line)
    if pin.marker is None or pin.marker.evaluate({'python_version': version}):
      fixed.update((utils.canonicalize_name(pin.name), s.version) for s in pin.specifier)
  pairs = {line: line.partition('==') for line in installed}
  return [
    line
    for line, (name, _, number) in pairs.items()
    if (utils.canonicalize_name(name), number) not in fixed
  ]


def try_for_actors(extra: str, version: str, folder: pathlib.Path) -> Result:
  """Tries an extra for actors. folder: to be created for the environment."""
  made = _run([_COMMAND, 'actor-env', folder, f'--python={version}', '--extras', extra])
  exists = extra in actor_packages.EXTRAS and version in actor_environment.pythons(extra)
  if not exists:
    # a message `error: ` in one line
    is_right = made.code == _USER_ERROR_EXIT and f'--extras {extra}' in made.said
    return Result(is_right and not folder.exists(), f'refused: {made.said}')
  if made.code:
    return Result(False, made.said)
  python = str(folder / 'bin' / 'python')
  loose = not_held(interpreter.installed(python), actor_packages.CONSTRAINTS, version)
  if loose:
    return Result(False, f'no constraint holds {", ".join(loose)}')
  return _try_examples(extra, python)


def try_for_learners(extra: str, version: str, folder: pathlib.Path) -> Result:
  """Tries an extra for learners, with the whole package."""
  base = finding.find(version)
  if version not in _LEARNERS:  # for every extra, because `make setup` refuses this Python
    refused = _run(['bash', _ROOT / 'scripts' / 'find_python.sh'], PYTHON=base)
    is_right = refused.code != 0 and 'needs Python 3.11 or 3.10' in refused.said
    return Result(is_right, f'refused: {refused.said}')
  made = _run([base, '-m', 'venv', folder])
  if made.code:
    return Result(False, made.said)
  python = str(folder / 'bin' / 'python')
  wheels = folder / 'wheels'
  _run([sys.executable, _ROOT / 'scripts' / 'launchpad_wheel.py', wheels])
  installed = _run(
    [
      *(python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'),
      *('--find-links', wheels, '--editable', f'{_ROOT}[{extra}]'),
    ],
    PIP_CONSTRAINT=str(_ROOT / 'constraints.txt'),
  )
  if installed.code:
    return Result(False, installed.said)
  if not _applies(extra, version):
    [first, *_] = of_extra(extra)
    tried = _run([python, '-m', 'seed_acme.testing.first_steps', first])
    return Result(bool(tried.code) and f' needs {extra}: ' in tried.said, f'refused: {tried.said}')
  return _try_examples(extra, python)


def _applies(extra: str, version: str) -> bool:
  markers = [requirements.Requirement(line).marker for line in _EXTRAS[extra]]
  return any(m is None or m.evaluate({'python_version': version}) for m in markers)


def _try_examples(extra: str, python: str) -> Result:
  known = remote.known_environments(python, _TIMEOUT_S)
  wanted = of_extra(extra)
  if not wanted:
    return Result(True, 'installed; it brings no suite of its own')
  checks = [check for check in suites.try_all(known, python) if check.name in wanted]
  if not checks:
    return Result(False, f'none of {", ".join(wanted)} can be made with what was installed')
  return Result(
    all(check.state == 'ok' for check in checks),
    '; '.join(f'{check.name} {check.detail}' for check in checks),
  )


class _Ended(NamedTuple):
  code: int
  said: str  # last lines of both streams


def _run(command: Sequence[str | pathlib.Path], **variables: str) -> _Ended:
  kept = {name: value for name, value in os.environ.items() if name != 'PIP_CONSTRAINT'}
  done = subprocess.run(
    command,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    errors='replace',
    env={**kept, **variables},
    check=False,
  )
  return _Ended(done.returncode, '\n'.join(done.stdout.strip().splitlines()[-_LAST_LINES:]))


def _all(kind: str, pythons: Sequence[str], extras: Sequence[str]) -> Iterator[tuple[str, Result]]:
  """Yields what was tried, and the result."""
  attempt = try_for_actors if kind == 'actors' else try_for_learners
  for version in pythons:
    for extra in extras:
      with tempfile.TemporaryDirectory(prefix='try_extras_') as folder:
        yield (
          f'{kind}, Python {version}, {extra}',
          attempt(extra, version, pathlib.Path(folder, 'e')),
        )


def parse(argv: Sequence[str]) -> argparse.Namespace:
  """Parses kind, pythons and extras."""
  parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
  parser.add_argument('kind', choices=('actors', 'learners'))
  parser.add_argument('--pythons', nargs='+', choices=_PYTHONS, default=_PYTHONS)
  # All extras for actors, so that every message that suggests one is tried, too.
  parser.add_argument('--extras', nargs='+', choices=sorted(_EXTRAS))
  arguments = parser.parse_args(argv)
  arguments.extras = arguments.extras or [
    extra for extra in sorted(_EXTRAS) if arguments.kind == 'actors' or of_extra(extra)
  ]
  return arguments


def main(argv: Sequence[str]) -> int:
  """Returns the exit code."""
  arguments = parse(argv)
  is_wrong = False
  for tried, result in _all(arguments.kind, arguments.pythons, arguments.extras):
    is_wrong = is_wrong or not result.is_right
    print(f'{"ok   " if result.is_right else "WRONG"}  {tried}: {result.said}', flush=True)
  return int(is_wrong)


if __name__ == '__main__':
  sys.exit(main(sys.argv[1:]))
