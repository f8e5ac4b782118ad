"""Functions of a state, or of a state and an action, for losses that evaluate many actions.

A policy, a state value and an action value are functions of one form:

  f(x_t, a) = head(branch(x_t, a), memory(x_0 ... x_t))

The branch is a torso. The memory, a separate torso and a recurrent core, is left out of networks
without a core. It never sees the action that is evaluated, so it runs over the rows once, however
many actions are evaluated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sonnet as snt
import tensorflow as tf
import tree

from seed_acme import core as core_lib
from seed_acme import types
from seed_acme.envs import choices
from seed_acme.networks import heads as heads_lib
from seed_acme.networks import torso_core_heads
from seed_acme.networks import torsos
from seed_acme.ops import shapes
from seed_acme.parallel import data_parallel

# Keys of a goal environment's observation, in gymnasium's `GoalEnv` form.
ACHIEVED_GOAL, DESIRED_GOAL = 'achieved_goal', 'desired_goal'


class StateFunction(snt.Module):
  """A function of a state, see the module. The memory's output is `[..., H]`; `()` without one."""

  def __init__(
    self,
    branch: Branch,
    memory: core_lib.RecurrentNetwork | None,
    head: heads_lib.DenseHead,
    name: str = 'state_function',
  ):
    """memory: predicts features `[..., H]`."""
    super().__init__(name=name)
    self._branch = branch
    self._memory = memory
    self._head = head

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Returns the zero state `[batch_size, ...]` of the memory; `()` without one."""
    return () if self._memory is None else self._memory.initial_state(batch_size)

  def remember(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs the memory on one row `[N, ...]`; returns its output `[N, H]` and the new state."""
    return ((), state) if self._memory is None else self._memory(_without_goal(inputs), state)

  def remember_unroll(
    self, inputs: types.AgentInput, state: types.Nest
  ) -> tuple[types.Nest, types.Nest]:
    """Runs the memory on rows `[T, B, ...]`; returns its outputs `[T, B, H]` and the last state."""
    if self._memory is None:
      return (), state
    inputs = _without_goal(inputs)
    unroll = self._memory.unroll
    return data_parallel.over_batch(unroll, (1, 0), (1, 0), inputs, state, state_index=1)

  def __call__(
    self, observation: types.Nest, remembered: types.Nest, action: types.Nest | None = None
  ) -> tf.Tensor:
    """observation, the memory's output and action, all `[N, ...]` -> `[N, output_size]`."""
    features = self._branch(observation, action)
    if self._memory is not None:
      features = tf.concat([features, remembered], axis=-1)
    return self._head(features)

  def over_rows(
    self, observation: types.Nest, remembered: types.Nest, action: types.Nest | None = None
  ) -> tf.Tensor:
    """Does the same for `[T, B, ...]` -> `[T, B, output_size]`."""
    rows = (observation, remembered) if action is None else (observation, remembered, action)
    return data_parallel.over_batch(self._over_rows, (1,) * len(rows), 1, *rows)

  def _over_rows(self, *rows: types.Nest) -> tf.Tensor:
    like = tf.convert_to_tensor(tree.flatten(rows)[0])
    output = self(*(tree.map_structure(shapes.merge_rows, nest) for nest in rows))
    return shapes.split_rows_like(output, like)


class Branch(snt.Module):
  """Maps an observation, and an action if there is one, to features.

  An MLP takes the action as an input together with the observation. With any other torso the action
  is concatenated to the features, for the head to combine.
  """

  def __init__(
    self, torso: torsos.Torso, action_spec: types.Nest | None, is_early: bool, name: str = 'branch'
  ):
    """action_spec: None for a function of the state alone. is_early: the action is an input of the
    torso, as the second of a pair."""
    super().__init__(name=name)
    self._torso = torso
    self._specs = (
      None
      if action_spec is None
      else tree.flatten(tree.map_structure(choices.as_choices, action_spec))
    )
    self._is_early = is_early

  def __call__(self, observation: types.Nest, action: types.Nest | None) -> tf.Tensor:
    """Nests of `[N, ...]` -> `[N, F]`."""
    if self._specs is None:
      return self._torso(observation)
    encoded = tf.concat(
      [torso_core_heads.encode_action(*pair) for pair in zip(self._specs, tree.flatten(action))],
      axis=-1,
    )
    if self._is_early:
      return self._torso((observation, encoded))
    return tf.concat([self._torso(observation), encoded], axis=-1)


def encoded_size(action_spec: types.Nest) -> int:
  """Returns how many numbers an encoded action has."""
  specs = [choices.as_choices(spec) for spec in tree.flatten(action_spec)]
  sizes = [choices.num_values(spec) for spec in specs]
  return sum(
    int(np.prod(spec.shape, dtype=np.int64)) if size is None else int(size.sum())
    for spec, size in zip(specs, sizes)
  )


def without_goal(observation: types.Nest) -> types.Nest:
  """Returns a goal environment's observation, or its specification, without the desired goal; any
  other is returned as it is."""
  if not isinstance(observation, dict):
    return observation
  return {key: value for key, value in observation.items() if key != DESIRED_GOAL}


def _without_goal(inputs: types.AgentInput) -> types.AgentInput:
  return inputs._replace(observation=without_goal(inputs.observation))
