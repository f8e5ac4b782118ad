"""Writes finished unrolls to Reverb, in its own thread and with a bounded backlog."""

from __future__ import annotations

import collections
from collections.abc import Callable
import threading
import time

import numpy as np
import reverb
import tree

from seed_acme import types
from seed_acme.progress import timing
from seed_acme.progress import waiting
from seed_acme.replay import connection
from seed_acme.replay import local_items
from seed_acme.replay import local_queue
from seed_acme.replay import tables

_FLUSH_TIMEOUT_MS = 500  # how often a writer that waits for room checks for `stop`
_ITEMS_IN_FLIGHT = 1  # items sent but not confirmed; a full table confirms none
_MIRROR_PERIOD_S = 1.0  # between two items of the table for inspection

InitialPriorities = Callable[[types.Unroll], np.ndarray]


class ReplayWriter:
  """Groups unrolls into items of `unrolls_per_item` and inserts them in order.

  `put` never blocks. `has_room` turns false when `backlog` unrolls wait, and the inference server
  then lets training environments wait, so a full table slows the actors down and never fills the
  memory. At most `backlog` plus one unroll of every environment wait here.

  The single-process program calls `write_item` itself; a distributed one calls `start`. A writer
  into a `LocalQueue` has no thread and never waits.
  """

  def __init__(
    self,
    server_address: str,
    unrolls_per_item: int,
    backlog: int,
    initial_priorities: InitialPriorities | None = None,
    items: local_queue.Keeper | None = None,
  ):
    """initial_priorities: unrolls `[U, L, ...]` -> `[U]`; None gives all the same priority.

    items: keeps the items of a queue, of which the table gets tickets, or nothing; None = the table
    gets the items.
    """
    self._initial_priorities = initial_priorities
    self._next_mirrored_s = 0.0
    self._unrolls_per_item = unrolls_per_item
    self._backlog = max(backlog, unrolls_per_item)  # with less, no item would ever be complete
    client = connection.client(server_address)
    self._writer = client.trajectory_writer(num_keep_alive_refs=1)
    self._items = items
    # A writer can hold the columns of only one structure.
    self._mirror_writer = client.trajectory_writer(num_keep_alive_refs=1) if items else self._writer
    self._condition = threading.Condition()
    self._waiting: collections.deque[types.Unroll] = collections.deque()
    self._num_waiting = self._num_written = 0
    self._stopped = False
    self._on_room: Callable[[], None] = lambda: None
    self._on_failure: Callable[[BaseException], None] = lambda error: None
    self._thread: threading.Thread | None = None
    self.timer = timing.PhaseTimer()
    self.num_confirmed = 0  # unrolls that the table has surely taken

  def start(self, on_room: Callable[[], None], on_failure: Callable[[BaseException], None]) -> None:
    """Starts the thread. on_room: called in it after each insertion."""
    self._on_room, self._on_failure = on_room, on_failure
    self._thread = threading.Thread(target=self._run, name='replay_writer', daemon=True)
    self._thread.start()

  def has_room(self) -> bool:
    return self._num_waiting < self._backlog

  def put(self, unrolls: types.Unroll) -> None:
    with self._condition:
      self._waiting.append(unrolls)
      self._num_waiting += unrolls.policy_version.shape[0]
      if self._num_waiting >= self._unrolls_per_item:
        self._condition.notify()

  def has_item(self) -> bool:
    """Whether enough unrolls wait for one item."""
    return self._num_waiting >= self._unrolls_per_item

  def write_item(self, should_stop: Callable[[], bool] = lambda: False) -> None:
    """Inserts one item and waits until the table has taken it, or until `stop` or `should_stop`."""
    with self.timer.phase('insert'):
      parts, priority = self._take_parts(), 1.0
      if isinstance(self._items, local_queue.LocalQueue):
        self._items.insert(parts)
      else:
        held, priority = self._held(parts)
        self._writer.append(held)
        create_item(self._writer, tables.UNROLLS, priority)
      now = time.monotonic()
      if now >= self._next_mirrored_s:
        self._next_mirrored_s = now + _MIRROR_PERIOD_S
        if self._items is not None:
          self._mirror_writer.append(_joined(parts))
        create_item(self._mirror_writer, tables.MIRROR, priority)
    self._num_written += self._unrolls_per_item
    if isinstance(self._items, local_queue.LocalQueue):
      self.num_confirmed = self._num_written
    else:
      self._flush(_ITEMS_IN_FLIGHT if self._thread else 0, should_stop)

  def _held(self, parts: local_items.Parts) -> tuple[types.Nest, float]:
    """Returns what the table gets of an item, and its priority."""
    if isinstance(self._items, local_items.LocalItems):
      return {local_items.TICKET: self._items.keep(parts)}, 1.0
    item = _joined(parts)
    return item, self._priority(item)

  def _priority(self, item: types.Unroll) -> float:
    if self._initial_priorities is None:
      return 1.0
    priority = float(np.mean(self._initial_priorities(item)))
    if not np.isfinite(priority):
      raise FloatingPointError(
        f'the initial priority of an unroll is {priority}: the network that acts gave '
        'values that are not finite'
      )
    if priority < 0:
      raise FloatingPointError(f'the initial priority of an unroll is {priority}: it must be >= 0')
    return priority

  def _take_parts(self) -> list[types.Unroll]:
    """Removes the oldest `unrolls_per_item` unrolls and returns them, in nests `[K, ...]`."""
    wanted = self._unrolls_per_item
    parts: list[types.Unroll] = []
    with self._condition:
      self._num_waiting -= wanted
      while wanted:
        unrolls = self._waiting.popleft()
        size = unrolls.policy_version.shape[0]
        if size > wanted:
          rest = tree.map_structure(lambda x: x[wanted:], unrolls)  # noqa: B023
          self._waiting.appendleft(rest)
          unrolls = tree.map_structure(lambda x: x[:wanted], unrolls)  # noqa: B023
          size = wanted
        parts.append(unrolls)
        wanted -= size
    return parts

  def _flush(self, num_in_flight: int, should_stop: Callable[[], bool]) -> None:
    with (
      self.timer.phase('wait_for_room'),
      waiting.on('room in the replay table, or for its server to confirm an item'),
    ):
      while not self._stopped and not should_stop():
        try:
          self._writer.flush(block_until_num_items=num_in_flight, timeout_ms=_FLUSH_TIMEOUT_MS)
          self.num_confirmed = self._num_written - num_in_flight * self._unrolls_per_item
          return
        except reverb.DeadlineExceededError:
          continue

  def _run(self) -> None:
    try:
      while True:
        with self._condition:
          while not self._stopped and not self.has_item():
            self._condition.wait()
        if self._stopped:
          return
        self.write_item()
        self._on_room()
    except BaseException as error:  # handed to the owner, who ends the node
      if not self._stopped:
        self._on_failure(error)

  def stop(self) -> None:
    """Ends the thread; unrolls that wait are dropped."""
    with self._condition:
      self._stopped = True
      self._condition.notify_all()
    if self._thread is not None:
      self._thread.join()
    self._mirror_writer.close()
    self._writer.close()


def _joined(parts: local_items.Parts) -> types.Unroll:
  if len(parts) == 1:
    return parts[0]
  return tree.map_structure(lambda *leaves: np.concatenate(leaves), *parts)


def create_item(writer: reverb.TrajectoryWriter, table: str, priority: float) -> None:
  """Creates an item of what was appended last."""
  trajectory = tree.map_structure(lambda column: column[-1], writer.history)
  writer.create_item(table, priority=priority, trajectory=trajectory)
