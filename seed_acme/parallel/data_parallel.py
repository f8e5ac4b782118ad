"""Data parallelism: the rows of a network's batch are split over hosts and training devices.

Forward and backward passes of networks run on all devices, each on its share of the batch. All
else is computed once, on the first device, from the predictions for the whole batch: the loss,
returns, statistics and the optimiser step. So a loss need not know how many devices there are, and
a mean over unmasked steps is the mean over the whole batch, however it is split. Variables are
placed on the first device; the other devices read them, and gradients are summed on the first.

With several learner hosts, each host has a copy of the variables, and the hosts exchange samples,
predictions and gradients. Every host then computes the rest from the same numbers, so the copies
stay equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import contextvars
from typing import Any

import sonnet as snt
import tensorflow as tf
from tensorflow.python.eager import record as record_lib
import tree

from seed_acme import core as core_lib
from seed_acme import types
from seed_acme.parallel import collectives
from seed_acme.parallel import devices as devices_lib

# Settings of the graph that is being traced; empty and None if there is nothing to split.
_DEVICES: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar('devices', default=())
_HOSTS: contextvars.ContextVar[collectives.Group | None] = contextvars.ContextVar(
  'hosts', default=None
)


@contextlib.contextmanager
def on_devices(devices: Sequence[str], hosts: collectives.Group | None = None) -> Iterator[None]:
  """Places what is traced inside the context on the first device, and splits the batches of
  networks over all devices and, with `hosts`, over the hosts."""
  with _set(_DEVICES, tuple(devices) if len(devices) > 1 else ()), _set(_HOSTS, hosts):
    with devices_lib.scope(devices[0]):
      yield


def over_batch(
  function: Callable[..., Any], axes: Sequence[int], result_axes: Any, *arguments: types.Nest
) -> Any:
  """Computes `function(*arguments)` with the batch split evenly over the devices of `on_devices`.

  axes: the batch axis of each argument, which is a nest of tensors of known batch size.
  result_axes: the batch axis of the result, or a tuple of axes if the result is a tuple. No row of
  the result may depend on another row of the batch.
  """
  hosts, devices = _HOSTS.get(), _DEVICES.get()
  if hosts is not None:
    with _set(_HOSTS, None):
      return _over_hosts(hosts, function, axes, result_axes, arguments)
  if not devices:
    return function(*arguments)
  sizes = _shares(arguments, axes, len(devices))
  parts = zip(*(_dealt(x, axis, sizes) for x, axis in zip(arguments, axes)))
  with _set(_DEVICES, ()):  # the batch of a nested network is not split again
    results = [_on_device(one, function, part) for one, part in zip(devices, parts)]
  if isinstance(result_axes, int):
    return _joined(results, result_axes)
  return tuple(_joined(*pair) for pair in zip(zip(*results), result_axes))


class DataParallelNetwork(snt.Module):
  """Wrapper that splits a network's batches inside `on_devices`, and changes nothing elsewhere."""

  def __init__(self, network: core_lib.RecurrentNetwork, name: str = 'data_parallel'):
    super().__init__(name=name)
    self._network = network

  @property
  def variables(self) -> tuple[tf.Variable, ...]:
    """Variables of the wrapped network, in its order."""
    return self._network.variables

  @property
  def trainable_variables(self) -> tuple[tf.Variable, ...]:
    """Trainable variables of the wrapped network, in its order."""
    return self._network.trainable_variables

  @property
  def value_layer(self) -> Any:
    """See `core.RecurrentNetwork`; None if the network has no such attribute."""
    return getattr(self._network, 'value_layer', None)

  def initial_state(self, batch_size: Any) -> types.Nest:
    """Returns the initial state of the wrapped network."""
    return self._network.initial_state(batch_size)

  def __call__(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs one row `[N, ...]`; see `core.RecurrentNetwork`."""
    return over_batch(self._network, (0, 0), (0, 0), inputs, state)

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs rows `[T, B, ...]`; see `core.RecurrentNetwork`."""
    return over_batch(self._network.unroll, (1, 0), (1, 0), inputs, state)


def unwrapped(network: core_lib.RecurrentNetwork) -> core_lib.RecurrentNetwork:
  """Returns the wrapped network, or `network` itself if it is not wrapped."""
  return network._network if isinstance(network, DataParallelNetwork) else network


@contextlib.contextmanager
def _set(variable: contextvars.ContextVar[Any], value: Any) -> Iterator[None]:
  token = variable.set(value)
  try:
    yield
  finally:
    variable.reset(token)


def _shares(arguments: Sequence[types.Nest], axes: Sequence[int], number: int) -> list[int]:
  """Returns how many rows each share has: `number` shares, or fewer if there are fewer rows."""
  total = next(x.shape[axis] for nest, axis in zip(arguments, axes) for x in tree.flatten(nest))
  if total is None:
    raise ValueError('the size of the batch must be known when it is dealt out over devices')
  number = min(number, total)
  return [total // number + (i < total % number) for i in range(number)]


def _dealt(nest: types.Nest, axis: int, sizes: Sequence[int]) -> list[types.Nest]:
  """Splits a nest into one nest for each share."""
  leaves = [tf.split(x, sizes, axis=axis) for x in tree.flatten(nest)]
  return [tree.unflatten_as(nest, [leaf[i] for leaf in leaves]) for i in range(len(sizes))]


def _joined(parts: Sequence[types.Nest], axis: int) -> types.Nest:
  return tree.map_structure(lambda *x: tf.concat(x, axis=axis), *parts)


def _on_device(device: str, function: Callable[..., Any], arguments: Sequence[types.Nest]) -> Any:
  """Runs `function(*arguments)` and its backward pass on the device.

  By default, a tape places the backward pass on the device where the gradient is computed.
  """
  structure: types.Nest = None

  @tf.custom_gradient
  def run(*flat: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
    nonlocal structure
    floats = [x for x in flat if x.dtype.is_floating]
    # Persistent, because several objectives may compute gradients.
    with tf.device(device), tf.GradientTape(persistent=True) as tape:
      tape.watch(floats)
      result = function(*tree.unflatten_as(tuple(arguments), flat))
    structure = tree.map_structure(lambda _: None, result)
    outputs = tree.flatten(result)

    def gradient(
      *upstream: tf.Tensor, variables: Sequence[tf.Variable] = ()
    ) -> tuple[list[tf.Tensor | None], list[tf.Tensor | None]]:
      pairs = [(y, dy) for y, dy in zip(outputs, upstream) if y.dtype.is_floating]
      with tf.device(device):
        found = tape.gradient(
          [y for y, _ in pairs], [*floats, *variables], output_gradients=[dy for _, dy in pairs]
        )
      of_floats = iter(found[: len(floats)])
      of_arguments = [next(of_floats) if x.dtype.is_floating else None for x in flat]
      return of_arguments, found[len(floats) :]

    return outputs, gradient

  outputs = run(*tree.flatten(tuple(arguments)))
  return tree.unflatten_as(structure, outputs)


def _over_hosts(
  hosts: collectives.Group,
  function: Callable[..., Any],
  axes: Sequence[int],
  result_axes: Any,
  arguments: Sequence[types.Nest],
) -> Any:
  """Computes `over_batch` on this host's share; returns the results of all shares on every host.

  Each host computes the gradient of its own rows. The gradient with respect to an argument that
  depends on variables is exchanged. The gradient with respect to the variables is multiplied by
  `hosts.number`, because `Group.mean` will average it over the hosts.
  """
  sizes = _shares(arguments, axes, hosts.number)
  if len(sizes) < hosts.number:
    raise ValueError(f'{sum(sizes)} rows cannot be dealt out over {hosts.number} learner hosts')
  argument_axes = [axis for nest, axis in zip(arguments, axes) for _ in tree.flatten(nest)]
  structure: types.Nest = None
  leaf_axes: list[int] = []
  flat_arguments = [tf.convert_to_tensor(x) for x in tree.flatten(tuple(arguments))]
  is_variable = [record_lib.should_record_backprop([x]) for x in flat_arguments]

  @tf.custom_gradient
  def run(*flat: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
    nonlocal structure, leaf_axes
    own = [tf.split(x, sizes, axis=a)[hosts.index] for x, a in zip(flat, argument_axes)]
    floats = [x for x in own if x.dtype.is_floating]
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(floats)
      result = over_batch(function, axes, result_axes, *tree.unflatten_as(tuple(arguments), own))
    structure = tree.map_structure(lambda _: None, result)
    leaf_axes = _leaf_axes(result, result_axes)
    own_outputs = tree.flatten(result)
    outputs = _joined_shares(hosts, own_outputs, leaf_axes, sizes)

    def gradient(
      *upstream: tf.Tensor, variables: Sequence[tf.Variable] = ()
    ) -> tuple[list[tf.Tensor | None], list[tf.Tensor | None]]:
      pairs = [
        (y, tf.split(dy, sizes, axis=axis)[hosts.index])
        for y, dy, axis in zip(own_outputs, upstream, leaf_axes)
        if y.dtype.is_floating
      ]
      found = tape.gradient(
        [y for y, _ in pairs], [*floats, *variables], output_gradients=[dy for _, dy in pairs]
      )
      of_floats = iter(found[: len(floats)])
      of_own = [next(of_floats) if x.dtype.is_floating else None for x in own]
      wanted = [i for i, dx in enumerate(of_own) if dx is not None and is_variable[i]]
      of_arguments: list[tf.Tensor | None] = [None] * len(flat)
      if wanted:
        whole = _joined_shares(
          hosts, [of_own[i] for i in wanted], [argument_axes[i] for i in wanted], sizes
        )
        for i, dx in zip(wanted, whole):
          of_arguments[i] = dx
      of_variables = [
        None if dv is None else tf.convert_to_tensor(dv) * hosts.number
        for dv in found[len(floats) :]
      ]
      return of_arguments, of_variables

    return outputs, gradient

  outputs = run(*flat_arguments)  # before `structure` is read
  return tree.unflatten_as(structure, outputs)


def _leaf_axes(result: Any, result_axes: Any) -> list[int]:
  """Returns the batch axis of each leaf of the result."""
  if isinstance(result_axes, int):
    return [result_axes] * len(tree.flatten(result))
  return [axis for part, axis in zip(result, result_axes) for _ in tree.flatten(part)]


def _joined_shares(
  hosts: collectives.Group, own: Sequence[tf.Tensor], axes: Sequence[int], sizes: Sequence[int]
) -> list[tf.Tensor]:
  """Concatenates the shares of the hosts, whose sizes may differ by one row."""
  greatest = max(sizes)
  padded = [_padded(x, axis, greatest - sizes[hosts.index]) for x, axis in zip(own, axes)]
  joined = hosts.joined(padded, axes)
  if min(sizes) == greatest:
    return joined
  kept = [i * greatest + row for i, size in enumerate(sizes) for row in range(size)]
  return [tf.gather(x, kept, axis=axis) for x, axis in zip(joined, axes)]


def _padded(x: tf.Tensor, axis: int, number: int) -> tf.Tensor:
  return tf.pad(x, [(0, number if i == axis else 0) for i in range(len(x.shape))])
