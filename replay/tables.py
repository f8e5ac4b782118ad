"""Makes the Reverb tables that an agent asks for."""

from __future__ import annotations

import math
from typing import Literal

import reverb
import tensorflow as tf

from seed_acme import core
from seed_acme import types
from seed_acme.replay import local_items
from seed_acme.replay import signature as signature_lib

UNROLLS = 'unrolls'
MIRROR = 'mirror'  # for inspection: sampling it takes nothing from the learner, admits no insert
COUNTS = 'counts'
QueueOf = Literal['items', 'tickets', 'counts']
_MIRROR_SIZE = 16  # items


# Items inserted, sampled, in the queue, and for which it has room.
_COUNTS = {COUNTS: tf.TensorSpec((4,), tf.int64, name=COUNTS)}


def make_tables(
  spec: core.ReplaySpec,
  batch_size: int,
  queue_size: int,
  unrolls_per_item: int,
  unroll_example: types.Unroll,
  queue_of: QueueOf,
) -> list[reverb.Table]:
  """Makes the learner's table and a small one for inspection.

  batch_size: unrolls in a sample. queue_size: unrolls. unroll_example: numpy nest of one unroll,
  leaves `[L, ...]`. queue_of: what is in the table of a queue: its items; their tickets
  (`local_items`); or its counts, for inspection, if it is no table (`local_queue`).
  """
  signature = signature_lib.item_signature(unroll_example, unrolls_per_item)
  if spec.is_memory:
    return [_memory(spec, batch_size, signature), _mirror(signature)]
  if queue_of == 'counts':
    return [_latest(UNROLLS, 1, _COUNTS), _mirror(signature)]
  # Hands out each item once, in the order of insertion, and blocks insertion while it is
  # full, which is the back-pressure on the actors.
  num_items = max(1, math.ceil(queue_size / unrolls_per_item))
  held = signature if queue_of == 'items' else local_items.signature()
  queue = reverb.Table.queue(UNROLLS, num_items, signature=held)
  return [queue, _mirror(signature)]


def _mirror(signature: types.Unroll) -> reverb.Table:
  return _latest(MIRROR, _MIRROR_SIZE, signature)


def _latest(name: str, size: int, signature: object) -> reverb.Table:
  """Makes a table of the items inserted last, which never keeps an insert waiting."""
  return reverb.Table(
    name,
    reverb.selectors.Uniform(),
    reverb.selectors.Fifo(),
    max_size=size,
    rate_limiter=reverb.rate_limiters.MinSize(1),
    signature=signature,
  )


def _memory(spec: core.ReplaySpec, batch_size: int, signature: types.Unroll) -> reverb.Table:
  return reverb.Table(
    UNROLLS,
    _sampler(spec),
    reverb.selectors.Fifo(),
    max_size=spec.capacity,
    rate_limiter=_rate_limiter(spec, batch_size),
    signature=signature,
  )


def _sampler(spec: core.ReplaySpec) -> object:
  if spec.kind == 'uniform':
    return reverb.selectors.Uniform()
  return reverb.selectors.Prioritized(spec.priority_exponent)


def _rate_limiter(spec: core.ReplaySpec, batch_size: int) -> reverb.rate_limiters.RateLimiter:
  """Keeps samples and inserts in the requested ratio, give or take `error_buffer` samples."""
  return reverb.rate_limiters.SampleToInsertRatio(
    spec.ratio, spec.min_size, error_buffer(spec, batch_size)
  )


def error_buffer(spec: core.ReplaySpec, batch_size: int) -> float:
  """Returns by how many samples either side may be ahead: two batches, because a batch is drawn,
  and prefetched, as a whole; or what two inserts are worth, if that is more."""
  return 2.0 * max(batch_size, spec.ratio)
