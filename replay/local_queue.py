"""The queue of the single-process program, in which one thread inserts and samples.

That thread never waits for room or for a batch, so the queue needs none of what Reverb does between
processes and threads. It costs a tenth of a queue of tickets.
"""

from __future__ import annotations

import collections
import time

import numpy as np
import reverb

from seed_acme import types
from seed_acme.replay import connection
from seed_acme.replay import local_items
from seed_acme.replay import table_counts
from seed_acme.replay import tables
from seed_acme.tensors import aligned

_SHOWN_PERIOD_S = 0.2


class LocalQueue:
  """Hands out each item once, in the order of insertion, with the keys 0, 1, 2, ...

  The caller bounds it: an insert needs room, and a sample needs a whole batch.
  """

  def __init__(self, batch_size: int, unrolls_per_item: int):
    """batch_size: unrolls in a sample."""
    self._num_items = batch_size // unrolls_per_item  # in a sample
    self._unrolls_per_item = unrolls_per_item
    self._items: collections.deque[local_items.Parts] = collections.deque()
    self._num_inserted = 0
    self._probabilities = aligned.to_tensor(np.ones(batch_size))
    self.num_received = 0  # samples that the learner has taken

  @property
  def num_fetched(self) -> int:
    """Samples taken out of the queue: those that the learner has received."""
    return self.num_received

  def insert(self, parts: local_items.Parts) -> None:
    """Adds one item."""
    self._items.append(parts)
    self._num_inserted += 1

  def next(self, timeout_s: float) -> types.Sample:
    """Removes the oldest items and returns them as one sample, `[L, B, ...]`, at once."""
    del timeout_s
    first = self._num_inserted - len(self._items)
    parts = [part for _ in range(self._num_items) for part in self._items.popleft()]
    keys = np.arange(first, first + self._num_items, dtype=np.uint64)
    keys = np.repeat(keys, self._unrolls_per_item)
    self.num_received += 1
    return types.Sample(local_items.merged(parts), aligned.to_tensor(keys), self._probabilities)

  def counts(self, timeout_s: int = 0) -> table_counts.TableCounts:
    """Returns the counts of items, as `table_counts.read` does; needs no time."""
    del timeout_s
    size = len(self._items)
    return table_counts.TableCounts(self._num_inserted, self._num_inserted - size, size)

  def start(self) -> None:
    """See `Prefetcher`; there is no thread here."""

  def stop(self) -> None:
    """See `Prefetcher`."""


Keeper = local_items.LocalItems | LocalQueue  # of a queue's items in the learner's process


class ShownCounts:
  """Shows the counts of a queue to `seed-acme inspect`, as the item of a Reverb table."""

  def __init__(self, queue: LocalQueue, server_address: str, max_items: int):
    self._queue = queue
    self._server_address = server_address
    self._max_items = max_items
    self._writer: reverb.TrajectoryWriter | None = None
    self._next_s = 0.0

  def update(self) -> None:
    """Writes the counts if those in the table are older than a fifth of a second."""
    now = time.monotonic()
    if now < self._next_s:
      return
    self._next_s = now + _SHOWN_PERIOD_S
    if self._writer is None:
      client = connection.client(self._server_address)
      self._writer = client.trajectory_writer(num_keep_alive_refs=1)
    counts = np.array([*self._queue.counts(), self._max_items], np.int64)
    self._writer.append({tables.COUNTS: counts})
    newest = {tables.COUNTS: self._writer.history[tables.COUNTS][-1]}
    self._writer.create_item(tables.UNROLLS, 1.0, newest)

  def stop(self) -> None:
    """Closes the connection."""
    if self._writer is not None:
      self._writer.close()
