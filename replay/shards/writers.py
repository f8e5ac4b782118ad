"""Writes finished unrolls to the shards that their environments belong to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from seed_acme import types
from seed_acme.progress import timing
from seed_acme.replay import writer as writer_lib
from seed_acme.tensors import nests

ShardOf = Callable[[np.ndarray], np.ndarray]


class Writers:
  """The writers of all shards as one `core.UnrollSink`.

  Each has its own thread and backlog: a full shard holds back only its own actors, and the others
  go on until the learner has a whole batch.
  """

  def __init__(self, writers: Sequence[writer_lib.ReplayWriter], shard_of: ShardOf):
    """shard_of: env_ids `[N]` of training environments -> their shards `[N]`."""
    self.each = tuple(writers)
    self._shard_of = shard_of

  def start(self, on_room: Callable[[], None], on_failure: Callable[[BaseException], None]) -> None:
    """See `ReplayWriter`; both functions may be called from several threads."""
    for writer in self.each:
      writer.start(on_room, on_failure)

  def has_room(self) -> bool:
    """See `core.UnrollSink`."""
    return any(writer.has_room() for writer in self.each)

  def has_room_for(self, env_ids: np.ndarray) -> bool:
    """Whether none of these training environments, `[N]`, belongs to a full shard."""
    return all(self.each[shard].has_room() for shard in np.unique(self._shard_of(env_ids)))

  def put(self, env_ids: np.ndarray, unrolls: types.Unroll) -> None:
    """See `core.UnrollSink`."""
    if len(self.each) == 1:
      self.each[0].put(unrolls)
      return
    shards = self._shard_of(env_ids)
    for shard in np.unique(shards):
      its = shards == shard
      self.each[shard].put(unrolls if its.all() else nests.map_arrays(lambda x: x[its], unrolls))  # noqa: B023

  def seconds(self) -> dict[str, float]:
    """Returns the seconds spent in each phase, summed over all threads."""
    return timing.merge(*(writer.timer.snapshot() for writer in self.each))

  def stop(self) -> None:
    """See `ReplayWriter`."""
    for writer in self.each:
      writer.stop()
