"""Checkpoints: a folder of arrays and a record that vouches for them.

`checkpoints/<updates>/arrays.npz`, and `meta.json` with the SHA-256 of both, and in one of them
`replay`, what Reverb wrote of the replay memory at the same moment: the newest one, but where the
memory was not saved with it. The folder is written under another name and renamed when it is whole,
and renamed again before it is deleted, so a kill at any moment leaves only whole checkpoints.
Imports no TensorFlow: the front end checks a checkpoint before anything starts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any
import zipfile

import numpy as np

from seed_acme import bucket
from seed_acme import types

_ARRAYS = 'arrays.npz'
_META = 'meta.json'
_REPLAY = 'replay'
_FORMAT = 1
_DIGITS = 12
_PARTIAL = '.partial'  # being written or deleted
_REPLACED = '.replaced'  # whole, until its successor at the same update is in place


@dataclasses.dataclass(frozen=True)
class Checkpoint:
  """arrays: by name. meta: JSON values, the counters and the number of resumptions.

  The counters are also the place in every schedule. The number of resumptions is the random
  state: all streams (environments, actions) are keyed by the seed, the run ids and it.
  """

  path: pathlib.Path
  arrays: dict[str, np.ndarray]
  meta: dict[str, Any]


def save(
  folder: pathlib.Path,
  updates: int,
  arrays: dict[str, np.ndarray],
  meta: dict[str, Any],
  keep: int,
  replay: pathlib.Path | None = None,
) -> pathlib.Path:
  """Writes `folder/<updates>` and drops all but the newest `keep`.

  replay: a folder on the same disk, which is moved in; older checkpoints lose theirs. Without one,
  the memory saved last stays where it is, however old, and with this update if it was saved at it.
  """
  path = folder / f'{updates:0{_DIGITS}d}'
  partial = folder / f'{path.name}{_PARTIAL}'
  for left in folder.glob(f'*{_PARTIAL}'):  # by a kill
    shutil.rmtree(left)
  partial.mkdir(parents=True)
  with open(partial / _ARRAYS, 'wb') as file:
    np.savez(file, **arrays)
    _sync(file)
  replaced = folder / f'{path.name}{_REPLACED}'
  if replay is not None:
    os.rename(replay, partial / _REPLAY)
  else:
    _keep_replay(path if path.exists() else replaced, partial)
  with open(partial / _META, 'w') as file:
    json.dump(
      {
        'format': _FORMAT,
        'updates': updates,
        'sha256': _digest(partial / _ARRAYS),
        'replay_bytes': _sizes(partial / _REPLAY),
        'meta_sha256': _meta_digest(meta),
        'meta': meta,
      },
      file,
    )
    _sync(file)
  if path.exists():  # saved twice at the same update: the later one counts
    if replaced.exists():
      _remove(replaced)
    os.rename(path, replaced)
  os.rename(partial, path)
  if replaced.exists():
    _remove(replaced)
  _drop_old(folder, keep)
  return path


def _drop_old(folder: pathlib.Path, keep: int) -> None:
  """All but the newest `keep` and the one that has the newest memory; older ones lose theirs."""
  whole = all_whole(folder)
  with_replay = [path for path in whole if (path / _REPLAY).is_dir()]
  for old in with_replay[:-1]:
    shutil.rmtree(old / _REPLAY, ignore_errors=True)
  for old in whole[:-keep]:
    if old not in with_replay[-1:]:
      _remove(old)


def _keep_replay(old: pathlib.Path, new: pathlib.Path) -> None:
  """Gives a checkpoint the memory of the one that it replaces, unless that is not whole.

  By hard links, or copies where the disk has none, so that either of them is whole if the other
  is not written or deleted.
  """
  try:
    replay = replay_folder(old)
  except types.UserError:
    return
  if replay is not None:
    shutil.copytree(replay, new / _REPLAY, copy_function=_link)


def _link(source: str, target: str) -> None:
  try:
    os.link(source, target)
  except OSError:
    shutil.copy2(source, target)


def replay_folder(path: pathlib.Path) -> pathlib.Path | None:
  """Where the replay memory of the checkpoint at `path` lies; None if it has none.

  Raises `types.UserError` if its files have other sizes than when they were saved: Reverb
  itself reads a file that was cut short without complaint.
  """
  folder = path / _REPLAY
  if not folder.is_dir():
    return None
  try:
    expected = json.loads((path / _META).read_text())['replay_bytes']
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise types.UserError(
      f'{path / _META} does not tell what {folder.name} held ({type(error).__name__}: {error})'
    ) from error
  if _sizes(folder) != expected:
    raise types.UserError(
      f'{folder} is not whole: it holds {_sizes(folder)} bytes, and {expected} were saved'
    )
  return folder


def _sizes(folder: pathlib.Path) -> dict[str, int]:
  """Bytes of every file in a folder, which may be missing."""
  return {path.name: path.stat().st_size for path in sorted(folder.glob('*'))}


def _remove(path: pathlib.Path) -> None:
  partial = path.with_name(f'{path.name}{_PARTIAL}')
  os.rename(path, partial)
  shutil.rmtree(partial)


def _sync(file: Any) -> None:
  file.flush()
  os.fsync(file.fileno())


def _digest(path: pathlib.Path) -> str:
  digest = hashlib.sha256()
  with open(path, 'rb') as file:
    while chunk := file.read(1 << 20):
      digest.update(chunk)
  return digest.hexdigest()


def _meta_digest(meta: Any) -> str:
  return hashlib.sha256(json.dumps(meta, sort_keys=True).encode()).hexdigest()


def all_whole(folder: pathlib.Path) -> list[pathlib.Path]:
  """Whole checkpoints, oldest first."""
  if not folder.is_dir():
    return []
  whole = [p for p in folder.iterdir() if p.name.removesuffix(_REPLACED).isdigit() and p.is_dir()]
  return sorted(whole, key=lambda p: (p.name.removesuffix(_REPLACED), p.suffix != _REPLACED))


def newest(folder: pathlib.Path) -> pathlib.Path | None:
  """The newest checkpoint, not checked; None if there is none."""
  checkpoints = all_whole(folder)
  return checkpoints[-1] if checkpoints else None


def load(path: pathlib.Path) -> Checkpoint:
  """Reads and checks; raises `types.UserError` naming what is wrong with the file."""
  try:
    record = json.loads((path / _META).read_text())
    digest = _digest(path / _ARRAYS)
    if record['format'] != _FORMAT:
      raise types.UserError(f'{path} has format {record["format"]}, this version reads {_FORMAT}')
    if digest != record['sha256']:
      raise types.UserError(
        f'{path / _ARRAYS} is corrupt (its checksum differs); delete the '
        f'folder {path.name} to go on from the checkpoint before it'
      )
    if _meta_digest(record['meta']) != record['meta_sha256']:
      raise types.UserError(
        f'{path / _META} was changed (its checksum differs); delete the '
        f'folder {path.name} to go on from the checkpoint before it'
      )
    with np.load(path / _ARRAYS, allow_pickle=False) as file:
      arrays = {name: file[name] for name in file.files}
    return Checkpoint(path, arrays, record['meta'])
  except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
    raise types.UserError(
      f'{path} is no readable checkpoint ({error}); delete the folder '
      f'{path.name} to go on from the one before it'
    ) from error


def num_resumptions(folder: pathlib.Path) -> int:
  """How often the run whose checkpoints these are will have been resumed when it starts now."""
  path = newest(folder)
  return 0 if path is None else load(path).meta['resumptions'] + 1


def load_from(path: str) -> Checkpoint:
  """Reads what a user names: a run folder or a checkpoint, in a bucket too."""
  if not bucket.is_url(path):
    return load(find(pathlib.Path(path)))
  from seed_acme import mirror  # which stands above this module

  with tempfile.TemporaryDirectory(prefix='seed_acme_') as folder:
    return load(mirror.fetch_checkpoint(path, pathlib.Path(folder)))


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
