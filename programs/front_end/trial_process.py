"""A short-lived process in which the front end tries environments of the user's."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

from seed_acme.programs.system import processes


class Ended(NamedTuple):
  """code: of the exit; negative = the signal that killed it. output, errors: what it printed."""

  code: int
  output: str
  errors: str


def run(module: str, given: str, timeout_s: float | None = None) -> Ended:
  """`python -m module` with `given` on its standard input; killed with all that it has started.

  Raises `subprocess.TimeoutExpired`.
  """
  variables = {**os.environ, **processes.environment(module.rpartition('.')[2], os.getpid())}
  # Files, no pipes: a program that an environment starts may hold them open for ever.
  with (
    tempfile.TemporaryFile('w+') as standard_input,
    tempfile.TemporaryFile('w+') as output,
    tempfile.TemporaryFile('w+') as errors,
  ):
    standard_input.write(given)
    standard_input.seek(0)
    # In a session of its own, as the launcher: Ctrl-C is answered here, once.
    process = subprocess.Popen(
      [sys.executable, '-m', module],
      stdin=standard_input,
      stdout=output,
      stderr=errors,
      env=variables,
      start_new_session=True,
    )
    try:
      code = process.wait(timeout_s)
    finally:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # and what the environment has started
      process.wait()
    output.seek(0)
    errors.seek(0)
    return Ended(code, output.read(), errors.read())
