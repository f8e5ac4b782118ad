"""What is said of a state, or of a state and an action, for losses that ask about many actions.

A policy, a state value and an action value are functions of one form:

  f(x_t, a) = head(branch(x_t, a), memory(x_0 ... x_t))

The branch is a torso of its own. The memory, a torso and a recurrent core, is left out of networks
without one. It never sees the action that is asked about, so it runs over the rows once, however
many actions are tried.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from dm_env import specs as dm_specs
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
  """See the module. What is remembered is `[..., H]`, or `()` without a memory."""

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
    """Zero state `[batch_size, ...]` of the memory; `()` without one."""
    return () if self._memory is None else self._memory.initial_state(batch_size)

  def remember(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """One row `[N, ...]` -> what is remembered then `[N, H]`, and the new state."""
    return ((), state) if self._memory is None else self._memory(_without_goals(inputs), state)

  def remember_unroll(
    self, inputs: types.AgentInput, state: types.Nest
  ) -> tuple[types.Nest, types.Nest]:
    """Rows `[T, B, ...]` and the state before them -> `[T, B, H]`, and the last state."""
    if self._memory is None:
      return (), state
    inputs = _without_goals(inputs)
    return data_parallel.over_batch(self._memory.unroll, (1, 0), (1, 0), inputs, state)

  def __call__(
    self, observation: types.Nest, remembered: types.Nest, action: types.Nest | None = None
  ) -> tf.Tensor:
    """observation, what is remembered and action, all `[N, ...]` -> `[N, output_size]`."""
    features = self._branch(observation, action)
    if self._memory is not None:
      features = tf.concat([features, remembered], axis=-1)
    return self._head(features)

  def over_rows(
    self, observation: types.Nest, remembered: types.Nest, action: types.Nest | None = None
  ) -> tf.Tensor:
    """The same with `[T, B, ...]` -> `[T, B, output_size]`."""
    rows = (observation, remembered) if action is None else (observation, remembered, action)
    return data_parallel.over_batch(self._over_rows, (1,) * len(rows), 1, *rows)

  def _over_rows(self, *rows: types.Nest) -> tf.Tensor:
    like = tf.convert_to_tensor(tree.flatten(rows)[0])
    output = self(*(tree.map_structure(shapes.merge_rows, nest) for nest in rows))
    return shapes.split_rows_like(output, like)


class Branch(snt.Module):
  """From an observation, and an action if there is one, to features.

  An MLP sees the action beside the observation. After any other torso it stands beside the
  features, and it is for the head to make something of both.
  """

  def __init__(
    self, torso: torsos.Torso, action_spec: types.Nest | None, is_early: bool, name: str = 'branch'
  ):
    """action_spec: None for a function of the state alone. is_early: the action enters the torso,
    as the second of a pair."""
    super().__init__(name=name)
    self._torso = torso
    self._specs = (
      None if action_spec is None else tree.flatten(tree.map_structure(as_choices, action_spec))
    )
    self._is_early = is_early

  def __call__(self, observation: types.Nest, action: types.Nest | None) -> tf.Tensor:
    """Nests of `[N, ...]` -> `[N, F]`."""
    observation = without(observation, (ACHIEVED_GOAL,))
    if self._specs is None:
      return self._torso(observation)
    encoded = tf.concat(
      [torso_core_heads.encode_action(*pair) for pair in zip(self._specs, tree.flatten(action))],
      axis=-1,
    )
    if self._is_early:
      return self._torso((observation, encoded))
    return tf.concat([self._torso(observation), encoded], axis=-1)


def as_choices(spec: dm_specs.Array) -> dm_specs.Array:
  """One array of an action: integers are choices, 0 ... maximum."""
  if isinstance(spec, dm_specs.DiscreteArray) or not np.issubdtype(spec.dtype, np.integer):
    return spec
  assert isinstance(spec, dm_specs.BoundedArray)
  return choices.ChoicesArray(np.broadcast_to(spec.maximum, spec.shape) + 1, spec.dtype, spec.name)


def encoded_size(action_spec: types.Nest) -> int:
  """Numbers that an encoded action has."""
  specs = [as_choices(spec) for spec in tree.flatten(action_spec)]
  sizes = [choices.num_values(spec) for spec in specs]
  return sum(
    int(np.prod(spec.shape, dtype=np.int64)) if size is None else int(size.sum())
    for spec, size in zip(specs, sizes)
  )


def without(observation: types.Nest, keys: Collection[str]) -> types.Nest:
  """An observation, or the specification of one, without what a goal environment has by these
  keys; any other as it is."""
  if not isinstance(observation, dict) or DESIRED_GOAL not in observation:
    return observation
  return {key: value for key, value in observation.items() if key not in keys}


def _without_goals(inputs: types.AgentInput) -> types.AgentInput:
  return inputs._replace(observation=without(inputs.observation, (ACHIEVED_GOAL, DESIRED_GOAL)))
