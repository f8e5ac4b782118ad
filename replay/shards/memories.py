"""The learner's access to the replay memories of all shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import pathlib
import shutil
import time

import numpy as np

from seed_acme.replay import memory as memory_lib

_WHOLE = 'all_shards'  # the folder of all parts, until it becomes a part of the checkpoint


def part(folder: pathlib.Path, shard: int, num_shards: int) -> pathlib.Path:
  """Returns the folder of a shard's replay memory. folder: the one of its learner host."""
  return folder if num_shards == 1 else folder / f'shard_{shard}'


class Memories:
  """The memories of all shards as one `core.ReplayMemory`.

  A batch has equal parts from all shards, in order, and so have its keys and priorities.
  """

  def __init__(self, memories: Sequence[memory_lib.ReplayMemory], in_progress: pathlib.Path):
    """in_progress: where the servers save, see `part`."""
    self.each = tuple(memories)
    self._in_progress = in_progress

  def start(self, on_failure: Callable[[BaseException], None]) -> None:
    """See `ReplayMemory`; on_failure may be called from several threads."""
    for memory in self.each:
      memory.start(on_failure)

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    """See `core.ReplayMemory`."""
    number = len(self.each)
    for memory, own, theirs in zip(self.each, np.split(keys, number), np.split(priorities, number)):
      memory.update_priorities(own, theirs)

  @property
  def greatest_priority(self) -> float:
    """The greatest priority of any shard, see `ReplayMemory`."""
    return max(memory.greatest_priority for memory in self.each)

  def counts(self) -> tuple[int, int]:
    """See `core.ReplayMemory`."""
    inserted, sampled = zip(*(memory.counts() for memory in self.each))
    return sum(inserted), sum(sampled)

  def counts_now(self) -> tuple[int, int] | None:
    """See `core.ReplayMemory`."""
    counts = [memory.counts_now() for memory in self.each]
    if None in counts:
      return None
    inserted, sampled = zip(*counts)
    return sum(inserted), sum(sampled)

  def wait_until_sent(self, timeout_s: float) -> bool:
    """See `ReplayMemory`."""
    give_up = time.monotonic() + timeout_s
    return all(memory.wait_until_sent(max(0.0, give_up - time.monotonic())) for memory in self.each)

  def checkpoint(self) -> pathlib.Path:
    """See `core.ReplayMemory`. If one shard cannot save, the files of all are deleted."""
    whole = self._in_progress / _WHOLE
    shutil.rmtree(whole, ignore_errors=True)
    try:
      parts = [memory.checkpoint() for memory in self.each]
      if len(parts) == 1:
        return parts[0]
      whole.mkdir()
      for shard, folder in enumerate(parts):
        folder.rename(part(whole, shard, len(parts)))
    except (RuntimeError, OSError) as error:
      shutil.rmtree(whole, ignore_errors=True)
      self._clear()
      raise RuntimeError(str(error)) from error
    return whole

  def _clear(self) -> None:
    """Deletes incomplete checkpoints, which would keep a full disk full."""
    number = len(self.each)
    for shard in range(number):
      for left in part(self._in_progress, shard, number).glob('*'):
        shutil.rmtree(left, ignore_errors=True)

  def stop(self) -> None:
    """See `ReplayMemory`."""
    for memory in self.each:
      memory.stop()
