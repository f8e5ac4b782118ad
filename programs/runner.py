"""The launcher's process: `python -m seed_acme.programs.runner RUN_DIR LAUNCH_TYPE`.

The front end (`training_run.py`) starts it in a session of its own, so that Ctrl-C
reaches the front end alone, and asks it to stop by SIGTERM. It runs the configuration that
lies in the run folder, and ends with 0, with 2 for wrong input, or with 1.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
from typing import Any

from seed_acme import config as config_lib
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme.programs import processes

SINGLE_PROCESS, LOCAL_MT, LOCAL_MP = 'single_process', 'local_mt', 'local_mp'
LAUNCH_TYPES = (LOCAL_MP, LOCAL_MT, SINGLE_PROCESS)
_CLUSTER = 'cluster:'  # and the path of the cluster file: the learner alone, as a process
LOG = processes.LAUNCHER


def start(
  run_dir: run_directory.RunDirectory, launch_type: str, temporary: str, saving_s: float = 0.0
) -> subprocess.Popen:
  """Starts this module as a process in a session of its own; it ends with its parent.

  temporary: folder for what Launchpad and Reverb leave behind. saving_s: how long saving the
  replay memory may take.
  """
  variables = {
    **os.environ,
    'TMPDIR': temporary,
    **processes.environment(processes.LAUNCHER, os.getpid()),
    processes.SAVING_VARIABLE: str(math.ceil(saving_s)),
  }
  with open(run_dir.logs / LOG, 'a') as log:
    return subprocess.Popen(
      [sys.executable, '-m', __name__, str(run_dir.path), launch_type],
      stdin=subprocess.DEVNULL,
      stdout=log,
      stderr=log,
      env=variables,
      start_new_session=True,
    )


def cluster_launch(path: str) -> str:
  """The launch type of a learner whose other nodes are on other hosts."""
  return _CLUSTER + path


def kill(launcher: subprocess.Popen) -> None:
  """Kills its whole process group; harmless after its end."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(launcher.pid, signal.SIGKILL)


def main(argv: list[str]) -> int:
  """Runs to the end; the exit code is the run's."""
  processes.end_with_parent()
  run_dir = run_directory.RunDirectory(run_directory.pathlib.Path(argv[1]))
  launch_type = argv[2]
  if launch_type == SINGLE_PROCESS:
    with processes.reported_failures(run_dir, 'single_process', LOG):
      _run_single_process(saved_config.load(run_dir.config), run_dir)
    return 0
  with processes.reported_failures(run_dir, processes.LAUNCHER, LOG):
    return _launch(saved_config.load(run_dir.config), run_dir, launch_type)


def _run_single_process(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory
) -> None:
  stopped = False

  def stop(*_: object) -> None:
    nonlocal stopped
    stopped = True

  signal.signal(signal.SIGTERM, stop)
  processes.configure_tensorflow(config.learner.tensorflow_threads)
  from seed_acme.programs import single_process  # TensorFlow is configured before it loads

  single_process.run(config, run_dir, should_stop=lambda: stopped)


def _launch(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, launch_type: str
) -> int:
  os.environ['LAUNCHPAD_LOGGING_DIR'] = str(run_dir.logs)  # read when Launchpad is imported
  import absl.flags
  import launchpad as lp

  from seed_acme.programs import distributed
  from seed_acme.programs import node_start

  if launch_type == LOCAL_MT:
    # On the main thread, while SIGTERM still ends this process at once.
    from seed_acme.programs import learner_node  # noqa: F401
  if launch_type.startswith(_CLUSTER):
    from seed_acme.programs.cluster import cluster_file
    from seed_acme.programs.cluster import program as cluster_program

    cluster = cluster_file.load(launch_type.removeprefix(_CLUSTER))
    program = cluster_program.make_part(config, run_dir, cluster, 'learner')
    launch_type = LOCAL_MP
    node_start.mark_several_hosts()
  else:
    program = distributed.make_program(config, run_dir)
  absl.flags.FLAGS(
    [sys.argv[0], f'--lp_termination_notice_secs={node_start.termination_notice_s()}']
  )
  manager = lp.launch(
    program,
    launch_type=launch_type,
    terminal='output_to_files',
    local_resources=distributed.local_resources(os.getpid()),
  )
  # Launchpad's own failure text names no node, so the processes are looked at here.
  workers = [
    (title, worker) for title, group in manager._active_workers.items() for worker in group
  ]
  try:
    manager.wait()
  except BaseException as error:  # SystemExit of a node's thread, too
    _report_lost_processes(run_dir, workers)
    processes.report_failure(run_dir, processes.LAUNCHER, processes.describe(error), LOG)
    manager.wait(raise_error=False)  # the failure has set off the stop of the other nodes
  # Launchpad takes no notice of nodes that fail while the program stops.
  failure = processes.read_failure(run_dir)
  if failure is None:
    return 0
  return processes.USER_ERROR_EXIT if failure['is_user_error'] else processes.FAILURE_EXIT


def _report_lost_processes(
  run_dir: run_directory.RunDirectory, workers: list[tuple[str, Any]]
) -> None:
  """Of the nodes that have ended by now, those that could not say why themselves."""
  for title, worker in workers:
    code = getattr(worker, 'returncode', None)
    if code:
      processes.report_failure(
        run_dir,
        title,
        f'the process was lost: {processes.describe_exit(code)}',
        title,
        is_cause=code < 0,
      )


if __name__ == '__main__':
  sys.exit(main(sys.argv))
