"""`--launch=single_process`: everything in one thread of the launcher's process."""

from __future__ import annotations

from typing import NoReturn

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.programs.front_end import launches
from seed_acme.programs.launches import here
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import leftovers
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_directory
from seed_acme.storage import run_locks


class Launch(here.Here):
  """The launch without Launchpad."""

  command = (launches.SINGLE_PROCESS,)
  node = 'single_process'

  def refuse(self, layout: layout_lib.Layout) -> None:
    """Refuses several learner hosts."""
    if layout.has_several_learners:
      raise types.UserError(
        f'num_learner_hosts ({len(layout.learners)}) needs --launch=local_mp, where each host is '
        'a process; with single_process set it to 1'
      )

  def lead(self, config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> int:
    """Trains in this thread; returns the exit code."""
    stopped = False

    def stop() -> None:
      nonlocal stopped
      stopped = True

    signals.terminate(stop)
    run.set_phase('loading TensorFlow')
    descriptors.prepare()
    processes.load_tensorflow()
    processes.configure_tensorflow(config.learner.tensorflow_threads)
    from seed_acme.parallel import devices
    from seed_acme.programs import single_process  # loads TensorFlow, which is configured by now

    devices.configure(config.learner)
    with run_locks.learns(run, is_chief=True):
      single_process.run(
        config,
        run,
        should_stop=lambda: stopped,
        on_hanging_close=lambda is_saved: leftovers.leave(
          0 if is_saved else processes.FAILURE_EXIT
        ),
      )
    if left := leftovers.describe():
      run.add_notice(f'{left} still ran after the environments were closed, and ended')
    return 0

  def end(self, code: int) -> NoReturn:
    """Ends the process, along with threads and programs that an environment has left running."""
    leftovers.end(code)
