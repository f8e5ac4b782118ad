"""Fetches a run, or one of its checkpoints, from a bucket; see `bucket_copy.py` for the layout."""

from __future__ import annotations

import functools
import os
import pathlib
import shutil

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import local
from seed_acme.storage import checkpoint
from seed_acme.storage import checkpoint_choice
from seed_acme.storage import run_directory

CHECKPOINTS = 'checkpoints'
REPLAY = 'replay'  # folder in a checkpoint
AGAIN = '.again'
META = 'meta.json'
FETCHED = (
  'config.json',
  'environment.json',
  'status.json',
  'summary.json',
  'cpu_seconds.json',
  'metrics.csv',
  'wandb.json',
  'mlflow.json',
)


def fetch(url: str, path: pathlib.Path, with_replay: bool = True) -> run_directory.RunDirectory:
  """Makes the local folder of a run at `path`, with all files needed to resume or read it."""
  run = run_directory.RunDirectory(path, bucket=url)
  for folder in (run.logs, run.checkpoints, run.tensorboard):
    folder.mkdir(parents=True, exist_ok=True)
  for name in FETCHED:
    bucket.download(bucket.join(url, name), path / name)
  there, whole = bucket.join(url, CHECKPOINTS), whole_checkpoints(url)
  fetched = []
  for name in reversed(whole):  # until one is readable, which usually is the newest
    fetched.append(name)
    if _reads_back(_fetch_checkpoint(bucket.join(there, name), run.checkpoints, with_replay)):
      break
  if with_replay:
    best = _of_update(whole, checkpoint_choice.best_updates(run.checkpoints))
    for name in {*with_replay_memory(there, whole)[-1:], *best}.difference(fetched):
      _fetch_checkpoint(bucket.join(there, name), run.checkpoints, with_replay)
  return run


def fetch_chosen(run: run_directory.RunDirectory, choice: checkpoint_choice.Choice) -> pathlib.Path:
  """Adds the best checkpoint, or that of an update, to a copy of a run that `fetch` has made.

  Raises `types.UserError`, which names the existing checkpoints, if it does not exist.
  """
  whole, best = whole_checkpoints(run.bucket), checkpoint_choice.best_updates(run.checkpoints)
  wanted = best if choice == checkpoint_choice.BEST else checkpoint_choice.number(choice)
  names = _of_update(whole, wanted)
  if not names:
    there = [updates_of(name) for name in whole]
    raise checkpoint_choice.absent(choice, run.bucket, wanted, there, best)
  here = run.checkpoints / names[-1].removesuffix(AGAIN)
  if here.is_dir():
    return here
  url = bucket.join(run.bucket, CHECKPOINTS, names[-1])
  return _fetch_checkpoint(url, run.checkpoints, with_replay=False)


def _of_update(names: list[str], updates: int | None) -> list[str]:
  """Returns the last of the checkpoints of this update, or none."""
  return [name for name in names if updates_of(name) == updates][-1:]


def _reads_back(path: pathlib.Path) -> bool:
  try:
    checkpoint.load(path)
  except checkpoint.Damaged:
    return False
  return True


@functools.cache
def fetch_for_reading(url: str) -> pathlib.Path:
  """Fetches a copy of the run, without its replay memory, that exists as long as this process."""
  return fetch(url, local.lasting_folder(), with_replay=False).path


def fetch_checkpoint(url: str, folder: pathlib.Path) -> pathlib.Path:
  """Copies the checkpoint that the URL of a run or of a checkpoint refers to."""
  if bucket.read_bytes(bucket.join(url, META)) is None:
    whole = whole_checkpoints(url)
    if not whole:
      raise types.UserError(f'no checkpoint in {url}: give a run folder that has one')
    for name in reversed(whole):
      path = _fetch_checkpoint(bucket.join(url, CHECKPOINTS, name), folder, with_replay=False)
      if _reads_back(path):
        break
    return path
  return _fetch_checkpoint(url, folder, with_replay=False)


def _fetch_checkpoint(url: str, folder: pathlib.Path, with_replay: bool) -> pathlib.Path:
  name = url.rpartition('/')[2].removesuffix(AGAIN)
  partial, target = folder / f'{name}.partial', folder / name
  parts = bucket.files_below(url)
  if not parts:
    raise _gone(url)
  for part in parts:
    if with_replay or '/' not in part:
      (partial / part).parent.mkdir(parents=True, exist_ok=True)
      if not bucket.download(bucket.join(url, part), partial / part):
        raise _gone(bucket.join(url, part))
  shutil.rmtree(target, ignore_errors=True)  # a damaged copy of this update
  os.rename(partial, target)
  return target


def _gone(url: str) -> bucket.BucketError:
  return bucket.BucketError(f'cannot read {url}: it is gone; try again')


def whole_checkpoints(url: str) -> list[str]:
  """Returns the names of complete checkpoints, oldest first."""
  folder = bucket.join(url, CHECKPOINTS)
  found = [name for name in bucket.names(folder) if name.removesuffix(AGAIN).isdigit()]
  return [name for name in found if META in bucket.names(bucket.join(folder, name))]


def updates_of(name: str) -> int:
  """Returns the update at which a checkpoint, one of `whole_checkpoints`, was saved."""
  return int(name.removesuffix(AGAIN))


def with_replay_memory(folder: str, names: list[str]) -> list[str]:
  """Returns those checkpoints in `folder` that contain a replay memory."""
  return [name for name in names if REPLAY in bucket.names(bucket.join(folder, name))]
