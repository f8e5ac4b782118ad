"""The batch axis of each array of a sample."""

from __future__ import annotations

import tree

from seed_acme import types


def of_sample(sample: types.Sample) -> types.Sample:
  """Returns a nest of axes: 1 for rows `[L, B, ...]`, 0 for all other arrays, `[B, ...]`."""
  rows = sample.unroll._replace(initial_state=())
  axes = tree.map_structure(lambda _: 1, rows)
  state = tree.map_structure(lambda _: 0, sample.unroll.initial_state)
  return types.Sample(axes._replace(initial_state=state), keys=0, probabilities=0)
