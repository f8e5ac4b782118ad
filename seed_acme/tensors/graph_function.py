"""A graph function over nests that is traced once and cheap to call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context
from tensorflow.python.eager import execute
from tensorflow.python.eager.polymorphic_function import atomic_function
import tree

from seed_acme import types
from seed_acme.tensors import aligned
from seed_acme.tensors import nests

# Operations that `tf.cond` and `tf.while_loop` become; the serial executor has no kernel for the
# `Switch` operation that they need.
_CONTROL_FLOW = frozenset(
  {'If', 'StatelessIf', 'While', 'StatelessWhile', 'Case', 'StatelessCase', 'Switch', 'RefSwitch'}
)
_COLLECTIVE = frozenset({'CollectiveGatherV2', 'CollectiveReduceV2'})  # waits for other hosts


class GraphFunction:
  """Compiles `function(*arguments)` for the shapes of `specs`.

  `tf.function` checks the whole nest of its arguments on every call, to decide whether it must
  trace again, which costs several times as much as a small network. The shapes of a run do not
  change, so this traces once and calls the concrete function with flat tensors.
  """

  def __init__(
    self, function: Callable[..., types.Nest], specs: tuple[types.Nest, ...], xla: bool = False
  ):
    """specs: a nest of `tf.TensorSpec` for each argument; None dimensions may vary.

    xla: compile to a few large kernels, which takes seconds at the first call.
    """
    self._specs = specs
    self._output_structure: types.Nest = None

    def flat_function(*flat: tf.Tensor) -> list[tf.Tensor]:
      output = function(*tree.unflatten_as(specs, flat))
      # Nests of tensors do not outlive the trace; only their structure is kept.
      self._output_structure = tree.map_structure(lambda _: None, output)
      return tree.flatten(output)

    # Placeholders are named by position, because paths of nests are not valid TensorFlow names.
    flat_specs = [
      tf.TensorSpec(spec.shape, spec.dtype, name=f'argument_{i}')
      for i, spec in enumerate(tree.flatten(specs))
    ]
    # Without autograph, whose long tracebacks would hide the error of a loss or a network.
    self._function = tf.function(
      flat_function, input_signature=flat_specs, autograph=False, jit_compile=xla or None
    )
    self._concrete = self._function.get_concrete_function()
    self._captured = list(self._concrete.captured_inputs)
    runtime_function = self._concrete._inference_function
    self._name = runtime_function.name.decode()
    self._num_outputs = len(self._concrete.outputs)
    self._explained_errors = atomic_function.InterpolateRuntimeError(runtime_function)
    self._needs_parallel = not xla and _needs_parallel(self._concrete)
    self._stand_ins = [None] * len(flat_specs) if xla else _stand_ins(self._concrete, flat_specs)
    self._unflatten_output = nests.unflattener(self._output_structure)

  def __call__(self, *arguments: types.Nest) -> types.Nest:
    """Calls the function with numpy arrays or tensors that match the specs; TensorFlow raises if a
    dtype differs."""
    return self._unflatten_output(iter(self._call(arguments)))

  def numpy(self, *arguments: types.Nest) -> types.Nest:
    """Calls the function and returns numpy arrays that stay valid. They may share their memory with
    each other and with arguments, so a caller must not change them."""
    return self._unflatten_output(tensor.numpy() for tensor in self._call(arguments))

  def _call(self, arguments: tuple[types.Nest, ...]) -> list[Any]:
    flat = [
      stand_in if stand_in is not None else x if isinstance(x, tf.Tensor) else aligned.to_tensor(x)
      for x, stand_in in zip(tree.flatten(arguments), self._stand_ins, strict=True)
    ]
    inputs = flat + self._captured
    if not self._needs_parallel:
      return self._execute(inputs)
    with _in_parallel():
      return self._execute(inputs)

  def _execute(self, inputs: list[tf.Tensor]) -> list[tf.Tensor]:
    """Executes the function as `self._concrete(*flat)` does.

    That would first check every argument again, and look for gradient tapes and for a graph that is
    being traced. It takes longer than the ops of a small network. The classes that it uses are
    private; we pin TensorFlow's version.
    """
    its_context = context.context()
    options = its_context.function_call_options.as_attrs()
    with self._explained_errors:
      return execute.execute(
        self._name,
        self._num_outputs,
        inputs,
        ('executor_type', options['executor_type'], 'config_proto', options['config_proto']),
        its_context,
      )

  def variables_read(self, variables: Sequence[tf.Variable]) -> tuple[int, ...]:
    """Returns the positions of those `variables` that the function uses, in order of first use."""
    position = {id(variable.handle): i for i, variable in enumerate(variables)}
    return tuple(position[id(x)] for x in self._captured if id(x) in position)


def _needs_parallel(function: Any) -> bool:
  """Whether the serial executor cannot run a function: it has control flow, or uses several devices
  or hosts, which wait for each other."""
  graph = function.graph.as_graph_def()
  return any(_is_elsewhere(captured.device) for captured in function.captured_inputs) or any(
    node.op in _CONTROL_FLOW | _COLLECTIVE or _is_elsewhere(node.device)
    for nodes in (graph.node, *(f.node_def for f in graph.library.function))
    for node in nodes
  )


def _is_elsewhere(device: str) -> bool:
  """Whether `device` is another device than CPU 0, where the arguments are."""
  spec = tf.DeviceSpec.from_string(device)
  return spec.device_type is not None and (spec.device_type, spec.device_index) != ('CPU', 0)


def _stand_ins(function: Any, specs: Sequence[tf.TensorSpec]) -> list[tf.Tensor | None]:
  """Returns an empty tensor for each argument that the function does not need, None for the others.

  Converting a numpy array to a tensor costs as much as two small ops, and a policy needs few of
  its inputs. TensorFlow does not run ops that lead to no output and have no effect, so that the
  shape of a stand-in is never seen.
  """
  needed = _needed_operations(function.graph)
  return [
    None if placeholder.op.name in needed else tf.zeros([0], spec.dtype)
    for placeholder, spec in zip(function.graph.inputs, specs)
  ]


def _needed_operations(graph: Any) -> set[str]:
  """Returns the names of operations that outputs or effects depend on.

  An operation that calls another function, as a condition does, needs all of its inputs.
  """
  rest = [
    *(tensor.op for tensor in graph.outputs),
    *graph.control_outputs,
    *(operation for operation in graph.get_operations() if operation.op_def.is_stateful),
  ]
  needed: set[str] = set()
  while rest:
    operation = rest.pop()
    if operation.name not in needed:
      needed.add(operation.name)
      rest += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
  return needed


def batch_specs(example: types.Nest) -> types.Nest:
  """Returns the TensorSpecs of an example, with an unknown first dimension."""
  return tree.map_structure(lambda x: tf.TensorSpec((None, *x.shape[1:]), x.dtype), example)


@contextlib.contextmanager
def serial_execution() -> Iterator[None]:
  """Makes graph functions called by this thread inside the context run op after op on one thread.

  By default, TensorFlow passes every op that becomes ready to a thread pool, which costs more than
  a small network (a tenth of all CPU-seconds on Catch). The call as a whole still runs on a thread
  of the pool while the caller waits, as with every executor. One op may still use several threads.
  Functions with a condition or a loop run as usual. With a GPU, whose ops are asynchronous, nothing
  changes.
  """
  if tf.config.list_physical_devices('GPU'):
    yield
    return
  before = context.context().function_call_options
  config = tf.compat.v1.ConfigProto.FromString(before.config_proto_serialized)
  # To save memory, TensorFlow rewrites long sums of large tensors (residual networks, gradients of
  # shared weights) into reference variables, which this executor does not support.
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
  """Undoes `serial_execution` inside the context."""
  before = context.context().function_call_options
  context.context().function_call_options = None  # TensorFlow's default
  try:
    yield
  finally:
    context.context().function_call_options = before
