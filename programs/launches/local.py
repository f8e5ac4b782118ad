"""`--launch=local_mp`: Launchpad processes on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from seed_acme import config as config_lib
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import here
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

if TYPE_CHECKING:
  import launchpad as lp

_LAST_WORDS_S = 5.0  # time for a live learner host to notice that another has failed, and to end
# A process that is killed closes its connections before its exit code can be read, seconds before
# on a busy machine.
_DYING_S = 20.0


class Launch(here.Here):
  """The launch of all nodes of the graph."""

  command: tuple[str, ...] = (launches.LOCAL_MP,)

  def program(
    self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory
  ) -> lp.Program:
    """Returns the program to launch."""
    from seed_acme.programs.graph import program_graph

    return program_graph.make_program(config, run)

  def lead(self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> int:
    """Launches the program and waits for its end; returns the exit code."""
    run.set_phase('loading Launchpad')
    os.environ['LAUNCHPAD_LOGGING_DIR'] = str(run.logs)  # Launchpad reads it on import
    import absl.flags
    import launchpad as lp

    from seed_acme.programs.graph import program_graph
    from seed_acme.programs.nodes import host

    program = self.program(config, run)
    absl.flags.FLAGS([sys.argv[0], f'--lp_termination_notice_secs={host.termination_notice_s()}'])
    manager = lp.launch(
      program,
      launch_type=lp.LaunchType.LOCAL_MULTI_PROCESSING,
      terminal='output_to_files',
      local_resources=program_graph.local_resources(os.getpid()),
    )
    return _waited_for(manager, run)


def _waited_for(manager: Any, run: run_directory.RunDirectory) -> int:
  """Waits until all nodes have ended; returns the exit code."""
  # Launchpad's own error names no node, so the processes are examined here.
  workers = [
    (title, worker) for title, group in manager._active_workers.items() for worker in group
  ]
  has_failed = False
  try:
    manager.wait()
  except BaseException as error:  # including SystemExit of a node's thread
    has_failed = True
    _report_lost_processes(run, workers)
    processes.report_failure(run, processes.LAUNCHER, processes.describe(error), processes.LAUNCHER)
    _end_hanging_learners([worker for title, worker in workers if title.startswith('learner')])
    manager.wait(raise_error=False)  # the failure has already told the other nodes to stop
  # Launchpad ignores nodes that fail while the program stops.
  failure = processes.read_failure(run)
  if failure is None:  # or the disk had no room for the record
    return processes.FAILURE_EXIT if has_failed else 0
  return processes.USER_ERROR_EXIT if failure['is_user_error'] else processes.FAILURE_EXIT


def _report_lost_processes(run: run_directory.RunDirectory, workers: list[tuple[str, Any]]) -> None:
  """Reports the nodes that have died without reporting a failure themselves.

  If a node has failed because another one has died, that one may still be dying, and is waited for.
  """
  end_s = time.monotonic() + _DYING_S * processes.is_of_another(processes.read_failure(run))
  while not any(_reported(run, *worker) for worker in workers) and time.monotonic() < end_s:
    time.sleep(0.05)


def _reported(run: run_directory.RunDirectory, title: str, worker: Any) -> bool:
  """Reports a node that has ended by now; returns whether it was killed."""
  # Checked now, because Launchpad may first have noticed another node that failed for lack of this.
  code = worker.poll() if isinstance(worker, subprocess.Popen) else None
  # SIGTERM comes from Launchpad, which stops the other nodes after a failure.
  is_killed = code is not None and code < 0 and code != -signal.SIGTERM
  if code:
    message = f'the process was lost: {processes.describe_exit(code)}'
    processes.report_failure(run, title, message, title, is_cause=is_killed)
  return is_killed


def _end_hanging_learners(learners: list[Any]) -> None:
  """Kills learner hosts that hang after another one has failed.

  The others can then neither train nor save. One that hangs handles no signal, and would be waited
  for as long as a checkpoint may take.
  """
  if len(learners) == 1 or not any(getattr(worker, 'returncode', None) for worker in learners):
    return
  end_s = time.monotonic() + _LAST_WORDS_S
  for worker in learners:
    try:
      worker.wait(max(0.0, end_s - time.monotonic()))
    except subprocess.TimeoutExpired:
      worker.kill()
