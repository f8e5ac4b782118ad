"""A short-lived process in which the user's environments are tried."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from seed_acme.acting import activity as activity_lib
from seed_acme.programs.system import processes

_POLL_S = 0.05


class Ended(NamedTuple):
  """An ended process. code: exit code; negative = killed by this signal. output, errors:
  printed."""

  code: int
  output: str
  errors: str


def run(
  module: str,
  given: str,
  timeout_s: float | None = None,
  look: Callable[[activity_lib.Call], bool] = lambda call: False,
) -> Ended:
  """Runs `python -m module FD` with `given` as its input, then kills everything it started.

  FD is the descriptor of an `Activity`, in which the process says what it is doing. look: called
  with that several times a second; if it returns True, the process is killed, and if it raises, so
  does this function. Raises `subprocess.TimeoutExpired`.
  """
  variables = {**os.environ, **processes.environment(module.rpartition('.')[2], os.getpid())}
  # Files instead of pipes, because a program started by an environment may hold a pipe open for
  # ever. Environments may print anything, so not all of it need be UTF-8.
  with (
    tempfile.TemporaryFile('w+', encoding='utf-8') as standard_input,
    tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as output,
    tempfile.TemporaryFile('w+', encoding='utf-8', errors='replace') as errors,
    contextlib.closing(_SharedActivity()) as shared,
  ):
    standard_input.write(given)
    standard_input.seek(0)
    # In a session of its own, as the launcher, so that only this process handles Ctrl-C.
    process = subprocess.Popen(
      [sys.executable, '-m', module, str(shared.descriptor)],
      stdin=standard_input,
      stdout=output,
      stderr=errors,
      env=variables,
      pass_fds=[shared.descriptor],
      start_new_session=True,
    )
    try:
      give_up_s = None if timeout_s is None else time.monotonic() + timeout_s
      while process.poll() is None and not look(shared.activity.read()):
        if give_up_s is not None and time.monotonic() > give_up_s:
          raise subprocess.TimeoutExpired(module, timeout_s or 0.0)
        time.sleep(_POLL_S)
    finally:
      with contextlib.suppress(ProcessLookupError):
        # with every process that the environment has started
        os.killpg(process.pid, signal.SIGKILL)
      process.wait()
    output.seek(0)
    errors.seek(0)
    return Ended(process.returncode, output.read(), errors.read())


class _SharedActivity:
  """Shared memory in which the process says what it is doing."""

  def __init__(self) -> None:
    self.descriptor = activity_lib.shared_memory()
    self.activity = activity_lib.at(self.descriptor)

  def close(self) -> None:
    os.close(self.descriptor)
