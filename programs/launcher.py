"""The launcher's process: `python -m seed_acme.programs.launcher RUN_DIR LAUNCH_TYPE`.

The front end starts it in a session of its own, so that Ctrl-C reaches the front end alone, and
asks it to stop by SIGTERM. The launcher runs the configuration that lies in the run folder. It ends
with 0, with 2 for wrong input, or with 1.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme.programs.front_end import launch_limits
from seed_acme.programs.front_end import launcher_process
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import leftovers
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_LAST_WORDS_S = 5.0  # in which a learner host that is alive hears that another is not, and ends


def main(argv: list[str]) -> int:
  """Runs to the end; the exit code is the run's."""
  processes.end_with_parent()
  signals.leave_hangup_to_parent()
  run_dir = run_directory.RunDirectory(pathlib.Path(argv[1]))
  launch_type = argv[2]
  if launch_type == launcher_process.SINGLE_PROCESS:
    with processes.reported_failures(run_dir, 'single_process', processes.LAUNCHER):
      _run_single_process(_config(run_dir, launch_type), run_dir)
    return 0
  with processes.reported_failures(run_dir, processes.LAUNCHER, processes.LAUNCHER):
    return _launch(_config(run_dir, launch_type), run_dir, launch_type)


def _config(run_dir: run_directory.RunDirectory, launch_type: str) -> config_lib.ExperimentConfig:
  config = saved_config.load(run_dir.config)
  if not launch_type.startswith(launcher_process.CLUSTER):
    launch_limits.check(layout_lib.Layout.of(config), launch_type)
  return config


def _run_single_process(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory
) -> None:
  stopped = False

  def stop(*_: object) -> None:
    nonlocal stopped
    stopped = True

  signal.signal(signal.SIGTERM, stop)
  run_dir.set_phase('loading TensorFlow')
  descriptors.prepare()
  processes.load_tensorflow()
  processes.configure_tensorflow(config.learner.tensorflow_threads)
  from seed_acme.programs import single_process  # TensorFlow is configured before it loads
  from seed_acme.utils import devices

  devices.configure(config.learner)
  single_process.run(
    config,
    run_dir,
    should_stop=lambda: stopped,
    on_hanging_close=lambda is_saved: leftovers.leave(0 if is_saved else processes.FAILURE_EXIT),
  )
  if left := leftovers.describe():
    run_dir.add_notice(f'{left} still ran after the environments were closed, and ended')


def _launch(
  config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, launch_type: str
) -> int:
  run_dir.set_phase('loading Launchpad')
  os.environ['LAUNCHPAD_LOGGING_DIR'] = str(run_dir.logs)  # read when Launchpad is imported
  import absl.flags
  import launchpad as lp

  from seed_acme.programs.graph import program_graph
  from seed_acme.programs.nodes import host

  if launch_type.startswith(launcher_process.CLUSTER):
    from seed_acme.programs.cluster import cluster_file
    from seed_acme.programs.cluster import program as cluster_program

    index, _, path = launch_type.removeprefix(launcher_process.CLUSTER).partition(':')
    cluster = cluster_file.load(path)
    program = cluster_program.make_part(config, run_dir, cluster, 'learner', int(index))
    launch_type = launcher_process.LOCAL_MP
  else:
    program = program_graph.make_program(config, run_dir)
  absl.flags.FLAGS([sys.argv[0], f'--lp_termination_notice_secs={host.termination_notice_s()}'])
  manager = lp.launch(
    program,
    launch_type=launch_type,
    terminal='output_to_files',
    local_resources=program_graph.local_resources(os.getpid()),
  )
  # Launchpad's own failure text names no node, so the processes are looked at here.
  workers = [
    (title, worker) for title, group in manager._active_workers.items() for worker in group
  ]
  has_failed = False
  try:
    manager.wait()
  except BaseException as error:  # SystemExit of a node's thread, too
    has_failed = True
    _report_lost_processes(run_dir, workers)
    processes.report_failure(
      run_dir, processes.LAUNCHER, processes.describe(error), processes.LAUNCHER
    )
    _end_hanging_learners([worker for title, worker in workers if title.startswith('learner')])
    manager.wait(raise_error=False)  # the failure has set off the stop of the other nodes
  # Launchpad takes no notice of nodes that fail while the program stops.
  failure = processes.read_failure(run_dir)
  if failure is None:  # or there was no room to write it down
    return processes.FAILURE_EXIT if has_failed else 0
  return processes.USER_ERROR_EXIT if failure['is_user_error'] else processes.FAILURE_EXIT


def _report_lost_processes(
  run_dir: run_directory.RunDirectory, workers: list[tuple[str, Any]]
) -> None:
  """Of the nodes that have ended by now, those that could not say why themselves."""
  for title, worker in workers:
    # Asked now: Launchpad may have seen first how another node ended for want of this one.
    code = worker.poll() if isinstance(worker, subprocess.Popen) else None
    if code:
      processes.report_failure(
        run_dir,
        title,
        f'the process was lost: {processes.describe_exit(code)}',
        title,
        # SIGTERM comes from Launchpad, which stops the others once it has seen a failure.
        is_cause=code < 0 and code != -signal.SIGTERM,
      )


def _end_hanging_learners(learners: list[Any]) -> None:
  """Of several hosts of which one has failed, the others can neither learn nor save. One that hangs
  hears no signal, and would be waited for as long as a checkpoint may take."""
  if len(learners) == 1 or not any(getattr(worker, 'returncode', None) for worker in learners):
    return
  end_s = time.monotonic() + _LAST_WORDS_S
  for worker in learners:
    try:
      worker.wait(max(0.0, end_s - time.monotonic()))
    except subprocess.TimeoutExpired:
      worker.kill()


if __name__ == '__main__':
  try:
    code = main(sys.argv)
  except SystemExit as exit_:
    code = int(exit_.code or 0)
  if sys.argv[2] == launcher_process.SINGLE_PROCESS:
    leftovers.end(code)
  sys.exit(code)
