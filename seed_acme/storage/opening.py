"""Opens what a user names: the folder of a run, or a checkpoint, on this machine or in a bucket."""

from __future__ import annotations

import os
import pathlib
import tempfile

from seed_acme import types
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.storage import symbolic_links
from seed_acme.utils import bucket


def open_run(path: str | os.PathLike[str]) -> run_directory.RunDirectory:
  """The run folder at `path` (symbolic links followed); `UserError` if it is none.

  Of one in a bucket a copy of what it takes to read it, which lasts as long as this process.
  """
  url = os.fspath(path) if bucket.is_url(path) else ''
  folder = _fetched(url) if url else pathlib.Path(path).resolve()
  symbolic_links.refuse(folder, run_directory.OURS)
  run = run_directory.RunDirectory(folder, bucket=url)
  if not folder.is_dir():
    raise types.UserError(f'{path} is no folder: give the folder of a run, such as runs/latest')
  if not run.holds_run():
    raise types.UserError(
      f'{path} is not the folder of a run (it has no config.json): '
      'give the folder of a run, such as runs/latest'
    )
  return run


def _fetched(url: str) -> pathlib.Path:
  from seed_acme.storage import bucket_fetch  # loads TensorFlow

  return bucket_fetch.fetch_for_reading(url)


def load_checkpoint(path: str) -> checkpoint.Checkpoint:
  """Reads a run folder's newest whole checkpoint, or the one named, in a bucket too."""
  if not bucket.is_url(path):
    return checkpoint.load_found(pathlib.Path(path))
  from seed_acme.storage import bucket_fetch  # loads TensorFlow

  with tempfile.TemporaryDirectory(prefix='seed_acme_') as folder:
    return checkpoint.load(bucket_fetch.fetch_checkpoint(path, pathlib.Path(folder)))
