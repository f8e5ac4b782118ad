"""The library's front door: what `import seed_acme` offers. Heavy imports happen on use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import os
from typing import TYPE_CHECKING, Any

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.programs.system import processes

if TYPE_CHECKING:
  import launchpad as lp
  import pandas as pd

  from seed_acme.programs.tools.reports import loaded_policy

UserError, TrainingFailed = types.UserError, types.TrainingFailed


def make_program(config: config_lib.ExperimentConfig, run_dir: str | None = None) -> lp.Program:
  """The Launchpad program, for people who call `lp.launch` themselves.

  Makes (or resumes) the run folder; None = `runs/<config>/<time>`. Raises `UserError` for
  a configuration that cannot work.
  """
  from seed_acme.programs.front_end import lifecycle
  from seed_acme.programs.graph import program_graph
  from seed_acme.storage import saved_config

  folder = lifecycle.prepare(config, run_dir)
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
  """Trains and returns the summary, with the run folder as `run_dir`.

  launch: `local_mp`, `single_process`, or `auto`, which chooses for this machine.
  progress: a line that renews itself on a terminal, plain lines elsewhere, as in a notebook;
    False = neither, only warnings and the choice of `auto` on standard error.
  on_log: called here with each row of metrics that the run logs (`learner.log_period_s`), those
    of its restarts too: `agent_steps`, `wall_s`, `episode/return` and whatever else the row has.
    What it returns, if true, ends the run as Ctrl-C does, with the status `stopped`; what it
    raises does too, and is raised again after that. Meanwhile no progress is shown.

  Raises `UserError` for wrong input and `TrainingFailed` for anything else. Ctrl-C writes a
  checkpoint and the summary, ends all processes and raises `KeyboardInterrupt`; SIGTERM and SIGHUP
  do the same and are then handed on to whoever had them before. Only the main thread notices them.
  """
  from seed_acme.programs.front_end import from_python

  return from_python.train(config, run_dir, launch, max_restarts, progress, on_log)


def load_policy(
  run_dir: str,
  greedy: bool = True,
  seed: int = 0,
  trust: bool = False,
  checkpoint: str | int | os.PathLike[str] = 'newest',
) -> loaded_policy.LoadedPolicy:
  """The policy of a run's checkpoint: observation in, action out, or batches of them.

  run_dir: folder of the run, or a zip that `seed-acme pack` has written.
  seed: of what is drawn at random. trust: import code outside seed_acme that the run folder names.
  checkpoint: `newest`, `best` (by evaluation return), the number of its update, or its path.
  Raises `UserError` for one that is not there, and names those that are.
  See `loaded_policy.LoadedPolicy` for what can be done with it.
  """
  processes.load_tensorflow()
  from seed_acme.programs.tools.reports import evaluation

  return evaluation.load_policy(run_dir, greedy, seed, trust, checkpoint)


def evaluate(
  run_dir: str,
  num_episodes: int = 100,
  seed: int | None = None,
  video: str = '',
  greedy: bool = True,
  trust: bool = False,
  checkpoint: str | int | os.PathLike[str] = 'newest',
) -> dict[str, Any]:
  """Plays episodes from a run's checkpoint; mean, standard error, length.

  video: file, .mp4 or .gif, that shows one more episode; '' = none. greedy: False = as in training.
  run_dir, trust, checkpoint: as in `load_policy`.
  """
  processes.load_tensorflow()
  from seed_acme.programs.tools.reports import evaluation

  return evaluation.evaluate(
    run_dir, num_episodes, seed, video, greedy=greedy, trust=trust, choice=checkpoint
  )


def export_policy(
  run_dir: str,
  out: str | os.PathLike[str],
  greedy: bool = True,
  trust: bool = False,
  checkpoint: str | int | os.PathLike[str] = 'newest',
) -> dict[str, Any]:
  """Writes the policy of a run's checkpoint as a SavedModel, which needs TensorFlow alone.

  out: folder to write, a new or an empty one; its README.md says how the policy is called.
  greedy: False = actions are drawn from the policy, as in training.
  run_dir, trust, checkpoint: as in `load_policy`.
  Returns `path`, `run_dir`, `environment`, `checkpoint_updates`, `checkpoint_agent_steps` and
  `greedy`. Raises `UserError`.
  """
  processes.load_tensorflow()
  from seed_acme.programs.tools.export import saved_model

  return saved_model.export(run_dir, out, greedy, trust, checkpoint)


def load_metrics(
  run_dir: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> pd.DataFrame:
  """What a run has logged: a row for each of metrics.csv, a column a metric.

  run_dir: the folder of a run, which may be training; or several, whose rows then stand in one
    frame, those of a run together, with its folder as given in the column `run`.

  Counts are integers, everything else is a float, NaN where a row lacks the metric. Raises
  `UserError` for a folder that is no run, a run without a row, and where pandas is missing.
  """
  from seed_acme.loggers import frame

  return frame.load(run_dir)
