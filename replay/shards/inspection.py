"""Inspects the tables of several Reverb servers as if they were one server's."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses

from seed_acme import types
from seed_acme.replay import inspection
from seed_acme.replay import inspection_sample

_ADDED_UP = ('min_size_to_sample', 'min_diff', 'max_diff', 'inserts', 'samples', 'size', 'max_size')


class Servers:
  """A read-only client of one server, or of all shards of a replay."""

  def __init__(self, addresses: Sequence[str], timeout_s: int):
    """See `inspection.Server`."""
    self.addresses = tuple(addresses)
    self._servers = [inspection.Server(address, timeout_s) for address in addresses]

  def snapshot(self, timeout_s: int | None = None) -> inspection.Snapshot:
    """See `inspection.Server`. Tables that all servers have are merged, see `merge`."""
    found = [server.snapshot(timeout_s) for server in self._servers]
    if len(found) == 1:
      return found[0]
    names = sorted(set.intersection(*(set(snapshot.tables) for snapshot in found)))
    tables = {name: merge([snapshot.tables[name] for snapshot in found]) for name in names}
    return inspection.Snapshot(tables, found[-1].time_s)


def merge(shards: Sequence[inspection.Table]) -> inspection.Table:
  """Merges the shards' tables into one: adds up counts and sizes, and averages waiting times.

  The merged limiter describes the total; whether a call would wait depends on each shard.
  """
  first = shards[0]
  total = lambda name: sum(getattr(shard, name) for shard in shards)
  mean = lambda name: total(name) / len(shards)
  counts = {name: sum(getattr(shard.limiter, name) for shard in shards) for name in _ADDED_UP}
  return dataclasses.replace(
    first,
    limiter=dataclasses.replace(first.limiter, **counts),
    num_episodes=total('num_episodes'),
    num_deleted_episodes=total('num_deleted_episodes'),
    num_unique_samples=total('num_unique_samples'),
    inserts_waited_s=mean('inserts_waited_s'),
    samples_waited_s=mean('samples_waited_s'),
    shards=tuple(shards),
  )


def draw(
  addresses: Sequence[str], table: inspection.Table, num_items: int, timeout_s: float
) -> list[inspection_sample.Item]:
  """Draws like `inspection_sample.draw`, with equally many items from each shard, as the learner
  draws them. Raises `UserError` if no shard hands out any."""
  if not table.shards:
    return inspection_sample.draw(addresses[0], table, num_items, timeout_s)
  items: list[inspection_sample.Item] = []
  nothing: types.UserError | None = None
  for i, (address, shard) in enumerate(zip(addresses, table.shards)):
    number = len(range(i, num_items, len(addresses)))
    try:
      items += inspection_sample.draw(address, shard, number, timeout_s) if number else []
    except types.UserError as error:
      nothing = error
  if not items and nothing is not None:
    raise nothing
  share = 1 / len(addresses)
  return [dataclasses.replace(item, probability=item.probability * share) for item in items]
