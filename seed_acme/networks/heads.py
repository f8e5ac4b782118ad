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
    policy_params, value = _outputs(
      x, (self._policy_hidden, self._policy), (self._value_hidden, self._value)
    )
    return types.ActorCriticOutput(policy_params, tf.squeeze(value, axis=-1))


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
    value, advantage = _outputs(
      x, (self._value_hidden, self._value), (self._advantage_hidden, self._advantage)
    )
    return types.QOutput(value + advantage - tf.reduce_mean(advantage, axis=-1, keepdims=True))


def _outputs(x: tf.Tensor, *heads: tuple[torsos.MLP, snt.Linear]) -> Sequence[tf.Tensor]:
  """Computes heads, each hidden layers and then a dense layer: `[N, H]` -> `[N, output_size]` each.

  Dense layers without hidden ones share one product, with their weights side by side. A product
  and the two of its gradient read or write an `[N, H]` array each, which is much of the cost of a
  small network.
  """
  separate = lambda: [layer(hidden(x)) for hidden, layer in heads]
  if any(hidden.submodules for hidden, _ in heads):
    return separate()
  hidden, layers = heads[0][0], [layer for _, layer in heads]
  if not hasattr(layers[-1], 'w'):
    separate()  # creates the variables, each within the scope of its layer
  weights = tf.concat([layer.w for layer in layers], axis=1)
  biases = [layer.b if layer.with_bias else tf.zeros([layer.output_size]) for layer in layers]
  outputs = tf.nn.bias_add(tf.matmul(hidden(x), weights), tf.concat(biases, axis=0))
  return tf.split(outputs, [layer.output_size for layer in layers], axis=1)
