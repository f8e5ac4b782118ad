"""Checkpoints: a folder of arrays and a record that vouches for them.

A checkpoint is `checkpoints/<updates>/arrays.npz`, and `meta.json` with the SHA-256 of both. One of
them also has `replay`, which Reverb wrote of the replay memory at the same moment. It is the newest
checkpoint that was saved with its memory. Each names the best one, as far as it is known, which
stays however old it is. A checkpoint is written under another name and renamed when it is whole. It
is renamed again before it is deleted. So a kill at any moment leaves only whole checkpoints.
Imports no TensorFlow: the front end checks a checkpoint before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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

_ARRAYS = 'arrays.npz'
_META = 'meta.json'
_REPLAY = 'replay'
_FORMAT = 2
_DIGITS = 12
_PARTIAL = '.partial'  # being written or deleted
_DAMAGED = '.damaged'  # set aside, so that the run can go on from the one before it
_REPLACED = '.replaced'  # whole, until its successor at the same update is in place


class Damaged(types.Failure):
  """A checkpoint does not read back as it was written."""


class Forged(Damaged, types.UserError):
  """A checkpoint reads back as somebody has written it, and that is nothing that is saved here."""


class Best(NamedTuple):
  """The checkpoint of a run with the highest evaluation return.

  evaluation_return: the mean of the last `num_episodes` evaluation episodes, when it was scored.
  """

  updates: int
  evaluation_return: float
  num_episodes: int


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """arrays: by name. meta: JSON values, the counters and the number of resumptions.

  The counters are also the place in every schedule. The number of resumptions is the random
  state: all streams (environments, actions) are keyed by the seed, the run ids and it.
  """

  path: pathlib.Path
  arrays: dict[str, np.ndarray]
  meta: dict[str, Any]

  @property
  def counts(self) -> counting.Counts:
    """How far the run was. Raises `Forged` where it is not said."""
    return counting.Counts(**self._of_meta('counts'))

  @property
  def resumptions(self) -> int:
    """How often it had been resumed. Raises `Forged` where it is not said."""
    return self._of_meta('resumptions')

  @property
  def best(self) -> Best | None:
    """The best checkpoint of the run that was known when this one was saved."""
    return best_of(self.meta)

  def _of_meta(self, key: str) -> Any:
    if key not in self.meta:
      raise Forged(f'{self.path / _META} was not saved by a run: its "meta" lacks "{key}"')
    return self.meta[key]


def best_of(meta: dict[str, Any]) -> Best | None:
  """What the `meta` of a checkpoint says of the best one of its run."""
  return Best(**meta['best']) if meta.get('best') else None


def save(
  folder: pathlib.Path,
  updates: int,
  arrays: dict[str, np.ndarray],
  meta: dict[str, Any],
  keep: int,
  replay: pathlib.Path | None = None,
  keep_also: Collection[int] = (),
) -> pathlib.Path:
  """Writes the checkpoint `folder/<updates>` and deletes old ones.

  keep: number of checkpoints to keep. The newest one with a replay memory is kept beyond that, and
  so are those of the updates in `keep_also`.
  replay: folder with a saved replay memory, on the same disk. It is moved into the checkpoint, and
  older checkpoints lose theirs. Without it the memory that was saved last stays in its checkpoint.
  If that checkpoint is of the same update, the new one takes the memory over.
  Raises `OSError`, for instance on a full disk, and then deletes what it had written.
  """
  path = folder / f'{updates:0{_DIGITS}d}'
  partial = folder / f'{path.name}{_PARTIAL}'
  for left in folder.glob(f'*{_PARTIAL}'):  # by a kill
    shutil.rmtree(left)
  try:
    _write(path, partial, updates, arrays, meta, replay)
  except OSError:
    shutil.rmtree(partial, ignore_errors=True)
    raise
  replaced = _replaced(path)
  if path.exists():  # saved twice at the same update: the later one counts
    if replaced.exists():
      _remove(replaced)
    os.rename(path, replaced)
  os.rename(partial, path)
  if replaced.exists():
    _remove(replaced)
  _drop_old(folder, keep, keep_also)
  return path


def _replaced(path: pathlib.Path) -> pathlib.Path:
  return path.with_name(f'{path.name}{_REPLACED}')


def _write(
  path: pathlib.Path,
  partial: pathlib.Path,
  updates: int,
  arrays: dict[str, np.ndarray],
  meta: dict[str, Any],
  replay: pathlib.Path | None,
) -> None:
  """Into `partial` what is to lie at `path`."""
  partial.mkdir(parents=True)
  with open(partial / _ARRAYS, 'wb') as file:
    np.savez(file, **arrays)
    _sync(file)
  if replay is not None:
    os.rename(replay, partial / _REPLAY)
  else:
    _keep_replay(path if path.exists() else _replaced(path), partial)
  record = {
    'format': _FORMAT,
    'updates': updates,
    'sha256': local.digest(partial / _ARRAYS),
    'replay_bytes': local.sizes(partial / _REPLAY),
    'meta_sha256': _meta_digest(meta),
    'meta': meta,
  }
  with open(partial / _META, 'w') as file:
    json.dump(record, file)
    _sync(file)


def _drop_old(folder: pathlib.Path, keep: int, keep_also: Collection[int]) -> None:
  """All but the newest `keep`, those of the updates in `keep_also`, and the one that has the newest
  memory; older ones lose theirs."""
  whole = all_whole(folder)
  with_replay = [path for path in whole if (path / _REPLAY).is_dir()]
  for old in with_replay[:-1]:
    shutil.rmtree(old / _REPLAY, ignore_errors=True)
  for old in whole[:-keep]:
    if old not in with_replay[-1:] and updates_of(old) not in keep_also:
      _remove(old)


def _keep_replay(old: pathlib.Path, new: pathlib.Path) -> None:
  """Gives a checkpoint the memory of the one that it replaces, unless that is not whole.

  By hard links, or copies where the disk has none, so that either of them is whole if the other
  is not written or deleted.
  """
  try:
    replay = replay_folder(old)
  except Damaged:
    return
  if replay is not None:
    shutil.copytree(replay, new / _REPLAY, copy_function=_link)


def _link(source: str, target: str) -> None:
  try:
    os.link(source, target)
  except OSError:
    shutil.copy2(source, target)


def part_of_host(index: int) -> str:
  """Where, within the saved replay memory, that of one of several learner hosts lies."""
  return f'host_{index}'


def replay_folder(path: pathlib.Path) -> pathlib.Path | None:
  """Where the replay memory of the checkpoint at `path` lies; None if it has none.

  Raises `Damaged` if its files have other sizes than when they were saved: Reverb
  itself reads a file that was cut short without complaint.
  """
  folder = path / _REPLAY
  if not folder.is_dir():
    return None
  try:
    expected = json.loads((path / _META).read_text())['replay_bytes']
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise Damaged(
      f'{path / _META} does not tell what {folder.name} held ({type(error).__name__}: {error})'
    ) from error
  if local.sizes(folder) != expected:
    raise Damaged(
      f'{folder} is not whole: it holds {local.sizes(folder)} bytes, and {expected} were saved'
    )
  return folder


def _remove(path: pathlib.Path) -> None:
  partial = path.with_name(f'{path.name}{_PARTIAL}')
  os.rename(path, partial)
  shutil.rmtree(partial)


def _sync(file: Any) -> None:
  file.flush()
  os.fsync(file.fileno())


def _meta_digest(meta: Any) -> str:
  return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def all_whole(folder: pathlib.Path) -> list[pathlib.Path]:
  """Checkpoints that were written to their end, not checked, oldest first."""
  if not folder.is_dir():
    return []
  whole = [p for p in folder.iterdir() if p.name.removesuffix(_REPLACED).isdigit() and p.is_dir()]
  return sorted(whole, key=lambda p: (p.name.removesuffix(_REPLACED), p.suffix != _REPLACED))


def updates_of(path: pathlib.Path) -> int:
  """The update at which the checkpoint at `path`, one of `all_whole`, was saved."""
  return int(path.name.removesuffix(_REPLACED))


def at(folder: pathlib.Path, updates: int) -> pathlib.Path | None:
  """The checkpoint of this update, not checked; None if there is none."""
  found = [path for path in all_whole(folder) if updates_of(path) == updates]
  return found[-1] if found else None


def newest(folder: pathlib.Path) -> pathlib.Path | None:
  """The newest checkpoint, not checked; None if there is none."""
  checkpoints = all_whole(folder)
  return checkpoints[-1] if checkpoints else None


def load(path: pathlib.Path) -> Checkpoint:
  """Reads and checks; raises `Damaged` naming what is wrong with the file."""
  record = _checked_record(path)
  try:
    digest = local.digest(path / _ARRAYS)
  except OSError as error:
    raise Damaged(f'{path} is no readable checkpoint ({error})') from error
  if digest != record['sha256']:
    raise Damaged(f'{path / _ARRAYS} is corrupt (its checksum differs)')
  try:
    return Checkpoint(path, array_files.read(path / _ARRAYS), record['meta'])
  except OSError as error:
    raise Damaged(f'{path} is no readable checkpoint ({error})') from error
  except array_files.UNREADABLE as error:
    raise Forged(
      f'{path / _ARRAYS} holds no arrays ({type(error).__name__}: {error}), though its checksum is '
      'right: it was not saved by seed_acme'
    ) from error


def load_meta(path: pathlib.Path) -> dict[str, Any]:
  """The `meta` of a checkpoint, whose arrays are not read; raises as `load` does."""
  return _checked_record(path)['meta']


def _checked_record(path: pathlib.Path) -> dict[str, Any]:
  try:
    record = json.loads((path / _META).read_text())
    if record['format'] != _FORMAT:
      raise types.UserError(f'{path} has format {record["format"]}, this version reads {_FORMAT}')
    if not isinstance(record['sha256'], str):
      raise Damaged(f'{path / _META} tells no checksum of the arrays')
    if _meta_digest(record['meta']) != record['meta_sha256']:
      raise Damaged(f'{path / _META} was changed (its checksum differs)')
  except array_files.UNREADABLE as error:
    raise Damaged(f'{path} is no readable checkpoint ({error})') from error
  if fault := checkpoint_meta.wrong(record['meta']):
    raise Forged(f'{path / _META} was not saved by seed_acme: {fault}')
  return record


def load_newest(
  folder: pathlib.Path, tell: Callable[[str], None] = lambda text: None
) -> Checkpoint | None:
  """The newest checkpoint that is whole; None if there is none at all.

  tell: is told of each that is skipped. Raises `Damaged` if there are some and none is whole.
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
  """Renames the checkpoints that `load_newest` skips, so that none stands before those that the
  run will save; what to say of each. Where none is whole, which `load_newest` says, nothing is."""
  told: list[str] = []
  try:
    found = load_newest(folder, told.append)
  except Damaged:
    return []
  if told and found is not None:
    saved = all_whole(folder)
    for path in saved[saved.index(found.path) + 1 :]:
      aside = path.with_name(f'{path.name}{_DAMAGED}')
      shutil.rmtree(aside, ignore_errors=True)
      os.rename(path, aside)
  return told


def num_resumptions(folder: pathlib.Path) -> int:
  """How often the run whose checkpoints these are will have been resumed when it starts now."""
  saved = load_newest(folder)
  return 0 if saved is None else saved.resumptions + 1


def load_found(path: pathlib.Path, tell: Callable[[str], None] = lambda text: None) -> Checkpoint:
  """As `find`, but the newest that is whole; tell: as in `load_newest`."""
  found = find(path)
  newest_whole = None if found == path else load_newest(found.parent, tell)
  return newest_whole or load(found)


def find(path: pathlib.Path) -> pathlib.Path:
  """The checkpoint that a user means by a run folder, its `checkpoints`, or one itself."""
  for folder in (path, path / 'checkpoints'):
    if (folder / _META).is_file():
      return folder
    found = newest(folder)
    if found is not None:
      return found
  raise types.UserError(
    f'no checkpoint in {path}: give a run folder that has one '
    '(they are written every checkpoint.period_s seconds and at the end)'
  )
