"""Data parallelism: the rows of a network's batch are split over hosts and training devices.

Forward and backward passes of networks run on all devices, each on its share of the batch. All
else is computed once, on the first device, from the predictions for the whole batch: the loss,
returns, statistics and the optimiser step. So a loss need not know how many devices there are, and
a mean over unmasked steps is the mean over the whole batch, however it is split. Variables are
placed on the first device; the other devices read them, and gradients are summed on the first.

With several learner hosts, each host has a copy of the variables, and the hosts exchange samples,
predictions and gradients. Every host then computes the rest from the same numbers, so the copies
stay equal. Observations and recurrent states are most of a sample's bytes, and a host's networks
need its own rows of them only. So if nothing else reads them, they stay on their host, and their
arrays have fewer rows than all others: `local_rows`.
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
# Rows of the arrays that stay on their host; None if there are none.
_LOCAL_ROWS: contextvars.ContextVar[int | None] = contextvars.ContextVar('local_rows', default=None)


@contextlib.contextmanager
def on_devices(
  devices: Sequence[str], hosts: collectives.Group | None = None, local_rows: int | None = None
) -> Iterator[None]:
  """Places what is traced inside the context on the first device, and splits the batches of
  networks over all devices and, with `hosts`, over the hosts.

  local_rows: batch size of the arrays that hold this host's rows only. Others hold the whole batch,
  which is that of all hosts. None = all do.
  """
  several = tuple(devices) if len(devices) > 1 else ()
  with _set(_DEVICES, several), _set(_HOSTS, hosts), _set(_LOCAL_ROWS, local_rows):
    with devices_lib.scope(devices[0]):
      yield


def over_batch(
  function: Callable[..., Any],
  axes: Sequence[int],
  result_axes: Any,
  *arguments: types.Nest,
  state_index: int | None = None,
) -> Any:
  """Computes `function(*arguments)` with the batch split evenly over the devices of `on_devices`.

  axes: the batch axis of each argument, which is a nest of tensors of known batch size.
  result_axes: the batch axis of the result, or a tuple of axes if the result is a tuple. No row of
  the result may depend on another row of the batch.
  state_index: which result is a recurrent state, of which a host gets its own rows only if
  `on_devices` has `local_rows`. Each argument has either those rows or the whole batch then.
  """
  hosts, devices = _HOSTS.get(), _DEVICES.get()
  if hosts is not None:
    with _set(_HOSTS, None):
      return _over_hosts(hosts, function, axes, result_axes, arguments, state_index)
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
    return over_batch(self._network, (0, 0), (0, 0), inputs, state, state_index=1)

  def unroll(self, inputs: types.AgentInput, state: types.Nest) -> tuple[types.Nest, types.Nest]:
    """Runs rows `[T, B, ...]`; see `core.RecurrentNetwork`."""
    return over_batch(self._network.unroll, (1, 0), (1, 0), inputs, state, state_index=1)


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
  state_index: int | None,
) -> Any:
  """Computes `over_batch` on this host's share; returns the results of all shares on every host,
  except for a state that stays.

  Each host computes the gradient of its own rows. The gradient with respect to an argument that
  depends on variables is exchanged, unless the argument has this host's rows only. The gradient
  with respect to the variables, and to such an argument, is multiplied by the number of hosts,
  because `Group.mean` will average it over them.
  """
  local_rows = _LOCAL_ROWS.get()
  flat_arguments = [tf.convert_to_tensor(x) for x in tree.flatten(tuple(arguments))]
  argument_axes = _by_leaf(axes, arguments)
  stayed = _that_stayed(hosts, local_rows, flat_arguments, argument_axes)
  if local_rows is None:
    shares = _Shares(hosts, _shares(arguments, axes, hosts.number))
  else:
    shares = _Shares(hosts, [local_rows] * hosts.number)
  is_variable = [record_lib.should_record_backprop([x]) for x in flat_arguments]
  structure: types.Nest = None

  @tf.custom_gradient
  def run(*flat: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., Any]]:
    nonlocal structure
    own = shares.own(flat, argument_axes, stayed)
    floats = [x for x in own if x.dtype.is_floating]
    with tf.GradientTape(persistent=True) as tape:
      tape.watch(floats)
      result = over_batch(function, axes, result_axes, *tree.unflatten_as(tuple(arguments), own))
    structure = tree.map_structure(lambda _: None, result)
    parts, part_axes = (result, result_axes)
    if isinstance(result_axes, int):
      parts, part_axes = (result,), (result_axes,)
    keeps = [local_rows is not None and i == state_index for i in range(len(parts))]
    own_outputs = tree.flatten(result)
    leaf_axes, stays = _by_leaf(part_axes, parts), _by_leaf(keeps, parts)

    def gradient(
      *upstream: tf.Tensor, variables: Sequence[tf.Variable] = ()
    ) -> tuple[list[tf.Tensor | None], list[tf.Tensor | None]]:
      known = [i for i, y in enumerate(own_outputs) if y.dtype.is_floating]
      outer = shares.own(*([of[i] for i in known] for of in (upstream, leaf_axes, stays)))
      outer = [dy / hosts.number if stays[i] else dy for i, dy in zip(known, outer)]
      found = tape.gradient(
        [own_outputs[i] for i in known], [*floats, *variables], output_gradients=outer
      )
      of_floats = iter(found[: len(floats)])
      of_own = [next(of_floats) if x.dtype.is_floating else None for x in own]
      wanted = [dx if depends else None for dx, depends in zip(of_own, is_variable)]
      of_arguments = shares.joined(wanted, argument_axes, stayed)
      times = lambda dv: None if dv is None else tf.convert_to_tensor(dv) * hosts.number
      of_arguments = [times(dx) if own else dx for dx, own in zip(of_arguments, stayed)]
      of_variables = [times(dv) for dv in found[len(floats) :]]
      return of_arguments, of_variables

    return shares.joined(own_outputs, leaf_axes, stays), gradient

  outputs = run(*flat_arguments)  # before `structure` is read
  return tree.unflatten_as(structure, outputs)


def _that_stayed(
  hosts: collectives.Group, local_rows: int | None, leaves: Sequence[tf.Tensor], axes: Sequence[int]
) -> list[bool]:
  """Returns which leaves hold this host's rows only.

  Raises ValueError if a leaf has neither those nor all rows, where arrays stay on their host.
  """
  if local_rows is None:
    return [False] * len(leaves)
  all_rows = local_rows * hosts.number
  sizes = [x.shape[axis] for x, axis in zip(leaves, axes)]
  for size in sizes:
    if size not in (local_rows, all_rows):
      raise ValueError(
        f'a network got {size} rows, but a learner host has {local_rows}, and the whole batch '
        f'{all_rows}: an agent that selects rows of the batch must leave keeps_observations False'
      )
  return [size == local_rows for size in sizes]


def _by_leaf(of_parts: Sequence[Any], parts: Sequence[types.Nest]) -> list[Any]:
  """Repeats the value of each part for each of its leaves."""
  return [value for value, nest in zip(of_parts, parts) for _ in tree.flatten(nest)]


class _Shares:
  """The rows of a batch that each learner host computes; their numbers may differ by one."""

  def __init__(self, group: collectives.Group, sizes: Sequence[int]):
    """sizes: rows of each host. Raises ValueError if there are fewer rows than hosts."""
    if len(sizes) < group.number:
      raise ValueError(f'{sum(sizes)} rows cannot be dealt out over {group.number} learner hosts')
    self._group = group
    self._sizes = sizes

  def own(
    self, leaves: Sequence[tf.Tensor], axes: Sequence[int], are_own: Sequence[bool]
  ) -> list[tf.Tensor]:
    """Returns this host's rows of leaves. are_own: leaves that hold no others."""
    return [
      x if is_own else tf.split(x, self._sizes, axis=axis)[self._group.index]
      for x, axis, is_own in zip(leaves, axes, are_own)
    ]

  def joined(
    self, own: Sequence[tf.Tensor | None], axes: Sequence[int], stay: Sequence[bool]
  ) -> list[tf.Tensor | None]:
    """Concatenates the hosts' rows of leaves. stay: leaves that are returned as they are."""
    found = list(own)
    sent = [i for i, x in enumerate(own) if x is not None and not stay[i]]
    if not sent:
      return found
    greatest = max(self._sizes)
    missing = greatest - self._sizes[self._group.index]
    padded = [_padded(own[i], axes[i], missing) for i in sent]
    kept = [host * greatest + row for host, size in enumerate(self._sizes) for row in range(size)]
    for i, x in zip(sent, self._group.joined(padded, [axes[i] for i in sent])):
      found[i] = x if min(self._sizes) == greatest else tf.gather(x, kept, axis=axes[i])
    return found


def _padded(x: tf.Tensor, axis: int, number: int) -> tf.Tensor:
  return tf.pad(x, [(0, number if i == axis else 0) for i in range(len(x.shape))])
