"""From the core's output to the prediction."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.networks import torsos

# `[N, H]` -> the agent's record of `[N, ...]`.
Heads = Callable[[tf.Tensor], types.Nest]


class ActorCriticHeads(snt.Module):
  """One dense layer each for the parameters of the policy and for the value.

  hidden_sizes: units of the ReLU layers before it, which the two do not share.
  """

  def __init__(self, num_policy_params: int, hidden_sizes: Sequence[int], name: str = 'heads'):
    super().__init__(name=name)
    self._policy_hidden = torsos.MLP(hidden_sizes, 'policy_hidden')
    self._policy = torsos.linear(num_policy_params, 'policy')
    self._value_hidden = torsos.MLP(hidden_sizes, 'value_hidden')
    self._value = torsos.linear(1, 'value')

  def __call__(self, x: tf.Tensor) -> types.ActorCriticOutput:
    """`[N, H]` -> policy_params `[N, P]`, value `[N]`."""
    return types.ActorCriticOutput(
        policy_params=self._policy(self._policy_hidden(x)),
        value=tf.squeeze(self._value(self._value_hidden(x)), axis=-1))


class DuelingHeads(snt.Module):
  """Q(x, a) = V(x) + A(x, a) - mean over actions of A(x, .) (Wang et al. 2016, eq. 9).

  V and A have ReLU layers of `hidden_sizes` each, then a dense layer; that of A has no bias,
  as in R2D2.
  """

  def __init__(self, num_actions: int, hidden_sizes: Sequence[int], name: str = 'heads'):
    super().__init__(name=name)
    self._value_hidden = torsos.MLP(hidden_sizes, 'value_hidden')
    self._value = torsos.linear(1, 'value')
    self._advantage_hidden = torsos.MLP(hidden_sizes, 'advantage_hidden')
    self._advantage = torsos.linear(num_actions, 'advantage', with_bias=False)

  def __call__(self, x: tf.Tensor) -> types.QOutput:
    """`[N, H]` -> q_values `[N, A]`."""
    value = self._value(self._value_hidden(x))
    advantage = self._advantage(self._advantage_hidden(x))
    return types.QOutput(value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True))
