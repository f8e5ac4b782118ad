"""The functions of an exported policy, over plain tensors and flat dicts of them."""

from __future__ import annotations

from collections.abc import Callable
import re
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import core
from seed_acme import types
from seed_acme.inference import policy as policy_lib

# Prefixes of the state's keys: the network's recurrent state, and the previous action.
_CORE, _PREVIOUS_ACTION = 'core', 'previous_action'
_LEAST_UNIFORM = 1e-7  # uniform random numbers are in (0, 1)


class ExportedPolicy:
  """`initial_state` and `step` for a batch of any size, whose rows are separate environments.

  The exploration that callers pass as `types.Exploration` elsewhere is part of the graph here. As
  in a `LoadedPolicy`, the rows share out the exploration rates of the training environments.
  """

  def __init__(
    self,
    spec: types.EnvironmentSpec,
    acting: agent_lib.Acting,
    network: core.RecurrentNetwork,
    greedy: bool,
    agent_steps: int,
  ):
    """network: with its weights. agent_steps: of the run, for schedules of exploration."""
    self._network, self._action_spec = network, spec.action
    self._acting, self._greedy, self._agent_steps = acting, greedy, agent_steps
    self._core = tree.map_structure(lambda x: x.numpy(), network.initial_state(1))
    self._first = _named_state(
      self._core, tree.map_structure(lambda s: np.zeros((1, *s.shape), s.dtype), spec.action)
    )
    batch = lambda s: tf.TensorSpec((None, *s.shape), s.dtype)
    self.observation = tree.map_structure(batch, spec.observation)
    self.state = {
      name: tf.TensorSpec((None, *x.shape[1:]), x.dtype) for name, x in self._first.items()
    }
    row = lambda dtype: tf.TensorSpec([None], dtype)
    self.initial_state = tf.function(
      self._initial_state, input_signature=[tf.TensorSpec([], tf.int32)], autograph=False
    )
    self.step = tf.function(
      self._step,
      autograph=False,
      input_signature=[
        self.observation,
        row(tf.float32),
        row(tf.float32),
        row(tf.bool),
        self.state,
      ],
    )

  def module(self) -> tf.Module:
    """Returns the module to save: functions and weights, but no class of this package."""
    module = tf.Module(name='policy')
    module.weights = list(self._network.variables)
    module.initial_state, module.step = self.initial_state, self.step
    return module

  def signatures(self) -> dict[str, Any]:
    """Returns the same functions by name, with a named tensor for each argument and each result."""
    observation = named('observation', self.observation)
    state = {f'state_{name}': spec for name, spec in self.state.items()}

    def initial_state(batch_size: tf.Tensor) -> dict[str, tf.Tensor]:
      return {f'state_{name}': x for name, x in self._initial_state(batch_size).items()}

    def step(**given: tf.Tensor) -> dict[str, tf.Tensor]:
      action, after = self._step(
        tree.unflatten_as(self.observation, [given[name] for name in observation]),
        given['reward'],
        given['discount'],
        given['is_first'],
        {name: given[f'state_{name}'] for name in self.state},
      )
      return {**named('action', action), **{f'state_{name}': x for name, x in after.items()}}

    rows = {'reward': tf.float32, 'discount': tf.float32, 'is_first': tf.bool}
    given = {
      **observation,
      **state,
      **{name: tf.TensorSpec([None], dtype) for name, dtype in rows.items()},
    }
    return {
      'initial_state': _function(initial_state, {'batch_size': tf.TensorSpec([], tf.int32)}),
      'step': _function(step, given),
    }

  def _initial_state(self, batch_size: tf.Tensor) -> dict[str, tf.Tensor]:
    return {name: tf.repeat(x, batch_size, axis=0) for name, x in self._first.items()}

  def _step(
    self,
    observation: types.Nest,
    reward: tf.Tensor,
    discount: tf.Tensor,
    is_first: tf.Tensor,
    state: dict[str, tf.Tensor],
  ) -> tuple[types.Nest, dict[str, tf.Tensor]]:
    rows = tf.size(is_first)
    state = {
      name: tf.where(_beside(is_first, x), self._first[name], x) for name, x in state.items()
    }
    before = {name: _below(name, state) for name in (_CORE, _PREVIOUS_ACTION)}
    inputs = types.AgentInput(
      step_type=tf.where(
        is_first, tf.constant(types.FIRST, tf.uint8), tf.constant(types.MID, tf.uint8)
      ),
      reward=tf.where(is_first, 0.0, reward),
      discount=discount,
      previous_action=tree.unflatten_as(self._action_spec, before[_PREVIOUS_ACTION]),
      observation=observation,
    )
    output, core_state = policy_lib.act(
      self._network,
      self._acting,
      self._action_spec,
      inputs,
      tree.unflatten_as(self._core, before[_CORE]),
      self._exploration(rows),
    )
    return output.action, _named_state(core_state, output.action)

  def _exploration(self, rows: tf.Tensor) -> types.Exploration:
    uniforms = tf.random.uniform([rows, self._acting.num_uniforms])
    return types.Exploration(
      uniforms=tf.maximum(uniforms, _LEAST_UNIFORM),
      place=tf.linspace(0.0, 1.0, rows),
      is_evaluation=tf.fill([rows], self._greedy),
      agent_steps=tf.fill([rows], tf.constant(self._agent_steps, tf.int64)),
    )


def _named_state(core_state: types.Nest, action: types.Nest) -> dict[str, Any]:
  """Returns the state as a flat dict whose sorted keys are in the order of the nests' leaves."""
  return {
    f'{word}_{i:02d}': x
    for word, nest in ((_CORE, core_state), (_PREVIOUS_ACTION, action))
    for i, x in enumerate(tree.flatten(nest))
  }


def named(word: str, nest: types.Nest) -> dict[str, Any]:
  """Returns a nest's leaves by names that a signature may have: `word`, `word_key`."""
  found: dict[str, Any] = {}
  taken: set[str] = set()  # in small letters, because TensorFlow ignores the case
  for path, leaf in tree.flatten_with_path(nest):
    name = re.sub(r'\W', '_', '_'.join((word, *map(str, path))), flags=re.ASCII)
    while name.lower() in taken:
      name += '_'
    taken.add(name.lower())
    found[name] = leaf
  return found


def _function(
  function: Callable[..., dict[str, tf.Tensor]], specs: dict[str, tf.TensorSpec]
) -> Any:
  return tf.function(function, autograph=False).get_concrete_function(
    **{name: tf.TensorSpec(spec.shape, spec.dtype, name) for name, spec in specs.items()}
  )


def _below(word: str, state: dict[str, tf.Tensor]) -> list[tf.Tensor]:
  return [state[name] for name in sorted(state) if re.fullmatch(rf'{word}_\d+', name)]


def _beside(is_first: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
  """Reshapes `[B]` to `[B, 1, ...]`, of the rank of `x`."""
  return tf.reshape(is_first, tf.concat([[-1], tf.ones([x.shape.rank - 1], tf.int32)], 0))
