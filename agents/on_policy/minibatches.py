"""What the loss is computed of, and how a prepared batch is dealt out into it."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf
import tree

from seed_acme import types


class Minibatch(NamedTuple):
  """M transitions, leaves `[M, ...]`, or M unrolls, time-major `[T, M, ...]`.

  inputs: the rows that actions were chosen in, of unrolls `[T+1, M, ...]`. initial_state:
  `[M, ...]`, `()` for transitions. actions, behaviour_params: of these rows. The rest is the
  result: rewards clipped and scaled, discounts and mask of `ops.transitions`; value targets and
  values when acting in the units that values are learnt in; advantages. Targets and advantages
  are `()` where the loss makes them itself.
  """

  inputs: types.AgentInput
  initial_state: types.Nest
  actions: types.Nest
  behaviour_params: tf.Tensor
  behaviour_values: tf.Tensor
  rewards: tf.Tensor
  discounts: tf.Tensor
  mask: tf.Tensor
  targets: types.Nest
  advantages: types.Nest


def as_transitions(batch: Minibatch) -> Minibatch:
  """Time-major leaves -> `[T*B, ...]`; the last row of an unroll starts no transition."""
  merge = lambda x: tf.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))
  inputs = tree.map_structure(lambda x: x[:-1], batch.inputs)
  return tree.map_structure(merge, batch._replace(inputs=inputs, initial_state=()))


def take(batch: Minibatch, indices: tf.Tensor, *, axis: int) -> Minibatch:
  """The transitions (axis 0) or unrolls (axis 1) `indices` `[M]` of a prepared batch."""
  state = tree.map_structure(lambda x: tf.gather(x, indices), batch.initial_state)
  taken = tree.map_structure(
    lambda x: tf.gather(x, indices, axis=axis), batch._replace(initial_state=())
  )
  return taken._replace(initial_state=state)
