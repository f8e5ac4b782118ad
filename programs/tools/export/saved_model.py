"""A trained policy as a TensorFlow SavedModel, which acts without this package.

The caller passes in and receives the state that `loaded_policy.LoadedPolicy` would keep between two
calls: a flat dict of tensors with the recurrent state and the previous action.
"""

from __future__ import annotations

import os
import pathlib
import shutil
from typing import Any

import tensorflow as tf

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import disk
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
  folder = _checked(out)
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
  _write(policy, readme.text(record, policy), folder)
  return record


def _checked(out: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the folder to write, checked before the policy is loaded, which takes seconds."""
  if bucket.is_url(out):
    raise types.UserError(
      f'out ({os.fspath(out)}) is in a bucket: give a local folder and copy that'
    )
  folder = pathlib.Path(out).absolute()
  if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
    raise types.UserError(f'out ({folder}) is there already: give a new or an empty folder')
  return folder


def _write(policy: exported_policy.ExportedPolicy, readme: str, folder: pathlib.Path) -> None:
  """Writes the whole folder and then renames it, so that a folder that exists is complete."""
  temporary = folder.with_name(f'.{folder.name}.{os.getpid()}')
  try:
    folder.parent.mkdir(parents=True, exist_ok=True)
    tf.saved_model.save(policy.module(), str(temporary), signatures=policy.signatures())
    (temporary / 'README.md').write_text(readme, encoding='utf-8')
    os.replace(temporary, folder)
  except tf.errors.OpError as error:  # raised by TensorFlow's own file system
    raise types.Failure(f'cannot write {folder}: {error.message}') from error
  except OSError as error:
    kind = types.Failure if disk.is_full(error) else types.UserError
    raise kind(
      f'cannot write {folder}: {error.strerror or error}; check the path and its permissions'
    ) from error
  finally:
    shutil.rmtree(temporary, ignore_errors=True)
