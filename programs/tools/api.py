"""Public functions of `import seed_acme` that play a trained run. Heavy imports happen on use."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from seed_acme.files import local
from seed_acme.programs.system import processes

if TYPE_CHECKING:
  from seed_acme.programs.tools.reports import loaded_policy


def load_policy(
  run_dir: str,
  greedy: bool = True,
  seed: int = 0,
  trust: bool = False,
  checkpoint: str | int | os.PathLike[str] = 'newest',
) -> loaded_policy.LoadedPolicy:
  """Returns the policy of a run's checkpoint, which maps observations, or batches of them, to
  actions.

  run_dir: folder of the run, or a zip that `seed-acme pack` has written.
  seed: of the actions that are sampled. trust: import code outside seed_acme that the run folder
    names.
  checkpoint: `newest`, `best` (by evaluation return), the number of its update, or its path.

  Raises `UserError` if the checkpoint does not exist, with the names of those that do, and
  `Failure` if it is damaged. See `loaded_policy.LoadedPolicy` for the methods.
  """
  processes.load_tensorflow(owns_process=False)
  from seed_acme.programs.tools.reports import evaluation

  with local.explained_length():
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
  """Plays episodes from a run's checkpoint; returns the mean, its standard error and the lengths.

  video: file, .mp4 or .gif, that shows one more episode; '' = none. greedy: False = sample actions
    as in training.
  run_dir, trust, checkpoint, errors: as in `load_policy`.
  """
  processes.load_tensorflow(owns_process=False)
  from seed_acme.programs.tools.reports import evaluation

  with local.explained_length():
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

  out: folder to write, new or empty; a README.md in it says how to call the policy.
  greedy: False = sample actions from the policy, as in training.
  run_dir, trust, checkpoint: as in `load_policy`.
  Returns `path`, `run_dir`, `environment`, `checkpoint_updates`, `checkpoint_agent_steps` and
  `greedy`. Raises `UserError`, and `Failure` for a damaged checkpoint or a full disk.
  """
  processes.load_tensorflow(owns_process=False)
  from seed_acme.programs.tools.export import saved_model

  with local.explained_length():
    return saved_model.export(run_dir, out, greedy, trust, checkpoint)
