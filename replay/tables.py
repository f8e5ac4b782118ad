"""Reverb tables from an agent's wish."""

from __future__ import annotations

import math

import reverb

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.agents import base
from seed_acme.replay import signature as signature_lib

UNROLLS = 'unrolls'
MIRROR = 'mirror'  # for looking: sampling it takes nothing from the learner and admits nothing
_MIRROR_SIZE = 16  # items


def make_tables(
  spec: base.ReplaySpec, queue_size: int, unrolls_per_item: int, unroll_example: types.Unroll
) -> list[reverb.Table]:
  """The table of the learner and a small one to look at.

  queue_size in unrolls; unroll_example: numpy nest of one unroll, leaves `[L, ...]`.
  """
  signature = signature_lib.item_signature(unroll_example, unrolls_per_item)
  mirror = reverb.Table(
    MIRROR,
    reverb.selectors.Uniform(),
    reverb.selectors.Fifo(),
    max_size=_MIRROR_SIZE,
    rate_limiter=reverb.rate_limiters.MinSize(1),
    signature=signature,
  )
  if spec.memory is None:
    # Hands out each item once, in the order of insertion, and blocks insertion while it is
    # full: that is what holds the actors back.
    unrolls = reverb.Table.queue(
      UNROLLS, max(1, math.ceil(queue_size / unrolls_per_item)), signature=signature
    )
  else:
    unrolls = reverb.Table(
      UNROLLS,
      _sampler(spec.kind, spec.memory),
      reverb.selectors.Fifo(),
      max_size=spec.memory.replay_capacity,
      rate_limiter=_rate_limiter(spec.memory),
      signature=signature,
    )
  return [unrolls, mirror]


def _sampler(kind: str, memory: config_lib.ReplayAgentConfig) -> object:
  if kind == 'uniform':
    return reverb.selectors.Uniform()
  return reverb.selectors.Prioritized(memory.priority_exponent)


def _rate_limiter(memory: config_lib.ReplayAgentConfig) -> reverb.rate_limiters.RateLimiter:
  """Samples and inserts in the ratio of the configuration, two batches more or less."""
  return reverb.rate_limiters.SampleToInsertRatio(
    memory.replay_ratio, memory.replay_min_size, error_buffer(memory)
  )


def error_buffer(memory: config_lib.ReplayAgentConfig) -> float:
  """Samples by which either side may be ahead; a batch is drawn, and fetched ahead, whole."""
  return 2.0 * max(memory.batch_size, memory.replay_ratio)
