"""`seed-acme doctor`: checks this machine and installation, and says how to repair them."""

from __future__ import annotations

import dataclasses

from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.system import processes
from seed_acme.programs.tools.doctor import actor_python
from seed_acme.programs.tools.doctor import examination as doctor_lib
from seed_acme.programs.tools.doctor import suites


@dataclasses.dataclass(frozen=True)
class DoctorArguments:
  """Check this machine and installation, and say how to repair what is wrong.

  json: print JSON.
  python: also check the interpreter at this path: can actors run under it (actor.python)?
  """

  json: bool = False
  python: str = ''


def doctor(arguments: DoctorArguments) -> command_lib.Answer:
  """Runs all checks; the exit code is that of a failure if something is wrong."""
  checks = [*doctor_lib.run(), *suites.examine(), *actor_python.examine(arguments.python)]
  code = processes.FAILURE_EXIT if doctor_lib.is_wrong(checks) else 0
  return command_lib.Answer(doctor_lib.to_json(checks), doctor_lib.to_text(checks), code)
