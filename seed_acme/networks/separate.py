"""An actor-critic of two networks, for policy and value, that share nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import sonnet as snt
import tensorflow as tf

from seed_acme import core as core_lib
from seed_acme import types


class SeparateState(NamedTuple):
  """The states of the two networks, `[N, ...]`."""

  policy: types.Nest
  value: types.Nest


class SeparateActorCritic(snt.Module):
  """Both networks see the same rows; the value's gradient never reaches the policy's weights."""

  def __init__(
    self,
    policy: core_lib.RecurrentNetwork,
    value: core_lib.RecurrentNetwork,
    name: str = 'separate',
  ):
    """policy predicts `[..., P]`, value `[..., 1]`."""
    super().__init__(name=name)
    self._policy = policy
    self._value = value

  @property
  def variables(self) -> tuple[tf.Variable, ...]:
    """The policy's variables, then the value's."""
    return (*self._policy.variables, *self._value.variables)

  @property
  def trainable_variables(self) -> tuple[tf.Variable, ...]:
    """The policy's variables, then the value's."""
    return (*self._policy.trainable_variables, *self._value.trainable_variables)

  @property
  def value_layer(self) -> Any:
    """See `core.RecurrentNetwork`; None if the value network has none."""
    return getattr(self._value, 'value_layer', None)

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Returns both initial states, or `()` if neither network has a state."""
    state = SeparateState(
      self._policy.initial_state(batch_size), self._value.initial_state(batch_size)
    )
    return state if tf.nest.flatten(state) else ()

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs one row; see `core.RecurrentNetwork`."""
    before = state or SeparateState((), ())
    params, policy_state = self._policy(inputs, before.policy)
    value, value_state = self._value(inputs, before.value)
    return _joined(params, value, policy_state, value_state, state)

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs many rows; see `core.RecurrentNetwork`."""
    before = state or SeparateState((), ())
    params, policy_state = self._policy.unroll(inputs, before.policy)
    value, value_state = self._value.unroll(inputs, before.value)
    return _joined(params, value, policy_state, value_state, state)


def _joined(
  params: tf.Tensor,
  value: tf.Tensor,
  policy_state: types.Nest,
  value_state: types.Nest,
  before: types.Nest,
) -> tuple[types.Nest, types.Nest]:
  prediction = types.ActorCriticOutput(params, tf.squeeze(value, axis=-1))
  return prediction, SeparateState(policy_state, value_state) if before else ()
