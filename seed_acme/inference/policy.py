"""The network that acts: a copy of the learner's weights behind one graph function."""

from __future__ import annotations

from collections.abc import Callable
import threading

import numpy as np
import tensorflow as tf
import tree

from seed_acme import agent as agent_lib
from seed_acme import core
from seed_acme import types
from seed_acme.tensors import graph_function


class PublishedVariables:
  """The newest copy of the weights; written by the learner, read by the inference thread."""

  def __init__(self) -> None:
    self._lock = threading.Lock()
    self._latest: types.Variables | None = None
    self._on_publish: Callable[[], None] = lambda: None

  def watch(self, on_publish: Callable[[], None]) -> None:
    """Calls `on_publish` after each publication, from the learner's thread."""
    self._on_publish = on_publish

  def publish(self, variables: types.Variables) -> None:
    with self._lock:
      self._latest = variables
    self._on_publish()

  def latest(self) -> types.Variables | None:
    with self._lock:
      return self._latest


def act(
  network: core.RecurrentNetwork,
  acting: agent_lib.Acting,
  action_spec: types.Nest,
  inputs: types.AgentInput,
  state: types.Nest,
  exploration: types.Exploration,
) -> tuple[types.AgentOutput, types.Nest]:
  """Acts in a graph: rows of environments `[N, ...]` -> (actions and predictions, new state)."""
  prediction, new_state = network(inputs, state)
  output = acting.select_actions(prediction, exploration)
  action = tree.map_structure(lambda a, s: tf.cast(a, s.dtype), output.action, action_spec)
  return output._replace(action=action), new_state


class Policy:
  """Computes actions for a batch. Owns its network; called from one thread only.

  The weights change only between two batches, all at once, and have a version. Reading
  variables that the learner is writing would mix two versions.
  """

  def __init__(
    self, spec: types.EnvironmentSpec, acting: agent_lib.Acting, published: PublishedVariables
  ):
    network = acting.make()
    self._spec = spec
    self._network = network
    self._published = published
    self.num_uniforms = acting.num_uniforms
    self.version = -1  # older than any published one

    def compute(
      inputs: types.AgentInput, state: types.Nest, exploration: types.Exploration
    ) -> tuple[types.AgentOutput, types.Nest]:
      return act(network, acting, spec.action, inputs, state, exploration)

    def assign(values: tuple[tf.Tensor, ...]) -> tuple[()]:
      for variable, value in zip(read, values):
        variable.assign(value)
      return ()

    self._compute = graph_function.GraphFunction(
      compute,
      graph_function.batch_specs(
        (self._example_inputs(), self.initial_state(), self.example_exploration())
      ),
    )
    # Indices of the network's variables that acting reads, in its order. The learner publishes
    # these.
    self.variables_read = self._compute.variables_read(network.variables)
    read = [network.variables[i] for i in self.variables_read]
    self._assign = graph_function.GraphFunction(
      assign, (tuple(tf.TensorSpec(v.shape, v.dtype) for v in read),)
    )

  def initial_state(self) -> types.Nest:
    """Returns the state of a new episode, numpy `[1, ...]`."""
    return tree.map_structure(lambda x: x.numpy(), self._network.initial_state(1))

  def refresh(self) -> None:
    """Loads the newest published weights, if they are new."""
    latest = self._published.latest()
    if latest is not None and latest.version != self.version:
      self._assign(latest.values)
      self.version = latest.version

  def newest_version(self) -> int:
    """Returns the version of the newest published weights, loaded or not; -1 before the first."""
    latest = self._published.latest()
    return -1 if latest is None else latest.version

  def __call__(
    self, inputs: types.AgentInput, state: types.Nest, exploration: types.Exploration
  ) -> tuple[types.AgentOutput, types.Nest]:
    """Acts on numpy arrays `[N, ...]`; returns (actions and predictions, new state) `[N, ...]`."""
    return self._compute.numpy(inputs, state, exploration)

  def example_exploration(self) -> types.Exploration:
    """Returns the exploration of one row `[1, ...]` of the first training environment."""
    return types.Exploration(
      uniforms=np.full((1, self.num_uniforms), 0.5, np.float32),
      place=np.zeros(1, np.float32),
      is_evaluation=np.zeros(1, bool),
      agent_steps=np.zeros(1, np.int64),
    )

  def _example_inputs(self) -> types.AgentInput:
    zeros = lambda array_spec: np.zeros((1, *array_spec.shape), array_spec.dtype)
    return types.AgentInput(
      step_type=np.zeros(1, np.uint8),
      reward=np.zeros(1, np.float32),
      discount=np.zeros(1, np.float32),
      previous_action=tree.map_structure(zeros, self._spec.action),
      observation=tree.map_structure(zeros, self._spec.observation),
    )

  def example_row(self) -> tuple[types.AgentInput, types.AgentOutput]:
    """Returns a row of an unroll, without batch axis, as numpy arrays of its shapes and dtypes."""
    inputs = self._example_inputs()
    outputs, _ = self(inputs, self.initial_state(), self.example_exploration())
    return tree.map_structure(lambda x: x[0], (inputs, outputs))

  def example_unroll(self, num_rows: int) -> types.Unroll:
    """Returns an unroll of `num_rows` rows as numpy arrays, for signatures."""
    repeat = lambda x: np.repeat(np.asarray(x)[None], num_rows, axis=0)
    inputs, outputs = tree.map_structure(repeat, self.example_row())
    return types.Unroll(
      tree.map_structure(lambda x: x[0], self.initial_state()),
      inputs,
      outputs,
      np.zeros(num_rows, np.int64),
    )
