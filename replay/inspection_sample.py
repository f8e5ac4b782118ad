"""Draws items of a table for inspection, and saves them as files.

Drawing changes every table except our mirror: a queue loses the item, and a ratio-limited table
admits more inserts. Callers of `draw` must have made sure that this is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import pathlib
import queue
import threading
from typing import Any
import zipfile

import numpy as np
import reverb
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.replay import connection
from seed_acme.replay import inspection

_DRAWS_PER_ITEM = 8  # at most, when distinct items are wanted from a sampler that repeats them
_GRACE_S = 10.0  # beyond the time-out, for the transfer of one item


@dataclasses.dataclass(frozen=True)
class Item:
  """One drawn item. key: a random identifier, which says nothing about the order of items.

  times_sampled: draws so far, including this one. probability: probability of this draw. leaves:
  arrays by name, `[U, L, ...]` in our tables.
  """

  key: int
  priority: float
  times_sampled: int
  probability: float
  leaves: dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Range:
  """Range of one leaf. minimum, maximum, mean: over all numbers but NaN; None if there are none."""

  shape: tuple[int, ...]
  dtype: str
  minimum: float | None
  maximum: float | None
  mean: float | None
  num_nan: int


def draw(address: str, table: inspection.Table, num_items: int, timeout_s: float) -> list[Item]:
  """Draws up to `num_items` items; fewer if the table hands out no more within `timeout_s`.

  Items are distinct if the table is harmless to sample, because it can then be sampled more often.
  Any other table is sampled exactly `num_items` times. Raises `UserError` if no item comes.
  """
  distinct = table.is_harmless_to_sample
  num_draws = num_items * (_DRAWS_PER_ITEM if distinct else 1)
  drawn = _draws(address, table, num_draws, timeout_s)
  items: list[Item] = []
  keys: set[int] = set()
  for item in _within(drawn, timeout_s + _GRACE_S, table.name):
    if not distinct or item.key not in keys:
      items.append(item)
      keys.add(item.key)
    if len(items) == num_items or distinct and len(keys) >= table.limiter.size:
      break
  if not items:
    raise types.UserError(_nothing_comes(table, f'within {timeout_s:g} s'))
  return items


def _nothing_comes(table: inspection.Table, when: str) -> str:
  size, least = table.limiter.size, table.limiter.min_size_to_sample
  reason = (
    f'it holds {size} items, of which it needs {least}'
    if size < least
    else f'of its {size} items as many were sampled as its rate limiter admits'
  )
  return f'table {table.name} let no sample out {when} ({reason}): try again once more is inserted'


def _draws(
  address: str, table: inspection.Table, num_draws: int, timeout_s: float
) -> Iterator[Item]:
  """Draws through Reverb's dataset if possible, and otherwise through its client.

  The dataset refuses items that are whole sequences if the signature is that of one step, which old
  writers may insert. A refused item counts as drawn.
  """
  if table.leaves is not None:
    num_drawn = 0
    try:
      for item in _with_dataset(address, table, num_draws, timeout_s):
        num_drawn += 1
        yield item
      return
    except tf.errors.InvalidArgumentError:
      if num_drawn:
        raise
  yield from _with_client(address, table, num_draws)


def _with_dataset(
  address: str, table: inspection.Table, num_draws: int, timeout_s: float
) -> Iterator[Item]:
  """Draws through Reverb's dataset; the server drops the request after `timeout_s`, but no item."""
  assert table.leaves is not None
  names = [leaf.name for leaf in table.leaves]
  dataset = reverb.TrajectoryDataset(
    address,
    table.name,
    dtypes=[tf.as_dtype(leaf.dtype) for leaf in table.leaves],
    shapes=[tf.TensorShape(leaf.shape) for leaf in table.leaves],
    max_in_flight_samples_per_worker=1,
    num_workers_per_iterator=1,
    rate_limiter_timeout_ms=int(timeout_s * 1e3),
    max_samples=num_draws,
  )
  for sample in dataset:
    info = tree.map_structure(lambda x: x.numpy().item(), sample.info)
    yield _item(info, names, [x.numpy() for x in sample.data])


