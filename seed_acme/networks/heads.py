"""Heads, which turn the core's output into the prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.networks import torsos

# `[N, H]` -> the agent's record of `[N, ...]`.
Heads = Callable[[tf.Tensor], types.Nest]


class DenseHead(snt.Module):
  """Hidden layers, then one dense layer of `output_size`."""

  def __init__(
    self,
    output_size: int,
    hidden_sizes: Sequence[int],
    style: torsos.DenseStyle,
    gain: float,
    name: str,
  ):
    """gain: factor of the last layer's initial weights."""
    super().__init__(name=name)
    self._hidden = torsos.MLP(hidden_sizes, 'hidden', style)
    self._output = torsos.linear(output_size, 'output', w_init=style.output_initializer(gain))

  @property
  def value_layer(self) -> snt.Linear:
    """The last layer, for a head whose output is the value."""
    return self._output

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    """`[N, H]` -> `[N, output_size]`."""
    return self._output(self._hidden(x))


class ActorCriticHeads(snt.Module):
  """One dense layer each for the parameters of the policy and for the value.

  hidden_sizes: units of the layers before it, which the two do not share.
  """

  def __init__(
    self,
    num_policy_params: int,
    hidden_sizes: Sequence[int],
    style: torsos.DenseStyle,
    policy_gain: float,
    value_gain: float,
    name: str = 'heads',
  ):
    super().__init__(name=name)
    self._policy_hidden = torsos.MLP(hidden_sizes, 'policy_hidden', style)
    self._policy = torsos.linear(
      num_policy_params, 'policy', w_init=style.output_initializer(policy_gain)
    )
    self._value_hidden = torsos.MLP(hidden_sizes, 'value_hidden', style)
    self._value = torsos.linear(1, 'value', w_init=style.output_initializer(value_gain))

  @property
  def value_layer(self) -> snt.Linear:
    """The layer whose output is the value."""
    return self._value

  def __call__(self, x: tf.Tensor) -> types.ActorCriticOutput:
    """`[N, H]` -> policy_params `[N, P]`, value `[N]`."""
    return types.ActorCriticOutput(
      policy_params=self._policy(self._policy_hidden(x)),
      value=tf.squeeze(self._value(self._value_hidden(x)), axis=-1),
    )


class DuelingHeads(snt.Module):
  """Q(x, a) = V(x) + A(x, a) - mean over actions of A(x, .) (Wang et al. 2016, eq. 9).

  V and A have hidden layers of `hidden_sizes` each, then a dense layer, which has no bias for A,
  as in R2D2.
  """

  def __init__(
    self,
    num_actions: int,
    hidden_sizes: Sequence[int],
    style: torsos.DenseStyle,
    name: str = 'heads',
  ):
    super().__init__(name=name)
    self._value_hidden = torsos.MLP(hidden_sizes, 'value_hidden', style)
    self._value = torsos.linear(1, 'value', w_init=style.output_initializer(1.0))
    self._advantage_hidden = torsos.MLP(hidden_sizes, 'advantage_hidden', style)
    self._advantage = torsos.linear(
      num_actions, 'advantage', with_bias=False, w_init=style.output_initializer(1.0)
    )

  def __call__(self, x: tf.Tensor) -> types.QOutput:
    """`[N, H]` -> q_values `[N, A]`."""
    value = self._value(self._value_hidden(x))
    advantage = self._advantage(self._advantage_hidden(x))
    return types.QOutput(value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True))
