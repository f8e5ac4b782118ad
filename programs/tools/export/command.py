"""`seed-acme export`: the policy of a run as a TensorFlow SavedModel."""

from __future__ import annotations

import dataclasses

import tyro

from seed_acme import types
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.system import processes
from seed_acme.storage import checkpoint_choice


@dataclasses.dataclass(frozen=True)
class ExportArguments:
  """Write the policy of a run's checkpoint as a SavedModel, which needs TensorFlow alone.

  run_dir: folder of the run, or a zip that `seed-acme pack` has written.
  out: folder to write, new or empty.
  checkpoint: newest, best (by evaluation return), the number of its update, or its path.
  sampled: sample actions from the policy, as in training, instead of acting greedily.
  trust_run_dir: run the code outside seed_acme, and the Python, that the run folder names.
  json: print JSON.
  """

  run_dir: tyro.conf.Positional[str] = ''
  out: str = ''
  checkpoint: str = checkpoint_choice.NEWEST
  sampled: bool = False
  trust_run_dir: bool = False
  json: bool = False


def export(arguments: ExportArguments) -> command_lib.Answer:
  """Exports the policy; raises `UserError`."""
  if not arguments.run_dir or not arguments.out:
    raise types.UserError(
      'export needs a run folder and --out=FOLDER: seed-acme export runs/latest --out=policy'
    )
  processes.load_tensorflow()
  from seed_acme.programs.tools.export import saved_model  # takes seconds

  record = saved_model.export(
    arguments.run_dir,
    arguments.out,
    greedy=not arguments.sampled,
    trust=arguments.trust_run_dir,
    choice=arguments.checkpoint,
  )
  return command_lib.Answer(
    record,
    f'SavedModel: {record["path"]}, of the checkpoint at '
    f'{record["checkpoint_agent_steps"]:,} steps. Its README.md says how to call it',
  )
