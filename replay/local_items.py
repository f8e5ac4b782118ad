"""Items of a queue that stay in the learner's process; the table holds their tickets.

A queue hands each item out once, in order. Where the learner itself serves the table, the item
need not pass through Reverb for that: its bytes would be compressed, sent, unpacked and copied
into a batch (37 CPU-microseconds for a step of Pong, a sixth of them like this). Reverb still
decides who waits, keeps the order and counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import constant_op
import tree

from seed_acme import types

TICKET = 'ticket'
_ALIGNMENT = 64  # bytes; TensorFlow copies an array that begins elsewhere


class LocalItems:
  """Unrolls `[U, L, ...]` by ticket. One thread keeps, one takes."""

  def __init__(self) -> None:
    self._items: dict[int, types.Unroll] = {}
    self._next_kept = self._next_taken = 0

  def keep(self, item: types.Unroll) -> np.ndarray:
    """Returns the ticket, `[]` int64."""
    ticket = self._next_kept
    self._items[ticket] = item
    self._next_kept += 1
    return np.array(ticket, np.int64)

  def num_waiting(self) -> int:
    return len(self._items)

  def take(self, ticket: int) -> types.Unroll:
    """The item, which is then the caller's. Older ones go: somebody else drew their tickets."""
    for passed in range(self._next_taken, ticket):
      self._items.pop(passed, None)
    self._next_taken = ticket + 1
    return self._items.pop(ticket)


def signature() -> dict[str, tf.TensorSpec]:
  """What the table holds of an item."""
  return {TICKET: tf.TensorSpec((), tf.int64, name=TICKET)}


class Samples:
  """`types.Sample` of the items whose tickets are drawn, for ever. Used by one thread."""

  def __init__(self, tickets: tf.data.Dataset, items: LocalItems, unrolls_per_item: int):
    """tickets: `reverb.ReplaySample` of all tickets of a sample, `[I]`."""
    self._tickets = tickets
    self._items = items
    self._unrolls_per_item = unrolls_per_item

  def __iter__(self) -> Iterator[types.Sample]:
    for drawn in self._tickets:
      items = [self._items.take(ticket) for ticket in drawn.data[TICKET].numpy().tolist()]
      repeated = (
        np.repeat(x, self._unrolls_per_item) for x in (drawn.info.key, drawn.info.probability)
      )
      yield types.Sample(_merged(items), *map(_tensor, repeated))


def _merged(items: Sequence[types.Unroll]) -> types.Unroll:
  """`[U, L, ...]` each -> tensors `[L, B, ...]`, each number copied once."""
  state = tree.map_structure(
    lambda *x: _tensor(np.concatenate(x)), *[item.initial_state for item in items]
  )
  rows = [(item.inputs, item.outputs, item.policy_version) for item in items]
  return types.Unroll(state, *tree.map_structure(_time_major, *rows))


def _time_major(*leaves: np.ndarray) -> tf.Tensor:
  """`[U, L, ...]` each -> `[L, B, ...]`."""
  num_unrolls, num_rows = leaves[0].shape[:2]
  merged = _aligned((num_rows, num_unrolls * len(leaves), *leaves[0].shape[2:]), leaves[0].dtype)
  for i, leaf in enumerate(leaves):
    merged[:, i * num_unrolls : (i + 1) * num_unrolls] = leaf.swapaxes(0, 1)
  return _tensor(merged)


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
  num_bytes = int(np.prod(shape)) * dtype.itemsize
  memory = np.empty(num_bytes + _ALIGNMENT, np.uint8)
  start = -memory.ctypes.data % _ALIGNMENT
  return memory[start : start + num_bytes].view(dtype).reshape(shape)


def _tensor(array: Any) -> tf.Tensor:
  return constant_op.convert_to_eager_tensor(array, context.context())
