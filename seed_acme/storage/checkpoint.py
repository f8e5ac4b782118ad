"""Checkpoints: a folder of arrays and a record with their checksums.

A checkpoint is `checkpoints/<updates>/arrays.npz`, and `meta.json` with the SHA-256 of both. The
newest checkpoint that was saved with its replay memory also has `replay`, Reverb's own checkpoint
of the memory at the same moment. Each checkpoint names the best one known when it was saved; the
best one is kept however old it is. Imports no TensorFlow: the front end checks a checkpoint before
anything starts.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
from typing import Any, NamedTuple

import numpy as np

from seed_acme import types
from seed_acme.files import local
from seed_acme.progress import counting
from seed_acme.storage import array_files
from seed_acme.storage import checkpoint_meta

ARRAYS = 'arrays.npz'
META = 'meta.json'
REPLAY = 'replay'
FORMAT = 2
REPLACED = '.replaced'  # complete; kept until its successor at the same update is in place
_DAMAGED = '.damaged'  # renamed, so that the run can resume from the one before it


class Damaged(types.Failure):
  """A checkpoint is not as it was written."""


class Forged(Damaged, types.UserError):
  """A checkpoint has correct checksums, but its content was not written by this program."""


class Best(NamedTuple):
  """The checkpoint of a run with the highest evaluation return.

  evaluation_return: mean over the last `num_episodes` evaluation episodes when it was scored.
  """

  updates: int
  evaluation_return: float
  num_episodes: int


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """A loaded checkpoint. arrays: by name. meta: JSON values, such as counters and resumptions.

  The counters also determine the position in every schedule. The number of resumptions is the
  random state: all streams (environments, actions) are keyed by it, the seed and the run ids.
  """

  path: pathlib.Path
  arrays: dict[str, np.ndarray]
  meta: dict[str, Any]

  @property
  def counts(self) -> counting.Counts:
    """The run's counters. Raises `Forged` if they are missing."""
    return counting.Counts(**self._of_meta('counts'))

  @property
  def resumptions(self) -> int:
    """How often the run had been resumed. Raises `Forged` if this is missing."""
    return self._of_meta('resumptions')

  @property
  def best(self) -> Best | None:
    """The run's best checkpoint that was known when this one was saved."""
    return best_of(self.meta)

  def _of_meta(self, key: str) -> Any:
    if key not in self.meta:
      raise Forged(f'{self.path / META} was not saved by a run: its "meta" lacks "{key}"')
    return self.meta[key]


def best_of(meta: dict[str, Any]) -> Best | None:
  """Returns the run's best checkpoint from the `meta` of any of its checkpoints."""
  return Best(**meta['best']) if meta.get('best') else None


def part_of_host(index: int) -> str:
  """Returns the folder of one learner host's memory within the saved replay memory of several."""
  return f'host_{index}'


def replay_folder(path: pathlib.Path) -> pathlib.Path | None:
  """Returns the folder of the replay memory of the checkpoint at `path`; None if it has none.

  Raises `Damaged` if its files have other sizes than when they were saved, because Reverb
  itself reads a truncated file without an error.
  """
  folder = path / REPLAY
  if not folder.is_dir():
    return None
  try:
    expected = json.loads((path / META).read_text())['replay_bytes']
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise Damaged(
      f'{path / META} does not tell what {folder.name} held ({type(error).__name__}: {error})'
    ) from error
  if local.sizes(folder) != expected:
    raise Damaged(
      f'{folder} is not whole: it holds {local.sizes(folder)} bytes, and {expected} were saved'
    )
  return folder


def meta_digest(meta: Any) -> str:
  """Returns the SHA-256 that a checkpoint records of its `meta`, JSON values."""
  return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def all_whole(folder: pathlib.Path) -> list[pathlib.Path]:
  """Returns the completely written checkpoints, unchecked, oldest first."""
  if not folder.is_dir():
    return []
  whole = [p for p in folder.iterdir() if p.name.removesuffix(REPLACED).isdigit() and p.is_dir()]
  return sorted(whole, key=lambda p: (p.name.removesuffix(REPLACED), p.suffix != REPLACED))


def updates_of(path: pathlib.Path) -> int:
  """Returns the update at which the checkpoint at `path`, one of `all_whole`, was saved."""
  return int(path.name.removesuffix(REPLACED))


def at(folder: pathlib.Path, updates: int) -> pathlib.Path | None:
  """Returns the checkpoint of this update, unchecked; None if there is none."""
  found = [path for path in all_whole(folder) if updates_of(path) == updates]
  return found[-1] if found else None


def newest(folder: pathlib.Path) -> pathlib.Path | None:
  """Returns the newest checkpoint, unchecked; None if there is none."""
  checkpoints = all_whole(folder)
  return checkpoints[-1] if checkpoints else None


def load(path: pathlib.Path) -> Checkpoint:
  """Reads and checks a checkpoint; raises `Damaged`, which says what is wrong with it."""
  record = _checked_record(path)
  try:
    digest = local.digest(path / ARRAYS)
  except OSError as error:
    raise Damaged(f'{path} is no readable checkpoint ({error})') from error
  if digest != record['sha256']:
    raise Damaged(f'{path / ARRAYS} is corrupt (its checksum differs)')
  try:
    return Checkpoint(path, array_files.read(path / ARRAYS), record['meta'])
  except OSError as error:
    raise Damaged(f'{path} is no readable checkpoint ({error})') from error
  except array_files.UNREADABLE as error:
    raise Forged(
      f'{path / ARRAYS} holds no arrays ({type(error).__name__}: {error}), though its checksum is '
      'right: it was not saved by seed_acme'
    ) from error


