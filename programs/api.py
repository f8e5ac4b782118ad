"""Public functions of `import seed_acme` that train and read a run. Heavy imports happen on use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import os
from typing import TYPE_CHECKING, Any

from seed_acme import config as config_lib
from seed_acme.programs.system import processes

if TYPE_CHECKING:
  import launchpad as lp
  import pandas as pd


def make_program(config: config_lib.ExperimentConfig, run_dir: str | None = None) -> lp.Program:
  """Returns the Launchpad program, for callers of `lp.launch`.

  Makes (or resumes) the run folder; None = `runs/<config>/<time>`. Raises `UserError` for a
  configuration that cannot work, and for a run that is under way. If two programs for one folder
  are launched at the same time, the second one's learner ends with an error.
  """
  from seed_acme.programs.front_end import lifecycle
  from seed_acme.programs.graph import program_graph
  from seed_acme.storage import run_locks
  from seed_acme.storage import saved_config

  config, folder = lifecycle.prepare(config, run_dir)
  with run_locks.trains(folder):  # refuses a run that is under way
    saved_config.save(config, folder.config)
    processes.clear_failure(folder)
  return program_graph.make_program(config, folder)


def train(
  config: config_lib.ExperimentConfig,
  run_dir: str | None = None,
  launch: str = 'local_mp',
  max_restarts: int = 0,
  *,
  progress: bool = True,
  on_log: Callable[[dict[str, float]], bool | None] | None = None,
) -> dict[str, Any]:
  """Trains and returns the summary, which has the run folder as `run_dir`.

  launch: `local_mp`, `single_process`, or `auto`, which chooses for this machine.
  progress: show a progress line on a terminal, or plain lines elsewhere, as in a notebook; False =
    only warnings and the choice of `auto`, on standard error.
  on_log: called in this thread with each row of metrics that the run logs (`learner.log_period_s`),
    also after a restart: `agent_steps`, `wall_s`, `episode/return` and whatever else the row has.
    If it returns true, the run ends as with Ctrl-C, with the status `stopped`. If it raises, the
    run ends in the same way and the exception is raised again. The progress line is hidden while it
    runs.

  Raises `UserError` for wrong input and `TrainingFailed` for anything else. Ctrl-C writes a
  checkpoint and the summary, ends all processes and raises `KeyboardInterrupt`; SIGTERM and SIGHUP
  do the same and are then passed to the handlers that the caller had installed. Signals are handled
  in the main thread only.
  """
  from seed_acme.programs.front_end import from_python

  return from_python.train(config, run_dir, launch, max_restarts, progress, on_log)


def load_metrics(
  run_dir: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> pd.DataFrame:
  """Returns the metrics that a run has logged as a data frame, a column for each metric.

  run_dir: the folder of a run, which may still be training; or several folders, whose rows are
    concatenated run by run, with the folder as given in the column `run`.

  Counts are integers and everything else is a float, which is NaN where a row lacks the metric.
  Raises `UserError` for a folder that is no run, for a run without a row, and if pandas is missing.
  """
  from seed_acme.loggers import frame

  return frame.load(run_dir)
