"""A trained policy as a TensorFlow SavedModel, which acts without this package.

The caller passes in and receives the state that `loaded_policy.LoadedPolicy` would keep between two
calls: a flat dict of tensors with the recurrent state and the previous action.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import tensorflow as tf

from seed_acme import types
from seed_acme.files import disk
from seed_acme.files import local
from seed_acme.programs.tools.export import exported_policy
from seed_acme.programs.tools.export import readme
from seed_acme.programs.tools.reports import evaluation
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import opening


def export(
  run_dir: str,
  out: str | os.PathLike[str],
  greedy: bool = True,
  trust: bool = False,
  choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST,
) -> dict[str, Any]:
  """Implements `seed_acme.export_policy`, which documents it."""
  folder = local.new_folder(out)  # first, for what follows takes seconds
  loaded = evaluation.load(run_dir, trust, choice=choice)
  acting, counts = loaded.acting, loaded.counts
  policy = exported_policy.ExportedPolicy(
    acting.spec, acting.agent.acting, loaded.network, greedy, counts.agent_steps
  )
  record = {
    'path': str(folder),
    'run_dir': opening.open_run(run_dir).name,
    'environment': loaded.config.environment.id,
    'checkpoint_updates': counts.updates,
    'checkpoint_agent_steps': counts.agent_steps,
    'greedy': greedy,
  }
  text = readme.text(record, policy, acting.spec, loaded.config.environment)
  _write(policy, text, folder)
  return record


def _write(policy: exported_policy.ExportedPolicy, readme: str, folder: pathlib.Path) -> None:
  """Writes the whole folder and then renames it, so that a folder that exists is complete."""
  try:
    with local.explained(folder, 'write'):
      folder.parent.mkdir(parents=True, exist_ok=True)
      with local.replacing(folder) as temporary:
        temporary.mkdir()  # TensorFlow's error would not say what is wrong
        tf.saved_model.save(policy.module(), str(temporary), signatures=policy.signatures())
        (temporary / 'README.md').write_text(readme, encoding='utf-8')
  except tf.errors.ResourceExhaustedError as error:  # TensorFlow's own file system met ENOSPC
    raise types.Failure(
      f'cannot write {folder}: {disk.describe(folder)}: make room there'
    ) from error
  except tf.errors.OpError as error:
    raise types.Failure(f'cannot write {folder}: {error.message}') from error
