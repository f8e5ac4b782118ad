"""The batch of several learner hosts: each draws a part of it, and all of them learn from it."""

from __future__ import annotations

import tree

from seed_acme import types
from seed_acme.utils import collectives


def join(hosts: collectives.Group, sample: types.Sample) -> types.Sample:
  """In a graph: the samples of all hosts, in their order, from that of this one."""
  nests = (sample.unroll.initial_state, sample.unroll[1:], sample[1:])
  axes = [axis for nest, axis in zip(nests, (0, 1, 0)) for _ in tree.flatten(nest)]
  state, rows, of_items = tree.unflatten_as(nests, hosts.joined(tree.flatten(nests), axes))
  return types.Sample(types.Unroll(state, *rows), *of_items)


def own_part(hosts: collectives.Group, rows: types.Nest, num_own: int) -> types.Nest:
  """Those of this host's sample, from `[B]` of all."""
  return rows[hosts.index * num_own :][:num_own]
