"""A graph function over nests, traced once, with a cheap call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op
import tree

from seed_acme import types
from seed_acme.tensors import nests

# What `tf.cond` and `tf.while_loop` become; the serial executor has no kernel for the
# switch that they need.
_CONTROL_FLOW = frozenset(
  {'If', 'StatelessIf', 'While', 'StatelessWhile', 'Case', 'StatelessCase', 'Switch', 'RefSwitch'}
)
_COLLECTIVE = frozenset({'CollectiveGatherV2', 'CollectiveReduceV2'})  # waits for other hosts


class GraphFunction:
  """`function(*arguments)` compiled for the shapes of `specs`.

  `tf.function` looks at the whole nest of its arguments on every call to see whether it has
  to trace again, which costs several times what a small network costs. The shapes of a run do
  not change, so this traces once and calls the concrete function with flat tensors.
  """

  def __init__(
    self, function: Callable[..., types.Nest], specs: tuple[types.Nest, ...], xla: bool = False
  ):
    """specs: a nest of `tf.TensorSpec` for each argument; None dimensions may vary.

    xla: compile to few large kernels; seconds at the first call.
    """
    self._specs = specs
    self._output_structure: types.Nest = None

    def flat_function(*flat: tf.Tensor) -> list[tf.Tensor]:
      output = function(*tree.unflatten_as(specs, flat))
      # Nests of tensors do not outlive the trace; only their structure is kept.
      self._output_structure = tree.map_structure(lambda _: None, output)
      return tree.flatten(output)

    # Placeholders are named by position: paths of nests are no valid names for TensorFlow.
    flat_specs = [
      tf.TensorSpec(spec.shape, spec.dtype, name=f'argument_{i}')
      for i, spec in enumerate(tree.flatten(specs))
    ]
    # Without autograph: it would bury what a loss or a network raises in a page of text.
    self._function = tf.function(
      flat_function, input_signature=flat_specs, autograph=False, jit_compile=xla or None
    )
    self._concrete = self._function.get_concrete_function()
    self._captured = self._concrete.captured_inputs
    self._needs_parallel = not xla and _needs_parallel(self._concrete)
    self._stand_ins = [None] * len(flat_specs) if xla else _stand_ins(self._concrete, flat_specs)
    self._unflatten_output = nests.unflattener(self._output_structure)

  def __call__(self, *arguments: types.Nest) -> types.Nest:
    """Arguments as the specs, numpy or tensors; TensorFlow raises where a dtype differs."""
    return self._unflatten_output(iter(self._call(arguments)))

  def numpy(self, *arguments: types.Nest) -> types.Nest:
    """As a call, but the result is numpy arrays, valid for ever and read-only."""
    return self._unflatten_output(tensor.numpy() for tensor in self._call(arguments))

  def _call(self, arguments: tuple[types.Nest, ...]) -> list[Any]:
    flat = [
      stand_in if stand_in is not None else x if isinstance(x, tf.Tensor) else _to_tensor(x)
      for x, stand_in in zip(tree.flatten(arguments), self._stand_ins)
    ]
    # What `self._concrete(*flat)` ends in, after looking at every argument again in Python:
    # half of the cost of a call on a small network. TensorFlow's version is pinned.
    if self._needs_parallel:
      with _in_parallel():
        return self._concrete._call_flat(flat, self._captured)
    return self._concrete._call_flat(flat, self._captured)

  def variables_read(self, variables: Sequence[tf.Variable]) -> tuple[int, ...]:
    """Which of `variables` the function uses: their positions, in the order of first use."""
    position = {id(variable.handle): i for i, variable in enumerate(variables)}
    return tuple(position[id(x)] for x in self._captured if id(x) in position)


def _needs_parallel(function: Any) -> bool:
  """Whether the serial executor cannot run it: it has control flow, or several devices or hosts,
  which wait for each other."""
  graph = function.graph.as_graph_def()
  return any(
    node.op in _CONTROL_FLOW | _COLLECTIVE or _is_elsewhere(node.device)
    for nodes in (graph.node, *(f.node_def for f in graph.library.function))
    for node in nodes
  )


def _is_elsewhere(device: str) -> bool:
  """Whether it is another device than the one where arguments are."""
  spec = tf.DeviceSpec.from_string(device)
  return spec.device_type is not None and (spec.device_type, spec.device_index) != ('CPU', 0)


def _stand_ins(function: Any, specs: Sequence[tf.TensorSpec]) -> list[tf.Tensor | None]:
  """An empty tensor for each argument that no op reads, None for the others.

  Making a tensor of a numpy array costs as much as two small ops, and a policy reads few of the
  inputs that it is offered.
  """
  outputs = {id(tensor) for tensor in function.graph.outputs}
  return [
    None if placeholder.consumers() or id(placeholder) in outputs else tf.zeros([0], spec.dtype)
    for placeholder, spec in zip(function.graph.inputs, specs)
  ]


def _to_tensor(array: Any) -> tf.Tensor:
  return constant_op.convert_to_eager_tensor(array, context.context())


def batch_specs(example: types.Nest) -> types.Nest:
  """TensorSpecs of an example with its first dimension left open."""
  return tree.map_structure(lambda x: tf.TensorSpec((None, *x.shape[1:]), x.dtype), example)


@contextlib.contextmanager
def serial_execution() -> Iterator[None]:
  """Within it, graph functions called by this thread run op after op, on one thread of a pool.

  TensorFlow otherwise hands every op that becomes ready to the pool, which costs more than a small
  network (a tenth of all CPU-seconds on Catch). The call itself still goes to the pool, and the
  caller waits: TensorFlow runs whole calls there, whatever the executor. One op may still use
  several threads. Functions with a condition or a loop run as ever. With a GPU, whose ops are
  asynchronous, nothing is changed.
  """
  if tf.config.list_physical_devices('GPU'):
    yield
    return
  before = context.context().function_call_options
  config = tf.compat.v1.ConfigProto.FromString(before.config_proto_serialized)
  # TensorFlow rewrites long sums of large tensors (residual networks, gradients of shared
  # weights) into reference variables, to save memory; this executor knows no references.
  config.graph_options.rewrite_options.memory_optimization = (
    rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
  )
  context.context().function_call_options = context.FunctionCallOptions(
    executor_type='SINGLE_THREADED_EXECUTOR', config_proto=config
  )
  try:
    yield
  finally:
    context.context().function_call_options = before


@contextlib.contextmanager
def _in_parallel() -> Iterator[None]:
  """Undoes `serial_execution` for a call."""
  before = context.context().function_call_options
  context.context().function_call_options = None  # TensorFlow's own choice
  try:
    yield
  finally:
    context.context().function_call_options = before
