"""A `core.RecurrentNetwork` composed of torso, core and heads."""

from __future__ import annotations

from typing import Any

from dm_env import specs as dm_specs
import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import cores
from seed_acme.networks import heads as heads_lib
from seed_acme.networks import torsos
from seed_acme.ops import shapes


class TorsoCoreHeads(snt.Module):
  """Torso -> core -> heads, for one row or for many.

  The heads determine the prediction: an actor-critic's, Q values, or another record.
  Made by `networks.build`; called by the inference server (one row) and by the loss (many),
  each with its own copy. Torso and heads process all rows at once, only the core row by row.
  """

  def __init__(
    self,
    torso: torsos.Torso,
    core: cores.Core,
    heads: heads_lib.Heads,
    *,
    action_spec: types.Nest,
    previous_action_input: bool,
    previous_reward_input: bool,
    previous_reward_bound: float,
    name: str = 'torso_core_heads',
  ):
    """previous_reward_bound: bound of the core's reward input; 0 = no clipping."""
    super().__init__(name=name)
    self._torso = torso
    self._core = core
    self._heads = heads
    self._action_spec = tree.map_structure(choices.as_choices, action_spec)
    self._previous_action_input = previous_action_input
    self._previous_reward_input = previous_reward_input
    self._previous_reward_bound = previous_reward_bound

  @property
  def value_layer(self) -> Any:
    """See `core.RecurrentNetwork`; None if the heads have none."""
    return getattr(self._heads, 'value_layer', None)

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Returns the zero state `[batch_size, ...]` of the core."""
    return self._core.initial_state(batch_size)

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs one row `[N, ...]` and state `[N, ...]` -> prediction `[N, ...]`, new state."""
    is_first = _is_first(inputs)
    output, state = self._core(self._features(inputs, is_first), is_first, state)
    return self._heads(output), state

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs rows `[T, B, ...]` and state `[B, ...]` -> predictions `[T, B, ...]`, last state."""
    is_first = _is_first(inputs)
    rows = tree.map_structure(shapes.merge_rows, inputs)
    features = shapes.split_rows_like(self._features(rows, tf.reshape(is_first, [-1])), is_first)
    outputs, state = self._core.unroll(features, is_first, state)
    predictions = self._heads(shapes.merge_rows(outputs))
    return tf.nest.map_structure(lambda x: shapes.split_rows_like(x, is_first), predictions), state

  def _features(self, inputs: types.AgentInput, is_first: tf.Tensor) -> tf.Tensor:
    """Returns the core's inputs, `[N, F]`."""
    parts = [self._torso(inputs.observation)]
    if self._previous_reward_input:
      parts.append(self._bounded(torsos.as_float(inputs.reward))[:, tf.newaxis])
    if self._previous_action_input:
      specs, actions = tree.flatten(self._action_spec), tree.flatten(inputs.previous_action)
      parts.extend(encode_action(*pair) for pair in zip(specs, actions))
    # At FIRST there is no previous action or reward, so both inputs are zeros, not even action 0.
    first = is_first[:, tf.newaxis]
    parts[1:] = [tf.where(first, tf.zeros_like(x), x) for x in parts[1:]]
    return parts[0] if len(parts) == 1 else tf.concat(parts, axis=-1)

  def _bounded(self, reward: tf.Tensor) -> tf.Tensor:
    bound = self._previous_reward_bound
    return tf.clip_by_value(reward, -bound, bound) if bound else reward


class FeedForward(snt.Module):
  """Replaces a core in networks without one: features pass through, the state is `()`."""

  def initial_state(self, batch_size: Any) -> types.Nest:
    del batch_size
    return ()

  def __call__(self, features, is_first, state):
    del is_first
    return features, state

  def unroll(self, features, is_first, state):
    del is_first
    return features, state


def encode_action(spec: dm_specs.Array, action: tf.Tensor) -> tf.Tensor:
  """Encodes one array of the action, `[N, ...]` -> `[N, A]`: choices one-hot, else flat numbers."""
  num_values = choices.num_values(spec)
  if num_values is not None:
    return torsos.one_hot(num_values, action)
  return tf.reshape(tf.cast(action, tf.float32), [-1, max(1, spec.generate_value().size)])


def _is_first(inputs: types.AgentInput) -> tf.Tensor:
  step_type = tf.convert_to_tensor(inputs.step_type)
  return tf.equal(step_type, tf.cast(types.FIRST, step_type.dtype))
