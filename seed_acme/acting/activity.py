"""What an actor's thread is in the middle of, for whoever watches it.

The thread that acts writes, by one store to memory; another thread reads, or another process
through memory that both share. Times are the reader's affair.
"""

from __future__ import annotations

import enum
import mmap
import os
from typing import NamedTuple

CLOSE_S = 10.0  # the limit of close() of environments, for which the end of a run waits
_SIZE = 8
_GROUP_SHIFT, _NUMBER_SHIFT = 8, 16


class Doing(enum.IntEnum):
  """Kinds of what takes time."""

  STARTING = 0
  MAKING = 1  # environments
  CONNECTING = 2  # to a server that may not be there yet
  RESETTING = 3  # or a step in which an environment begins an episode
  STEPPING = 4
  WAITING = 5  # for actions
  CLOSING = 6


class Call(NamedTuple):
  """number: tells it from the one before. group: of environments."""

  number: int
  doing: Doing
  group: int


class Activity:
  """One number in memory, so that a reader never sees half of a change."""

  def __init__(self, memory: mmap.mmap | None = None):
    """memory: shared with another process; None = with threads of this one."""
    self._cell = memoryview(memory if memory is not None else bytearray(_SIZE)).cast('q')
    self._number = 0

  def begin(self, doing: Doing, group: int = 0) -> None:
    """Ends what was under way. Of the thread that acts; costs less than 1 µs."""
    self._number += 1
    self._cell[0] = self._number << _NUMBER_SHIFT | group << _GROUP_SHIFT | doing

  def read(self) -> Call:
    """What is under way."""
    value = self._cell[0]
    group = value >> _GROUP_SHIFT & (1 << _NUMBER_SHIFT - _GROUP_SHIFT) - 1
    return Call(value >> _NUMBER_SHIFT, Doing(value & (1 << _GROUP_SHIFT) - 1), group)


def shared_memory() -> int:
  """A descriptor of memory for one `Activity`, to be handed to another process and closed."""
  descriptor = os.memfd_create('seed_acme_activity')
  os.truncate(descriptor, _SIZE)
  return descriptor


def at(descriptor: int) -> Activity:
  """The activity in the memory of this descriptor, which may be closed afterwards."""
  return Activity(mmap.mmap(descriptor, _SIZE))
