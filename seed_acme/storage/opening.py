"""Opens the run or checkpoint that a user names: on this machine, in a bucket, or packed."""

from __future__ import annotations

from collections.abc import Callable
import functools
import os
import pathlib
import tempfile

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.files import symbolic_links
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import packed_run
from seed_acme.storage import run_directory


def open_run(path: str | os.PathLike[str]) -> run_directory.RunDirectory:
  """Opens the run folder at `path` (symbolic links are followed); `UserError` if it is none.

  For a run in a bucket, or in a zip that `seed-acme pack` wrote, this is a copy with all that is
  needed to read it, which exists as long as this process.
  """
  url = os.fspath(path) if bucket.is_url(path) else ''
  if not url and os.path.isfile(path):
    return packed_run.opened(pathlib.Path(path))
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


def find_checkpoint(
  run: run_directory.RunDirectory, choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST
) -> pathlib.Path:
  """Finds the checkpoint of a run that a user chooses; unchecked.

  choice: `newest`, `best`, the number of an update, or the path of a checkpoint, which need not be
  of this run. Raises `types.UserError`, which names the existing checkpoints.
  """
  if checkpoint_choice.is_path(choice):
    path = os.fspath(choice)  # type: ignore[arg-type]
    return _fetched_checkpoint(path) if bucket.is_url(path) else _at_path(path, run)
  if choice == checkpoint_choice.NEWEST:
    return checkpoint.find(run.path)
  if run.bucket:
    from seed_acme.storage import bucket_fetch  # loads TensorFlow

    return bucket_fetch.fetch_chosen(run, choice)
  return checkpoint_choice.find(run.checkpoints, choice, run.name)


def _at_path(path: str, run: run_directory.RunDirectory) -> pathlib.Path:
  if not os.path.isdir(path):
    raise types.UserError(
      f'{run.name} has no checkpoint {path!r}: give {checkpoint_choice.NEWEST}, '
      f'{checkpoint_choice.BEST}, the number of an update, or the folder of a checkpoint. '
      f'{checkpoint_choice.there_are(run.checkpoints)}'
    )
  return checkpoint.find(pathlib.Path(path))


@functools.cache
def _fetched_checkpoint(url: str) -> pathlib.Path:
  from seed_acme.storage import bucket_fetch  # loads TensorFlow

  return bucket_fetch.fetch_checkpoint(url, local.lasting_folder())


def load_of_run(
  run: run_directory.RunDirectory,
  choice: checkpoint_choice.Choice = checkpoint_choice.NEWEST,
  tell: Callable[[str], None] = lambda text: None,
) -> checkpoint.Checkpoint:
  """Reads and checks what `find_checkpoint` finds; for `newest`, the newest undamaged one.

  tell: called with a line about each that is skipped. Raises `checkpoint.Damaged` if any other
  choice is damaged.
  """
  if choice == checkpoint_choice.NEWEST:
    return checkpoint.load_found(run.path, tell)
  return checkpoint.load(find_checkpoint(run, choice))


def load_checkpoint(name: str) -> checkpoint.Checkpoint:
  """Loads what `initial_checkpoint` names: a run, packed or not, or a checkpoint; a bucket's, too.

  For a run, this is its newest undamaged checkpoint, or that of `RUN@best`, `RUN@NUMBER` or
  `RUN@newest`.
  """
  place, choice = checkpoint_choice.split(name)
  if bucket.is_url(place):
    return _load_from_bucket(place, choice)
  if os.path.isfile(place):
    return load_of_run(packed_run.opened(pathlib.Path(place)), choice)
  if choice == checkpoint_choice.NEWEST:
    return checkpoint.load_found(pathlib.Path(place))
  folder = pathlib.Path(place)
  checkpoints = folder / 'checkpoints' if (folder / 'checkpoints').is_dir() else folder
  return checkpoint.load(checkpoint_choice.find(checkpoints, choice, place))


def _load_from_bucket(url: str, choice: str) -> checkpoint.Checkpoint:
  from seed_acme.storage import bucket_fetch  # loads TensorFlow

  with tempfile.TemporaryDirectory(prefix='seed_acme_') as folder:
    if choice == checkpoint_choice.NEWEST:
      return checkpoint.load(bucket_fetch.fetch_checkpoint(url, pathlib.Path(folder)))
    run = bucket_fetch.fetch(url, pathlib.Path(folder, 'run'), with_replay=False)
    return checkpoint.load(bucket_fetch.fetch_chosen(run, choice))
