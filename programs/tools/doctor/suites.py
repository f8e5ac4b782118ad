"""A test of each installed suite of environments, which makes and steps an example."""

from __future__ import annotations

from collections.abc import Sequence
import os
import subprocess
import sys
import tempfile

from seed_acme.envs import registry
from seed_acme.envs import suite as suite_lib
from seed_acme.envs.interpreters import interpreter
from seed_acme.programs.tools.doctor import children
from seed_acme.programs.tools.doctor import examination as doctor
from seed_acme.programs.tools.doctor import patience
from seed_acme.testing import first_steps

_TIMEOUT_S = 120.0  # the slowest, envpool, takes 5 to 10 s
_NUM_PROCESSES = 2


def examine() -> list[doctor.Check]:
  """Tries each example of the suites that are installed here; returns a check for each."""
  return try_all(registry.known_environments(), sys.executable)


def try_all(
  known: Sequence[suite_lib.KnownEnvironments], python: str, timeout_s: float = _TIMEOUT_S
) -> list[doctor.Check]:
  """Makes and steps each example in a process of its own under `python`.

  known: as `registry.known_environments` returns it under that interpreter.
  """
  examples = [example for suite in known for example in suite.examples]
  with children.pool(_NUM_PROCESSES) as pool:
    return list(pool.map(lambda example: _try(example[0], example[1], python, timeout_s), examples))


def _try(environment_id: str, install: str, python: str, timeout_s: float) -> doctor.Check:
  """Makes and steps one environment. install: the command that installs versions known to work."""
  # A file instead of a pipe: a program started by an environment may hold a pipe open for ever.
  with tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as errors:
    try:
      code = subprocess.run(
        interpreter.command(python, first_steps.__name__, environment_id),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        timeout=timeout_s,
        env={**os.environ, **interpreter.variables(python)},
        check=False,
      ).returncode
    except subprocess.TimeoutExpired:
      detail = f'no answer within {timeout_s:g} s'
      return doctor.Check(environment_id, 'wrong', detail, patience.fix(install))
    errors.seek(0)
    last = (errors.read().strip().splitlines() or ['no message'])[-1]
  if not code:
    return doctor.Check(environment_id, 'ok', 'made and stepped')
  died = f'killed by signal {-code}' if code < 0 else last
  return doctor.Check(environment_id, 'wrong', f'cannot be made or stepped: {died[:300]}', install)
