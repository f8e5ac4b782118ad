"""Publishes what an actor's thread is doing, for a watchdog.

The acting thread writes with a single store to memory. Another thread reads it, or another process
through shared memory. The reader measures the time itself.
"""

from __future__ import annotations

import enum
import mmap
import os
from typing import NamedTuple

CLOSE_S = 10.0  # time limit of environments' close(), for which the end of a run waits
_SIZE = 8
_GROUP_SHIFT, _NUMBER_SHIFT = 8, 16


class Doing(enum.IntEnum):
  """Kinds of activities that take time."""

  STARTING = 0
  MAKING = 1  # environments
  CONNECTING = 2  # to a server that may not be there yet
  RESETTING = 3  # or a step in which an environment begins an episode
  STEPPING = 4
  WAITING = 5  # for actions
  CLOSING = 6


class Call(NamedTuple):
  """One activity. number: distinguishes it from the previous one. group: environment group."""

  number: int
  doing: Doing
  group: int


class Activity:
  """The current activity, stored as one number so that a reader never sees half of a change."""

  def __init__(self, memory: mmap.mmap | None = None):
    """memory: shared with another process; None = shared with threads of this process only."""
    self._cell = memoryview(memory if memory is not None else bytearray(_SIZE)).cast('q')
    self._number = 0

  def begin(self, doing: Doing, group: int = 0) -> None:
    """Replaces the current activity. Called by the acting thread; costs less than 1 µs."""
    self._number += 1
    self._cell[0] = self._number << _NUMBER_SHIFT | group << _GROUP_SHIFT | doing

  def read(self) -> Call:
    """Returns the current activity."""
    value = self._cell[0]
    group = value >> _GROUP_SHIFT & (1 << _NUMBER_SHIFT - _GROUP_SHIFT) - 1
    return Call(value >> _NUMBER_SHIFT, Doing(value & (1 << _GROUP_SHIFT) - 1), group)


def shared_memory() -> int:
  """Returns a descriptor of memory for one `Activity`, to pass to another process and close."""
  descriptor = os.memfd_create('seed_acme_activity')
  os.truncate(descriptor, _SIZE)
  return descriptor


def at(descriptor: int) -> Activity:
  """Returns the activity in the memory of a file descriptor, which may be closed afterwards."""
  return Activity(mmap.mmap(descriptor, _SIZE))
