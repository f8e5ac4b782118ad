"""Counts unrolls on their way through replay, so that lost ones are noticed."""

from __future__ import annotations

from collections.abc import Callable
import time

import reverb

from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import local_queue as local_queue_lib
from seed_acme.replay import table_counts as table_counts_lib
from seed_acme.replay import writer as writer_lib

_FIRST_ANSWER_S, _ANSWER_S = 60, 1
_PERIOD_S = 10.0  # between two comparisons of the counts, each of which asks the server


class Dropped:
  """Counts items that do not belong to this run, and reports the 1st, the 10th, the 100th ..."""

  def __init__(self, server_address: str, tell: Callable[[str], None]):
    """tell: receives a line for the user, in the thread that fetches samples."""
    self._server_address = server_address
    self._tell = tell
    self.number = 0

  def __call__(self, why: str) -> None:
    self.number += 1
    if self.number == 10 ** (len(str(self.number)) - 1):
      self._tell(
        f'{self.number:,} in the table of the replay server at {self._server_address} '
        f'{"was" if self.number == 1 else "were"} no item of this run and dropped: somebody else '
        f'inserts there; the last one: {why}'
      )


class Account:
  """Counts unrolls that replay confirms and the learner receives, and names what is lost.

  Used by the learner's thread, except for `waiting_for`. Must be made before anything is sampled.
  """

  def __init__(
    self,
    read_counts: Callable[[int], table_counts_lib.TableCounts],
    writer: writer_lib.ReplayWriter,
    prefetcher: dataset_lib.Prefetcher | local_queue_lib.LocalQueue,
    batch_size: int,
    unrolls_per_item: int,
    num_items_under_way: int,
    dropped: Dropped | None = None,
  ):
    """read_counts: returns the counts of the table or queue within so many seconds, or raises as
    `table_counts.read` does. num_items_under_way: items that Reverb takes out of the table before
    they are asked for.
    """
    self._read_counts = read_counts
    self._writer = writer
    self._prefetcher = prefetcher
    self._batch_size = batch_size
    self._unrolls_per_item = unrolls_per_item
    self._num_items_under_way = num_items_under_way
    self._dropped = dropped
    self._num_sampled_before = read_counts(_FIRST_ANSWER_S).sampled
    self._next_s = time.monotonic() + _PERIOD_S

  def confirmed(self) -> int:
    """Unrolls that replay has confirmed to the writer."""
    return self._writer.num_confirmed

  def received(self) -> int:
    """Unrolls that the learner has received; one of a memory counts as often as it was drawn."""
    return self._prefetcher.num_received * self._batch_size

  def missing(self) -> str:
    """Returns a message about unrolls that were lost between replay and learner; '' if there are
    none, or if the last check was less than 10 s ago."""
    if time.monotonic() < self._next_s:
      return ''
    self._next_s = time.monotonic() + _PERIOD_S
    counts = self._counts()
    if counts is None:
      return ''
    handed_out = self._handed_out(counts)
    # Read after the table's count, so that unrolls that arrive in between are not taken for lost.
    under_way = self._under_way()
    num_missing = handed_out - self.received() - under_way
    if num_missing <= 0:
      return ''
    return (
      f'unrolls are lost between replay and learner: {self.confirmed():,} were confirmed by '
      f'replay and {handed_out:,} handed out by it, of which the learner has received '
      f'{self.received():,} and at most {under_way:,} are under way'
    )

  def waiting_for(self) -> str:
    """Describes what the learner waits for while it waits for a sample. Called from any thread."""
    counts = self._counts()
    table = (
      'the replay server does not answer'
      if counts is None
      else f'{self._handed_out(counts):,} were handed out, and {counts.size:,} items '
      f'({self._unrolls_per_item} unrolls each) are in the table'
    )
    return (
      f'a sample of {self._batch_size} unrolls: {self.confirmed():,} were confirmed by '
      f'replay, {self.received():,} received by the learner, {table}'
    )

  def _handed_out(self, counts: table_counts_lib.TableCounts) -> int:
    num_dropped = 0 if self._dropped is None else self._dropped.number
    sampled = counts.sampled - self._num_sampled_before
    return (sampled - num_dropped) * self._unrolls_per_item

  def _under_way(self) -> int:
    """Returns how many unrolls the learner may still receive, at most."""
    # One more batch may be in the making.
    num_batches = 1 + self._prefetcher.num_fetched - self._prefetcher.num_received
    return num_batches * self._batch_size + self._num_items_under_way * self._unrolls_per_item

  def _counts(self) -> table_counts_lib.TableCounts | None:
    """Reads the table's counts; None if the server does not answer at once, as while it saves."""
    try:
      return self._read_counts(_ANSWER_S)
    except (reverb.ReverbError, RuntimeError):
      return None