def _with_client(address: str, table: inspection.Table, num_draws: int) -> Iterator[Item]:
  """Draws through Reverb's client, which needs no signature.

  `Client.sample` has no time-out, and a request that is left waiting takes an item even after
  its client is gone, so no more items are requested than the rate limiter admits now.
  """
  admitted = table.limiter.until_samples_block().at_least
  num_draws = num_draws if admitted is None else min(num_draws, admitted)
  if not num_draws:
    raise types.UserError(_nothing_comes(table, 'now'))
  for sample in connection.client(address).sample(table.name, num_draws, emit_timesteps=False):
    names = (
      [leaf.name for leaf in table.leaves]
      if table.leaves is not None
      else [f'leaf_{i}' for i in range(len(sample.data))]
    )
    yield _item(sample.info, names, list(sample.data))


def _item(info: Any, names: list[str], arrays: list[Any]) -> Item:
  leaves = {}
  for name, array in zip(names, arrays):
    array = np.asarray(array)
    leaves[name] = array.astype('S') if array.dtype == object else array  # strings
  return Item(
    int(info.key), float(info.priority), int(info.times_sampled), float(info.probability), leaves
  )


def _within(items: Iterator[Item], timeout_s: float, name: str) -> Iterator[Item]:
  """Yields items as long as each comes within `timeout_s` of the one before.

  The items are drawn in another thread, because Reverb waits for ever for a server that has died,
  and cannot be interrupted by signals.
  """
  received: queue.Queue[Item | BaseException | None] = queue.Queue(maxsize=1)
  is_over = threading.Event()

  def run() -> None:
    last: BaseException | None = None
    try:
      for item in items:
        received.put(item)
        if is_over.is_set():
          return
    except BaseException as error:  # raised again by the thread that waits
      last = error
    received.put(last)

  threading.Thread(target=run, name='inspection', daemon=True).start()
  try:
    while True:
      try:
        item = received.get(timeout=timeout_s)
      except queue.Empty:
        raise inspection.NoAnswer(
          f'no sample of table {name} came within {timeout_s:g} s: check that the server still runs'
        ) from None
      if item is None:
        return
      if isinstance(item, (tf.errors.OpError, RuntimeError)):
        raise types.UserError(f'table {name} cannot be sampled: {_first_line(item)}') from item
      if isinstance(item, BaseException):
        raise item
      yield item
  finally:
    is_over.set()
    while not received.empty():  # let the thread see that it is over
      received.get()


def _first_line(error: BaseException) -> str:
  return str(getattr(error, 'message', error)).strip().partition('\n')[0]


def value_range(array: np.ndarray) -> Range:
  """Returns the range of one leaf."""
  dtype = str(array.dtype)
  if array.dtype.kind not in 'biuf' or not array.size:
    return Range(array.shape, dtype, None, None, None, 0)
  is_nan = np.isnan(array) if array.dtype.kind == 'f' else np.zeros(array.shape, bool)
  numbers = array[~is_nan]
  if not numbers.size:
    return Range(array.shape, dtype, None, None, None, int(is_nan.sum()))
  with np.errstate(invalid='ignore', over='ignore'):  # the mean of both infinities
    mean = float(numbers.mean(dtype=np.float64))
  return Range(
    array.shape, dtype, float(numbers.min()), float(numbers.max()), mean, int(is_nan.sum())
  )


def save(items: list[Item], folder: pathlib.Path) -> list[pathlib.Path]:
  """Saves one NumPy archive per item: its leaves by name, and `info/key`, `info/priority` ..."""
  folder.mkdir(parents=True, exist_ok=True)
  paths = []
  for i, item in enumerate(items):
    path = folder / f'item_{i:03}_{item.key}.npz'
    # Not `np.savez`, because it rejects a leaf named `file`.
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
      for name, array in _members(item).items():
        with archive.open(f'{name}.npy', 'w', force_zip64=True) as member:
          np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    paths.append(path)
  return paths


def _members(item: Item) -> dict[str, Any]:
  return {
    **{_member(name): array for name, array in item.leaves.items()},
    'info/key': np.uint64(item.key),
    'info/priority': np.float64(item.priority),
    'info/times_sampled': np.int32(item.times_sampled),
    'info/probability': np.float64(item.probability),
  }


def _member(name: str) -> str:
  """Returns a file name inside the archive that cannot leave the folder where it is unpacked,
  whatever name a foreign server gives."""
  return '/'.join(part for part in name.split('/') if part not in ('', '.', '..')) or 'leaf'
