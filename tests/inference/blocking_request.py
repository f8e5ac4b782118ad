"""A request whose reply a test waits for."""

from __future__ import annotations

import queue

from seed_acme import types
from seed_acme.inference import batching


class BlockingRequest(batching.PendingRequest):
  """The request of a caller that blocks."""

  def __init__(self, request: types.ActorRequest, is_training: bool):
    self._replies: queue.SimpleQueue[batching.Reply] = queue.SimpleQueue()
    super().__init__(request, is_training, self._replies.put)

  def wait(self) -> batching.Reply:
    return self._replies.get(timeout=60)

  def replies(self) -> list[batching.Reply]:
    """Returns all replies so far that were not waited for."""
    return [self._replies.get() for _ in range(self._replies.qsize())]
