"""Reads the items of a run's newest saved replay memory, one by one.

Reverb does not report the priority, age or number of samples of a table's items to its clients, but
writes them into its checkpoints, of which a live run saves one every `checkpoint.period_s`.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import tempfile
from typing import NamedTuple

from google.protobuf import message
import numpy as np
from reverb.cc import schema_pb2
import tensorflow as tf

from seed_acme import types
from seed_acme.storage import checkpoint

_ITEMS = 'items.tfrecord'
_ATTEMPTS = 3  # a live run replaces its checkpoints while they are read


@dataclasses.dataclass(frozen=True)
class TableItems:
  """The items of one table, arrays `[N]`.

  keys: uint64. ages_s: seconds between an item's insertion and the checkpoint.
  """

  keys: np.ndarray
  priorities: np.ndarray
  times_sampled: np.ndarray
  ages_s: np.ndarray


@dataclasses.dataclass(frozen=True)
class SavedItems:
  """Items of all tables by name, at time_s (since the epoch), after `updates` learner updates."""

  updates: int
  time_s: float
  tables: dict[str, TableItems]


class NothingSaved(types.UserError):
  """Raised if the run has no saved memory that can be read; the text says why."""


class _Item(NamedTuple):
  key: int
  priority: float
  times_sampled: int
  age_s: float


def newest(checkpoints: pathlib.Path) -> SavedItems:
  """Reads the newest checkpoint below a folder that has a memory; raises `NothingSaved`."""
  error: Exception | None = None
  for _ in range(_ATTEMPTS):
    folder = newest_folder(checkpoints)
    try:
      return read(folder)
    except (OSError, ValueError) as caught:
      error = caught
  raise NothingSaved(f'{folder} cannot be read ({error})') from error


def newest_folder(checkpoints: pathlib.Path) -> pathlib.Path:
  """Returns the folder of Reverb's files in that checkpoint; raises `NothingSaved`."""
  for path in reversed(checkpoint.all_whole(checkpoints)):
    try:
      folder = checkpoint.replay_folder(path)
    except checkpoint.Damaged as error:
      raise NothingSaved(str(error)) from error
    if folder is not None:
      return folder
  raise NothingSaved(
    'no checkpoint of the run has a replay memory: none was saved yet, it is a '
    'queue, which never is, or checkpoint.replay is False'
  )


def read(folder: pathlib.Path) -> SavedItems:
  """Reads a folder that Reverb wrote within a checkpoint, or a folder of several such folders, one
  per learner host and shard. Raises OSError or ValueError if it is damaged."""
  paths = sorted(folder.rglob(_ITEMS)) or [folder / _ITEMS]
  found: dict[str, list[_Item]] = {}
  with tempfile.TemporaryDirectory() as copies:
    # A live run replaces its checkpoint before many items are read one by one.
    copied = [pathlib.Path(copies, str(i)) for i in range(len(paths))]
    for path, copy in zip(paths, copied):
      shutil.copy2(path, copy)
    times_s = [copy.stat().st_mtime for copy in copied]
    for path, copy, time_s in zip(paths, copied, times_s):
      try:
        _read_into(found, copy, time_s)
      except ValueError as error:
        raise ValueError(f'{path} is damaged ({error})') from error
  return SavedItems(
    int(folder.parent.name.partition('.')[0]),
    max(times_s),
    {table: _columns(items) for table, items in found.items()},
  )


def _read_into(found: dict[str, list[_Item]], path: pathlib.Path, time_s: float) -> None:
  """Adds the items of one server, which were written at time_s, by table."""
  if not path.stat().st_size:
    raise ValueError('it is empty')
  records = tf.data.TFRecordDataset(str(path), compression_type='ZLIB')
  try:
    for record in records.as_numpy_iterator():
      item = schema_pb2.PrioritizedItem.FromString(record)
      found.setdefault(item.table, []).append(_item(item, time_s))
  except (tf.errors.OpError, message.DecodeError) as error:
    raise ValueError(f'{type(error).__name__}: {error}') from error


def _item(item: schema_pb2.PrioritizedItem, time_s: float) -> _Item:
  inserted_s = item.inserted_at.seconds + 1e-9 * item.inserted_at.nanos
  return _Item(item.key, item.priority, item.times_sampled, max(0.0, time_s - inserted_s))


def _columns(items: list[_Item]) -> TableItems:
  keys, priorities, times_sampled, ages_s = zip(*items)
  return TableItems(
    np.array(keys, np.uint64), np.array(priorities), np.array(times_sampled), np.array(ages_s)
  )
