"""From the core's output to the prediction."""
from __future__ import annotations

import sonnet as snt
import tensorflow as tf

from seed_acme import types
from seed_acme.networks import torsos


class ActorCriticHeads(snt.Module):
  """One dense layer each for the parameters of the policy and for the value."""

  def __init__(self, num_policy_params: int, name: str = 'heads'):
    super().__init__(name=name)
    self._policy = torsos.linear(num_policy_params, 'policy')
    self._value = torsos.linear(1, 'value')

  def __call__(self, x: tf.Tensor) -> types.ActorCriticOutput:
    """`[N, H]` -> policy_params `[N, P]`, value `[N]`."""
    return types.ActorCriticOutput(
        policy_params=self._policy(x), value=tf.squeeze(self._value(x), axis=-1))
