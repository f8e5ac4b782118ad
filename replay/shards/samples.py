"""The learner's samples, joined from equal parts of all shards."""

from __future__ import annotations

from collections.abc import Sequence
import time

import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.learning import batch_axes
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import local_queue


class Samples:
  """The prefetchers, or local queues, of all shards as one. A prefetcher has its own thread."""

  def __init__(self, prefetchers: Sequence[dataset_lib.Prefetcher | local_queue.LocalQueue]):
    self._prefetchers = tuple(prefetchers)
    self._parts: list[types.Sample | None] = [None] * len(self._prefetchers)

  def start(self) -> None:
    """See `Prefetcher`."""
    for prefetcher in self._prefetchers:
      prefetcher.start()

  def next(self, timeout_s: float) -> types.Sample | None:
    """Returns the next sample, or None after `timeout_s`; parts that came are kept for later."""
    give_up = time.monotonic() + timeout_s
    for shard, prefetcher in enumerate(self._prefetchers):
      if self._parts[shard] is None:
        self._parts[shard] = prefetcher.next(max(0.0, give_up - time.monotonic()))
    parts = [part for part in self._parts if part is not None]
    if len(parts) < len(self._parts):
      return None
    self._parts = [None] * len(self._prefetchers)
    return join(parts)

  def stop(self) -> None:
    """See `Prefetcher`."""
    for prefetcher in self._prefetchers:
      prefetcher.stop()


def join(parts: Sequence[types.Sample]) -> types.Sample:
  """Joins the parts that K shards drew, in their order, into one sample.

  Unroll i of shard k is drawn with P(i) = P_k(i) / K, as each shard gives one K-th of the batch.
  """
  if len(parts) == 1:
    return parts[0]
  joined = tree.map_structure(
    lambda axis, *leaves: tf.concat(leaves, axis), batch_axes.of_sample(parts[0]), *parts
  )
  return joined._replace(probabilities=joined.probabilities / len(parts))
