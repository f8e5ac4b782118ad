"""Starts and kills the launcher's process (`programs/launcher.py`), for the front end."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys

from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

SINGLE_PROCESS, LOCAL_MP = 'single_process', 'local_mp'
LAUNCH_TYPES = (LOCAL_MP, SINGLE_PROCESS)
AUTO = 'auto'  # one of the above, by `launch_choice.py`
CLUSTER = 'cluster:'  # and INDEX:PATH of the cluster file: one learner, as a process
_MODULE = 'seed_acme.programs.launcher'  # not imported here: it builds the graph of nodes


def start(
  run_dir: run_directory.RunDirectory, launch_type: str, temporary: str, saving_s: float = 0.0
) -> subprocess.Popen:
  """Starts it in a session of its own; it ends with its parent.

  temporary: folder for what Launchpad and Reverb leave behind. saving_s: how long saving the
  replay memory may take.
  """
  with open(run_dir.logs / processes.LAUNCHER, 'a') as log:
    return subprocess.Popen(
      [sys.executable, '-m', _MODULE, str(run_dir.path), launch_type],
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


def cluster_launch(path: str, index: int) -> str:
  """The launch type of learner host `index`, whose other nodes are on other hosts."""
  return f'{CLUSTER}{index}:{path}'


def kill(launcher: subprocess.Popen) -> None:
  """Kills its whole process group; harmless after its end."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(launcher.pid, signal.SIGKILL)
