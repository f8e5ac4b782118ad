"""Keeps a queue's items in the learner's process, while Reverb's table holds only their tickets.

A queue hands out each item once, in order. If the learner itself serves the table, the item's data
need not pass through Reverb, where it would be compressed, sent, unpacked and copied into a batch:
that costs 37 CPU-microseconds for a step of Pong, and a sixth of it with tickets. Reverb still
decides order, blocking and rate limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tree

from seed_acme import types
from seed_acme.tensors import aligned

TICKET = 'ticket'
_OF_ANOTHER_FORM = (  # parts of Reverb's error messages, as of 0.7
  'Received incompatible tensor',
  'Inconsistent number of tensors received',
  'Number of tensors in the replay sample did not match',
)

Parts = Sequence[types.Unroll]  # leaves `[K, L, ...]`, which together make one item `[U, L, ...]`


class NoItem(Exception):
  """Raised for something in a queue that is no item of this run; the text says why."""


class LocalItems:
  """Items by ticket. One thread calls `keep`, another one `take`."""

  def __init__(self) -> None:
    self._items: dict[int, Parts] = {}
    self._next_kept = self._next_taken = 0

  def keep(self, parts: Parts) -> np.ndarray:
    """Stores an item and returns its ticket, `[]` int64."""
    ticket = self._next_kept
    self._items[ticket] = parts
    self._next_kept += 1
    return np.array(ticket, np.int64)

  def num_waiting(self) -> int:
    return len(self._items)

  def take(self, drawn: Mapping[str, Any]) -> Parts:
    """Removes and returns the item, and drops older ones, whose tickets another client has drawn.

    drawn: what a table of tickets handed out.

    Raises `NoItem` for a ticket that was never issued or whose item is gone: any client that
    reaches the table can insert such a ticket.
    """
    ticket = int(drawn[TICKET])
    if ticket not in self._items:
      raise NoItem(f'ticket {ticket} stands for no item that waits')
    for passed in range(self._next_taken, ticket):
      self._items.pop(passed, None)
    self._next_taken = ticket + 1
    return self._items.pop(ticket)


def why_another_form(error: tf.errors.InvalidArgumentError) -> str:
  """Returns Reverb's reason for refusing an item that does not match its table's signature, after
  which a dataset continues with the next one. Raises any other error again."""
  if not any(words in error.message for words in _OF_ANOTHER_FORM):
    raise error
  return error.message.partition('. ')[0]


def signature() -> dict[str, tf.TensorSpec]:
  """Returns the signature of a table of tickets."""
  return {TICKET: tf.TensorSpec((), tf.int64, name=TICKET)}


class Samples:
  """Endless iterable of samples, made of what a queue hands out. Used by one thread."""

  def __init__(
    self,
    queue: Iterable[Any],
    take: Callable[[Any], Parts],
    num_items: int,
    unrolls_per_item: int,
    on_dropped: Callable[[str], None],
  ):
    """queue: `reverb.ReplaySample` of one item or ticket each. They are drawn one by one, not a
    sample at a time, because an invalid one is to be replaced by just one other, and those before
    it are to be kept: while actors wait for new weights, there are no more. take: returns the item
    of what was drawn, or raises `NoItem`. num_items: items in a sample. on_dropped: called with the
    reason when something in the table is not one of our items."""
    self._queue = queue
    self._take = take
    self._num_items = num_items
    self._unrolls_per_item = unrolls_per_item
    self._on_dropped = on_dropped

  def __iter__(self) -> Iterator[types.Sample]:
    queue = iter(self._queue)
    while True:
      items, infos = zip(*(self._next(queue) for _ in range(self._num_items)))
      of_unrolls = (
        aligned.to_tensor(
          np.repeat([getattr(info, name).numpy() for info in infos], self._unrolls_per_item)
        )
        for name in ('key', 'probability')
      )
      yield types.Sample(merged([part for item in items for part in item]), *of_unrolls)

  def _next(self, queue: Iterator[Any]) -> tuple[Parts, Any]:
    """Returns an item, and Reverb's information about it."""
    while True:
      try:
        drawn = next(queue)
        return self._take(drawn.data), drawn.info
      except tf.errors.InvalidArgumentError as error:
        self._on_dropped(why_another_form(error))
      except NoItem as error:
        self._on_dropped(str(error))


def merged(parts: Parts) -> types.Unroll:
  """Merges parts `[K, L, ...]` into tensors `[L, B, ...]`.

  A single part that is a view of `[L, K, ...]` is not copied. The tensors may share its memory, so
  nobody may write to a part again.
  """
  state = tree.map_structure(
    lambda *x: aligned.to_tensor(np.concatenate(x)), *[part.initial_state for part in parts]
  )
  rows = [(part.inputs, part.outputs, part.policy_version) for part in parts]
  return types.Unroll(state, *tree.map_structure(_time_major, *rows))


def _time_major(*leaves: np.ndarray) -> tf.Tensor:
  """Merges leaves `[K, L, ...]` into one `[L, B, ...]`."""
  parts = [leaf.swapaxes(0, 1) for leaf in leaves]
  if len(parts) == 1 and aligned.is_aligned(parts[0]):  # as the inference server has made it
    return aligned.to_tensor(parts[0])
  num_rows, _, *row = parts[0].shape
  rows = aligned.empty((num_rows, sum(part.shape[1] for part in parts), *row), parts[0].dtype)
  np.concatenate(parts, axis=1, out=rows)
  return aligned.to_tensor(rows)
