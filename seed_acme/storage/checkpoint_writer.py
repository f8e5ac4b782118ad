"""Writes the checkpoints of a run, and deletes old ones.

A checkpoint is written under another name and renamed when it is complete, and renamed again before
it is deleted, so a kill at any moment leaves only complete checkpoints.
"""

from __future__ import annotations

from collections.abc import Collection
import json
import os
import pathlib
import shutil
from typing import Any

import numpy as np

from seed_acme.files import local
from seed_acme.storage import checkpoint

_DIGITS = 12
_PARTIAL = '.partial'  # being written or deleted


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

  keep: number of checkpoints to keep. In addition, the newest one with a replay memory is kept, and
  those of the updates in `keep_also`.
  replay: folder with a saved replay memory, on the same disk. It is moved into the checkpoint, and
  older checkpoints lose theirs. Without it, the memory that was saved last remains in its
  checkpoint. If that checkpoint is of the same update, the new one gets the memory.
  Raises `OSError`, for instance on a full disk, and then deletes what it had written.
  """
  path = folder / f'{updates:0{_DIGITS}d}'
  partial = folder / f'{path.name}{_PARTIAL}'
  for left in folder.glob(f'*{_PARTIAL}'):  # left by a kill
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
  try:
    # Before the old memory is deleted. A file system may otherwise delete it, but not yet have the
    # contents of the new one, when the power fails.
    local.sync(folder)
  except OSError:
    return path  # saved; the next one deletes what is old
  if replaced.exists():
    _remove(replaced)
  _drop_old(folder, keep, keep_also)
  return path


def _replaced(path: pathlib.Path) -> pathlib.Path:
  return path.with_name(f'{path.name}{checkpoint.REPLACED}')


def _write(
  path: pathlib.Path,
  partial: pathlib.Path,
  updates: int,
  arrays: dict[str, np.ndarray],
  meta: dict[str, Any],
  replay: pathlib.Path | None,
) -> None:
  """Writes into `partial` what is later renamed to `path`."""
  partial.mkdir(parents=True)
  with open(partial / checkpoint.ARRAYS, 'wb') as file:
    np.savez(file, **arrays)
  if replay is not None:
    os.rename(replay, partial / checkpoint.REPLAY)
  else:
    _keep_replay(path if path.exists() else _replaced(path), partial)
  record = {
    'format': checkpoint.FORMAT,
    'updates': updates,
    'sha256': local.digest(partial / checkpoint.ARRAYS),
    'replay_bytes': local.sizes(partial / checkpoint.REPLAY),
    'meta_sha256': checkpoint.meta_digest(meta),
    'meta': meta,
  }
  (partial / checkpoint.META).write_text(json.dumps(record))
  local.sync_all(partial)  # Reverb does not


def _drop_old(folder: pathlib.Path, keep: int, keep_also: Collection[int]) -> None:
  """Deletes all checkpoints except the newest `keep`, those of the updates in `keep_also`, and the
  one with the newest memory; older ones lose their memory."""
  whole = checkpoint.all_whole(folder)
  with_replay = [path for path in whole if (path / checkpoint.REPLAY).is_dir()]
  for old in with_replay[:-1]:
    shutil.rmtree(old / checkpoint.REPLAY, ignore_errors=True)
  for old in whole[:-keep]:
    if old not in with_replay[-1:] and checkpoint.updates_of(old) not in keep_also:
      _remove(old)


def _keep_replay(old: pathlib.Path, new: pathlib.Path) -> None:
  """Gives a checkpoint the memory of the one that it replaces, unless that is damaged.

  It uses hard links, or copies if the disk has none, so that each of them stays complete if the
  other is not written or deleted.
  """
  try:
    replay = checkpoint.replay_folder(old)
  except checkpoint.Damaged:
    return
  if replay is not None:
    shutil.copytree(replay, new / checkpoint.REPLAY, copy_function=local.link_or_copy)


def _remove(path: pathlib.Path) -> None:
  partial = path.with_name(f'{path.name}{_PARTIAL}')
  os.rename(path, partial)
  shutil.rmtree(partial)
