"""Reverb tables from an agent's wish."""
from __future__ import annotations

import math

import reverb

from seed_acme import types
from seed_acme.agents import base
from seed_acme.replay import signature as signature_lib

UNROLLS = 'unrolls'


def make_tables(spec: base.ReplaySpec, queue_size: int, unrolls_per_item: int,
                unroll_example: types.Unroll) -> list[reverb.Table]:
  """queue_size in unrolls; unroll_example: numpy nest of one unroll, leaves `[L, ...]`.

  A queue hands out each item once, in the order of insertion, and blocks insertion while
  it is full: that is what holds the actors back.
  """
  if spec.kind != 'queue':
    raise ValueError(f'unknown kind of replay {spec.kind!r}')
  signature = signature_lib.item_signature(unroll_example, unrolls_per_item)
  return [reverb.Table.queue(UNROLLS, max(1, math.ceil(queue_size / unrolls_per_item)),
                             signature=signature)]

