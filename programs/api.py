"""The library's front door: what `import seed_acme` offers. Heavy imports happen on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seed_acme import config as config_lib
from seed_acme.programs import processes

if TYPE_CHECKING:
  import launchpad as lp

  from seed_acme.programs import evaluation


def make_program(config: config_lib.ExperimentConfig, run_dir: str | None = None) -> lp.Program:
  """The Launchpad program, for people who call `lp.launch` themselves.

  Makes (or resumes) the run folder; None = `runs/<config>/<time>`. Raises `UserError` for
  a configuration that cannot work.
  """
  from seed_acme import saved_config
  from seed_acme.programs import distributed
  from seed_acme.programs import training_run

  folder = training_run.prepare(config, run_dir)
  saved_config.save(config, folder.config)
  processes.clear_failure(folder)
  return distributed.make_program(config, folder)


def train(
  config: config_lib.ExperimentConfig,
  run_dir: str | None = None,
  launch: str = 'local_mp',
  max_restarts: int = 0,
) -> dict[str, Any]:
  """Trains and returns the summary, with the run folder as `run_dir`.

  Raises `UserError` for wrong input and `training_run.TrainingFailed` for anything else.
  """
  from seed_acme.programs import training_run

  return training_run.train(config, run_dir, launch, max_restarts)


def load_policy(run_dir: str, greedy: bool = True, seed: int = 0) -> evaluation.LoadedPolicy:
  """The policy of a run's newest checkpoint: observation in, action out."""
  processes.set_tensorflow_defaults()
  from seed_acme.programs import evaluation

  return evaluation.load_policy(run_dir, greedy, seed)


def evaluate(
  run_dir: str,
  num_episodes: int = 100,
  seed: int | None = None,
  video: str = '',
  greedy: bool = True,
) -> dict[str, Any]:
  """Plays episodes from a run's newest checkpoint; mean, standard error, length.

  video: file, .mp4 or .gif, that shows one more episode; '' = none. greedy: False = as in training.
  """
  processes.set_tensorflow_defaults()
  from seed_acme.programs import evaluation

  return evaluation.evaluate(run_dir, num_episodes, seed, video, greedy=greedy)
