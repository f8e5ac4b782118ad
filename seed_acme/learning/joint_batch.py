"""The batch of several learner hosts: each draws a part of it, and all of them learn from it."""

from __future__ import annotations

import tree

from seed_acme import types
from seed_acme.utils import batch_axes
from seed_acme.utils import collectives


def join(hosts: collectives.Group, sample: types.Sample) -> types.Sample:
  """In a graph: the samples of all hosts, in their order, from that of this one."""
  axes = tree.flatten(batch_axes.of_sample(sample))
  return tree.unflatten_as(sample, hosts.joined(tree.flatten(sample), axes))


def own_part(hosts: collectives.Group, rows: types.Nest, num_own: int) -> types.Nest:
  """Those of this host's sample, from `[B]` of all."""
  return rows[hosts.index * num_own :][:num_own]
