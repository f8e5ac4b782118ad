"""What a run's newest saved replay memory tells of its items, one by one.

Reverb tells no client the priority, age or number of samples of the items in a table, but writes
them into its checkpoints, and a live run saves one every `checkpoint.period_s`. Read here without
Reverb and TensorFlow: Python's own protocol buffers take a minute for a memory of 100,000.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import pathlib
import struct
from typing import Any, NamedTuple
import zlib

import numpy as np

from seed_acme import checkpoint
from seed_acme import types

_ITEMS = 'items.tfrecord'
_ATTEMPTS = 3  # a live run replaces its checkpoints while they are read
_LENGTH, _CHECKSUM = struct.Struct('<QI'), 4  # before and after a record
# Numbers of the fields of Reverb's message `PrioritizedItem`, and of its `inserted_at`.
_KEY, _TABLE, _PRIORITY, _TIMES_SAMPLED, _INSERTED_AT = 1, 2, 5, 6, 7
_SECONDS, _NANOSECONDS = 1, 2
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5  # wire types


@dataclasses.dataclass(frozen=True)
class TableItems:
  """Of one table, all `[N]`.

  keys: uint64. ages_s: since they were inserted, at the moment of the checkpoint.
  """

  keys: np.ndarray
  priorities: np.ndarray
  times_sampled: np.ndarray
  ages_s: np.ndarray


@dataclasses.dataclass(frozen=True)
class SavedItems:
  """Of all tables by name, at time_s (since the epoch), after `updates` of the learner."""

  updates: int
  time_s: float
  tables: dict[str, TableItems]


class NothingSaved(types.UserError):
  """The run has no saved memory that can be read; the text says why."""


class _Item(NamedTuple):
  key: int
  priority: float
  times_sampled: int
  age_s: float


def newest(checkpoints: pathlib.Path) -> SavedItems:
  """Of the newest checkpoint below the folder that has a memory; raises `NothingSaved`."""
  error: Exception | None = None
  for _ in range(_ATTEMPTS):
    folder = newest_folder(checkpoints)
    try:
      return read(folder)
    except (OSError, ValueError) as caught:
      error = caught
  raise NothingSaved(f'{folder} cannot be read ({error})') from error


def newest_folder(checkpoints: pathlib.Path) -> pathlib.Path:
  """Where Reverb's files lie; raises `NothingSaved`."""
  for path in reversed(checkpoint.all_whole(checkpoints)):
    try:
      folder = checkpoint.replay_folder(path)
    except types.UserError as error:
      raise NothingSaved(str(error)) from error
    if folder is not None:
      return folder
  raise NothingSaved(
    'no checkpoint of the run has a replay memory: none was saved yet, it is a '
    'queue, which never is, or checkpoint.replay is False'
  )


def read(folder: pathlib.Path) -> SavedItems:
  """Of a folder that Reverb wrote, within a checkpoint. OSError or ValueError if it is damaged."""
  path = folder / _ITEMS
  time_s = path.stat().st_mtime
  found: dict[str, list[_Item]] = {}
  try:
    for record in _records(path):
      fields = dict(_fields(record))
      moment = dict(_fields(fields[_INSERTED_AT]))
      inserted_s = moment.get(_SECONDS, 0) + 1e-9 * moment.get(_NANOSECONDS, 0)
      found.setdefault(bytes(fields[_TABLE]).decode(), []).append(
        _Item(  # zeros are left out
          fields[_KEY],
          fields.get(_PRIORITY, 0.0),
          fields.get(_TIMES_SAMPLED, 0),
          max(0.0, time_s - inserted_s),
        )
      )
  except (IndexError, KeyError, struct.error, zlib.error) as error:
    raise ValueError(f'{path} is damaged ({type(error).__name__}: {error})') from error
  return SavedItems(
    int(folder.parent.name.partition('.')[0]),
    time_s,
    {table: _columns(items) for table, items in found.items()},
  )


def _columns(items: list[_Item]) -> TableItems:
  keys, priorities, times_sampled, ages_s = zip(*items)
  return TableItems(
    np.array(keys, np.uint64), np.array(priorities), np.array(times_sampled), np.array(ages_s)
  )


def _records(path: pathlib.Path) -> Iterator[memoryview]:
  """Of a TFRecord file compressed with zlib."""
  data = memoryview(zlib.decompress(path.read_bytes()))
  at = 0
  while at < len(data):
    length, _ = _LENGTH.unpack_from(data, at)
    at += _LENGTH.size
    if at + length + _CHECKSUM > len(data):
      raise IndexError('a record is cut short')
    yield data[at : at + length]
    at += length + _CHECKSUM


def _fields(message: memoryview | bytes) -> Iterator[tuple[int, Any]]:
  """(number, value) of a protocol buffer's fields: integers, doubles, or bytes."""
  at = 0
  while at < len(message):
    tag, at = _varint(message, at)
    kind = tag & 7
    if kind == _VARINT:
      value, at = _varint(message, at)
      yield tag >> 3, value
    elif kind == _FIXED_64:
      yield tag >> 3, struct.unpack_from('<d', message, at)[0]
      at += 8
    elif kind == _BYTES:
      length, at = _varint(message, at)
      yield tag >> 3, message[at : at + length]
      at += length
    elif kind == _FIXED_32:
      at += 4
    else:
      raise ValueError(f'wire type {kind} is not known')


def _varint(message: memoryview | bytes, at: int) -> tuple[int, int]:
  """The number that starts at a byte, and where the next one does."""
  value = shift = 0
  while True:
    byte = message[at]
    at += 1
    value |= (byte & 0x7F) << shift
    if byte < 0x80:
      return value, at
    shift += 7
