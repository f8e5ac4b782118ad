"""`seed-acme doctor`: what of the stack is right or wrong on this machine."""

from __future__ import annotations

import dataclasses

from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.system import processes
from seed_acme.programs.tools.doctor import actor_python
from seed_acme.programs.tools.doctor import examination as doctor_lib
from seed_acme.programs.tools.doctor import suites


@dataclasses.dataclass(frozen=True)
class DoctorArguments:
  """Say what of the stack is right or wrong on this machine, and how to mend it.

  json: print JSON.
  python: examine the interpreter at this path, too: can actors run under it (actor.python)?
  """

  json: bool = False
  python: str = ''


def doctor(arguments: DoctorArguments) -> command_lib.Answer:
  """With the exit code of a failure if something is wrong."""
  checks = [*doctor_lib.run(), *suites.examine(), *actor_python.examine(arguments.python)]
  code = processes.FAILURE_EXIT if doctor_lib.is_wrong(checks) else 0
  return command_lib.Answer(doctor_lib.to_json(checks), doctor_lib.to_text(checks), code)
