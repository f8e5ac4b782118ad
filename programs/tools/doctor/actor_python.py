"""The checks of `doctor` for an interpreter that actors are to run under."""

from __future__ import annotations

from seed_acme import types
from seed_acme.envs.interpreters import interpreter
from seed_acme.envs.interpreters import remote
from seed_acme.programs.tools.doctor import examination as doctor
from seed_acme.programs.tools.doctor import patience
from seed_acme.programs.tools.doctor import suites

_TIMEOUT_S = 60.0
_NAME = 'actor python'


def examine(python: str) -> list[doctor.Check]:
  """Checks the interpreter, lists the suites that it lacks, and tries each suite that it has.

  Returns nothing if no other interpreter is given.
  """
  if interpreter.is_this_one(python):
    return []
  try:
    interpreter.require(python)
    known = remote.known_environments(python, _TIMEOUT_S)
  except (interpreter.NoAnswer, remote.NoAnswer) as error:
    return [doctor.Check(_NAME, 'wrong', str(error), patience.fix(interpreter.HOW_TO_MAKE))]
  except (types.UserError, types.Failure, remote.EnvironmentFailed) as error:
    return [doctor.Check(_NAME, 'wrong', str(error), interpreter.HOW_TO_MAKE)]
  version = '.'.join(map(str, interpreter.probe(python).version))
  return [
    doctor.Check(_NAME, 'ok', f'{version} ({python})'),
    *(
      doctor.Check(suite.id, 'warning', 'not installed there (optional)', suite.install)
      for suite in known
      if not suite.is_available
    ),
    *suites.try_all(known, python),
  ]
