"""A graph function over nests, traced once, with a cheap call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op
import tree

from seed_acme import nests
from seed_acme import types


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
    self._unflatten_output = nests.unflattener(self._output_structure)

  def __call__(self, *arguments: types.Nest) -> types.Nest:
    """Arguments as the specs, numpy or tensors; TensorFlow raises where a dtype differs."""
    return self._unflatten_output(iter(self._call(arguments)))

  def numpy(self, *arguments: types.Nest) -> types.Nest:
    """As a call, but the result is numpy arrays, valid for ever and read-only."""
    return self._unflatten_output(tensor.numpy() for tensor in self._call(arguments))

  def _call(self, arguments: tuple[types.Nest, ...]) -> list[Any]:
    flat = [x if isinstance(x, tf.Tensor) else _to_tensor(x) for x in tree.flatten(arguments)]
    # What `self._concrete(*flat)` ends in, after looking at every argument again in Python:
    # half of the cost of a call on a small network. TensorFlow's version is pinned.
    return self._concrete._call_flat(flat, self._captured)


def _to_tensor(array: Any) -> tf.Tensor:
  return constant_op.convert_to_eager_tensor(array, context.context())


def batch_specs(example: types.Nest) -> types.Nest:
  """TensorSpecs of an example with its first dimension left open."""
  return tree.map_structure(lambda x: tf.TensorSpec((None, *x.shape[1:]), x.dtype), example)


@contextlib.contextmanager
def in_calling_thread() -> Iterator[None]:
  """Within it, graph functions called by this thread run on this thread, op after op.

  TensorFlow otherwise hands each call to a pool and waits: two changes of thread, which cost
  more than a small network (a tenth of all CPU-seconds on Catch). One op may still use
  several threads. With a GPU, whose ops are asynchronous, nothing is changed.
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