def load_meta(path: pathlib.Path) -> dict[str, Any]:
  """Returns the `meta` of a checkpoint without reading its arrays; raises like `load`."""
  return _checked_record(path)['meta']


def _checked_record(path: pathlib.Path) -> dict[str, Any]:
  try:
    record = json.loads((path / META).read_text())
    if record['format'] != FORMAT:
      raise types.UserError(f'{path} has format {record["format"]}, this version reads {FORMAT}')
    if not isinstance(record['sha256'], str):
      raise Damaged(f'{path / META} tells no checksum of the arrays')
    if meta_digest(record['meta']) != record['meta_sha256']:
      raise Damaged(f'{path / META} was changed (its checksum differs)')
  except array_files.UNREADABLE as error:
    raise Damaged(f'{path} is no readable checkpoint ({error})') from error
  if fault := checkpoint_meta.wrong(record['meta']):
    raise Forged(f'{path / META} was not saved by seed_acme: {fault}')
  return record


def load_newest(
  folder: pathlib.Path, tell: Callable[[str], None] = lambda text: None
) -> Checkpoint | None:
  """Loads the newest undamaged checkpoint; None if there is none at all.

  tell: called with a line about each that is skipped. Raises `Damaged` if all are damaged.
  """
  reasons: list[Damaged] = []
  skipped: list[str] = []
  for path in reversed(all_whole(folder)):
    try:
      found = load(path)
    except Damaged as error:
      if path.exists():  # and was not deleted by a live run meanwhile
        reasons.append(error)
        skipped.append(path.name)
      continue
    for name, reason in zip(skipped, reasons):
      tell(f'checkpoint {name} is skipped for {path.name}, the newest that is whole: {reason}')
    return found
  if reasons:
    raise type(reasons[0])(
      f'no checkpoint in {folder} is whole ({len(reasons)} tried): {reasons[0]}; '
      'restore one from a copy, or start a new run'
    )
  return None


def set_damaged_aside(folder: pathlib.Path) -> list[str]:
  """Renames the checkpoints that `load_newest` skips, so that none comes before those that the run
  will save; returns a message about each. The newest whole one gets the replay memory of the newest
  of them that has one, because the memory is saved anew each time, and older ones are deleted. If
  all are damaged, which `load_newest` reports, it does nothing."""
  told: list[str] = []
  try:
    found = load_newest(folder, told.append)
  except Damaged:
    return []
  if told and found is not None:
    saved = all_whole(folder)
    damaged = saved[saved.index(found.path) + 1 :]
    told += _rescued_memory(found.path, damaged)
    for path in damaged:
      aside = path.with_name(f'{path.name}{_DAMAGED}')
      shutil.rmtree(aside, ignore_errors=True)
      os.rename(path, aside)
  return told


def _rescued_memory(to: pathlib.Path, damaged: list[pathlib.Path]) -> list[str]:
  """Moves the newest replay memory of damaged checkpoints, oldest first, to a whole one; returns
  messages. A kill in between repeats it at the next start, because the donor keeps its own until
  the end."""
  for donor in reversed(damaged):
    try:
      memory = replay_folder(donor)
      if memory is None:
        continue
      _copy_memory(memory, to)
      shutil.rmtree(memory, ignore_errors=True)
      return [f'checkpoint {to.name} gets the replay memory of {donor.name}, which is whole']
    except Damaged:
      continue
    except OSError as error:  # a full disk, for instance
      kept = f'{donor.name}{_DAMAGED}'
      return [f'the replay memory of {donor.name} cannot be copied ({error}): it stays in {kept}']
  return []


def _copy_memory(memory: pathlib.Path, to: pathlib.Path) -> None:
  """Gives a checkpoint a replay memory in place of its own, which stays if there is an error."""
  with local.replacing(to / REPLAY, _replace_folder) as new, local.replacing(to / META) as meta:
    shutil.copytree(memory, new, copy_function=local.link_or_copy)
    record = json.loads((to / META).read_text())
    meta.write_text(json.dumps({**record, 'replay_bytes': local.sizes(memory)}))
    local.sync_all(new)
    local.sync(meta)
  local.sync(to)


def _replace_folder(source: pathlib.Path, target: pathlib.Path) -> None:
  shutil.rmtree(target, ignore_errors=True)
  os.rename(source, target)


def num_resumptions(folder: pathlib.Path) -> int:
  """Returns how often the run with these checkpoints will have been resumed if it starts now."""
  saved = load_newest(folder)
  return 0 if saved is None else saved.resumptions + 1


def load_found(path: pathlib.Path, tell: Callable[[str], None] = lambda text: None) -> Checkpoint:
  """Loads what `find` finds, but the newest undamaged one of a run; tell: see `load_newest`."""
  found = find(path)
  newest_whole = None if found == path else load_newest(found.parent, tell)
  return newest_whole or load(found)


def find(path: pathlib.Path) -> pathlib.Path:
  """Returns the checkpoint that `path`, a run folder, its `checkpoints` or a checkpoint, means."""
  for folder in (path, path / 'checkpoints'):
    if (folder / META).is_file():
      return folder
    found = newest(folder)
    if found is not None:
      return found
  raise types.UserError(
    f'no checkpoint in {path}: give a run folder that has one '
    '(they are written every checkpoint.period_s seconds and at the end)'
  )
