"""Functions by which the front end starts and kills the launcher's process
(`programs/launcher.py`)."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import math
import os
import signal
import subprocess
import sys

from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

# not imported in this process, because it builds the graph of nodes
_MODULE = 'seed_acme.programs.launcher'


def start(
  run_dir: run_directory.RunDirectory, launch: Sequence[str], temporary: str, saving_s: float = 0.0
) -> subprocess.Popen:
  """Starts the launcher in a session of its own; it ends with its parent.

  launch: its name and arguments, as `launches.load` takes them. temporary: folder for the temporary
    files of Launchpad and Reverb. saving_s: how long saving the replay memory may take.
  """
  with open(run_dir.logs / processes.LAUNCHER, 'a') as log:
    return subprocess.Popen(
      [sys.executable, '-m', _MODULE, str(run_dir.path), *launch],
      stdin=subprocess.DEVNULL,
      stdout=log,
      stderr=log,
      env=_environment(temporary, saving_s),
      start_new_session=True,
    )


def _environment(temporary: str, saving_s: float) -> dict[str, str]:
  return {
    **os.environ,
    'TMPDIR': temporary,
    **processes.environment(processes.LAUNCHER, os.getpid()),
    processes.SAVING_VARIABLE: str(math.ceil(saving_s)),
  }


def kill(launcher: subprocess.Popen) -> None:
  """Kills the launcher's whole process group; does nothing if it has ended."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(launcher.pid, signal.SIGKILL)
