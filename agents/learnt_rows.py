"""Selects the rows of an unroll to train on, and the recurrent state before the first of them."""

from __future__ import annotations

from typing import Protocol

import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import core
from seed_acme import types


class UnrollLengths(Protocol):
  """The settings that select the rows of a sample: an agent's configuration, or a part of it.

  unroll_length: agent steps to train on. overlap: burn-in steps before them, which only warm up the
  recurrent state.
  """

  @property
  def unroll_length(self) -> int: ...

  @property
  def overlap(self) -> int: ...


def learnt_rows(
  unroll: types.Unroll, config: UnrollLengths
) -> tuple[types.AgentInput, types.AgentOutput]:
  """Returns the last `unroll_length + 1` rows of a time-major unroll, `[T+1, B, ...]`.

  Raises ValueError if the unroll is not as long as the configuration says.
  """
  num_rows = unroll.inputs.step_type.shape[0]
  wanted = config.overlap + config.unroll_length + 1
  if num_rows not in (None, wanted):
    raise ValueError(
      f'the sample holds {num_rows} rows, but overlap ({config.overlap}) + unroll_length '
      f'({config.unroll_length}) + 1 = {wanted} are needed'
    )
  if not config.overlap:
    return unroll.inputs, unroll.outputs
  return tree.map_structure(lambda x: x[config.overlap :], (unroll.inputs, unroll.outputs))


def entering_state(
  network: core.RecurrentNetwork, unroll: types.Unroll, config: UnrollLengths
) -> types.Nest:
  """Returns the network's state before the first learnt row, `[B, ...]`, without gradient.

  The stored state is that of row 0; the first `overlap` rows warm it up with this network's
  own weights (Kapturowski et al. 2019, section 3).
  """
  if not config.overlap:
    return unroll.initial_state
  head = tree.map_structure(lambda x: x[: config.overlap], unroll.inputs)
  _, state = network.unroll(head, unroll.initial_state)
  return tf.nest.map_structure(tf.stop_gradient, state)


def prepare_sample(
  sample: types.Sample, key: tf.Tensor, is_first: bool, config: UnrollLengths
) -> agent_lib.Prepared:
  """Implements `Learning.prepare` for an agent that learns from the whole sample as it is."""
  del key, is_first
  return agent_lib.Prepared(sample, *learnt_transitions(sample.unroll, config))


def learnt_transitions(unroll: types.Unroll, config: UnrollLengths) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns mask and acting policy's version of the transitions after the overlap, `[T, B]`."""
  step_type = tf.convert_to_tensor(unroll.inputs.step_type)[config.overlap : -1]
  mask = tf.not_equal(step_type, tf.cast(types.LAST, step_type.dtype))
  return mask, unroll.policy_version[config.overlap : -1]
