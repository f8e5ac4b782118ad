"""Reads what a Reverb server, ours or any other, reports about its tables; changes nothing there.

`server_info` reports counts, sizes and settings, but no item's priority, age or number of samples.
Those come with samples (`inspection_sample`) and with checkpoints of the memory (`saved_items`).
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, NamedTuple

import reverb
import tree

from seed_acme import types
from seed_acme.replay import connection
from seed_acme.replay import local_items
from seed_acme.replay import rate_limit
from seed_acme.replay import tables as tables_lib

_COUNTS = [tables_lib.COUNTS]  # the names of leaves


class NoAnswer(types.UserError):
  """Raised if the server does not answer, or not as Reverb does."""


class Leaf(NamedTuple):
  """One array of an item. shape: None if it is not fixed; dtype: NumPy's name."""

  name: str
  shape: tuple[int | None, ...] | None
  dtype: str


@dataclasses.dataclass(frozen=True)
class Table:
  """State of one table at one moment.

  sampler, remover: in words, with parameters. leaves: None without a signature.
  num_episodes: episodes that items in the table refer to. num_deleted_episodes: how often the last
    item of an episode was removed; an episode that goes on may be counted several times.
  num_unique_samples: items that were sampled at least once, including removed ones.
  inserts_waited_s, samples_waited_s: seconds, since the table was made, in which the rate limiter
    kept a call of that kind waiting; Reverb does not report how many calls wait.
  is_fifo: items are removed in the order of insertion, and in no other way.
  is_in_learner: the items themselves are in the learner's process (`local_items`, `local_queue`),
    and have the same leaves as those of the mirror table.
  shards: the tables of several servers that were merged into this one; () for one server's table.
  """

  name: str
  sampler: str
  remover: str
  limiter: rate_limit.Limiter
  leaves: tuple[Leaf, ...] | None
  num_episodes: int
  num_deleted_episodes: int
  num_unique_samples: int
  inserts_waited_s: float
  samples_waited_s: float
  is_fifo: bool
  is_in_learner: bool
  shards: tuple[Table, ...] = ()

  @property
  def is_harmless_to_sample(self) -> bool:
    """Whether this is our mirror table, whose samples remove nothing and admit no insert."""
    limiter = self.limiter
    return (
      self.name == tables_lib.MIRROR
      and limiter.max_times_sampled < 1
      and not limiter.bounds_samples
      and not limiter.bounds_inserts
    )

  @property
  def holds_counts(self) -> bool:
    """Whether its item is the counts of a `LocalQueue`."""
    return [leaf.name for leaf in self.leaves or ()] == _COUNTS

  @property
  def holds_unrolls(self) -> bool:
    """Whether its items are our `types.Unroll`, leaves `[U, L, ...]`."""
    ranks = {leaf.name: leaf.shape and len(leaf.shape) for leaf in self.leaves or ()}
    return ranks.get('policy_version') == 2 and ranks.get('inputs/step_type') == 2


@dataclasses.dataclass(frozen=True)
class Snapshot:
  """All tables of a server, by name. time_s: monotonic clock of this process."""

  tables: dict[str, Table]
  time_s: float


@dataclasses.dataclass(frozen=True)
class Rates:
  """Rates of one table between two snapshots; None, except `interval_s`, if its counts were reset.

  inserts_waiting, samples_waiting: share of the time in which such a call was kept waiting.
  """

  interval_s: float
  inserts_per_s: float | None = None
  samples_per_s: float | None = None
  inserts_waiting: float | None = None
  samples_waiting: float | None = None


class Server:
  """A read-only client, for the main thread. Raises `NoAnswer` if a call takes longer than
  `timeout_s`."""

  def __init__(self, address: str, timeout_s: int):
    """address: `host:port`, an IPv6 host in brackets."""
    self.address = address
    self._timeout_s = timeout_s
    self._client = connection.client(address)

  def snapshot(self, timeout_s: int | None = None) -> Snapshot:
    """Reads the state of all tables. timeout_s: for this call; None = that of the client."""
    timeout_s = timeout_s or self._timeout_s
    try:
      infos = self._client.server_info(timeout=timeout_s)
    except (reverb.ReverbError, RuntimeError) as error:
      raise NoAnswer(
        f'{self.address} does not answer as a Reverb server within {timeout_s} s: '
        'check the address, and that the program behind it still runs; while a server saves its '
        'memory it answers nobody, so try again'
      ) from error
    time_s = time.monotonic()
    tables = {name: _table(infos[name]) for name in sorted(infos)}
    if (queue := tables.get(tables_lib.UNROLLS)) is not None and queue.is_in_learner:
      if queue.holds_counts and queue.limiter.size:
        [item] = self._client.sample(tables_lib.UNROLLS, 1, emit_timesteps=False)
        queue = _local_queue(queue, *item.data[0].tolist())
      leaves = tables[tables_lib.MIRROR].leaves
      tables[tables_lib.UNROLLS] = dataclasses.replace(queue, leaves=leaves)
    return Snapshot(tables, time_s)


def rates(before: Snapshot, after: Snapshot, name: str) -> Rates:
  """Returns the rates of the table `name`, which must be in `after`."""
  interval_s = max(1e-9, after.time_s - before.time_s)
  old, new = before.tables.get(name), after.tables[name]
  if (
    old is None
    or new.limiter.inserts < old.limiter.inserts
    or new.limiter.samples < old.limiter.samples
  ):
    return Rates(interval_s)  # the table was reset, or the server restarted
  share = lambda waited_s: min(1.0, max(0.0, waited_s / interval_s))
  return Rates(
    interval_s,
    (new.limiter.inserts - old.limiter.inserts) / interval_s,
    (new.limiter.samples - old.limiter.samples) / interval_s,
    share(new.inserts_waited_s - old.inserts_waited_s),
    share(new.samples_waited_s - old.samples_waited_s),
  )


def _table(info: Any) -> Table:
  """Converts a `reverb.reverb_types.TableInfo`."""
  limiter, worker = info.rate_limiter_info, info.table_worker_time
  fifo = 'fifo'
  leaves = None if info.signature is None else _leaves(info.signature)
  is_fifo = info.remover_options.WhichOneof('distribution') == fifo and (
    info.max_times_sampled < 1
    or info.max_times_sampled == 1
    and info.sampler_options.WhichOneof('distribution') == fifo
  )
  return Table(
    name=info.name,
    sampler=_selector(info.sampler_options),
    remover=_selector(info.remover_options),
    limiter=rate_limit.Limiter(
      samples_per_insert=limiter.samples_per_insert,
      min_size_to_sample=limiter.min_size_to_sample,
      min_diff=limiter.min_diff,
      max_diff=limiter.max_diff,
      inserts=limiter.insert_stats.completed,
      samples=limiter.sample_stats.completed,
      size=info.current_size,
      max_size=info.max_size,
      max_times_sampled=max(0, info.max_times_sampled),
    ),
    leaves=leaves,
    num_episodes=info.num_episodes,
    num_deleted_episodes=info.num_deleted_episodes,
    num_unique_samples=info.num_unique_samples,
    # Reverb names what the waiting call waits for: an insert waits for samples.
    inserts_waited_s=worker.waiting_for_sampling_ms / 1e3,
    samples_waited_s=worker.waiting_for_inserts_ms / 1e3,
    is_fifo=is_fifo,
    is_in_learner=[leaf.name for leaf in leaves or ()] in ([local_items.TICKET], _COUNTS),
  )


def _local_queue(table: Table, inserts: int, samples: int, size: int, max_size: int) -> Table:
  """Describes the queue whose counts a table holds like a table of its items."""
  return dataclasses.replace(
    table,
    sampler='fifo',
    remover='fifo',
    limiter=rate_limit.Limiter(1.0, 1, 0.0, max_size, inserts, samples, size, max_size, 1),
    num_episodes=0,
    num_deleted_episodes=0,
    num_unique_samples=samples,
    inserts_waited_s=0.0,
    samples_waited_s=0.0,
    is_fifo=True,
  )


def _selector(options: Any) -> str:
  """Describes a sampler or remover in words; options: `KeyDistributionOptions`."""
  kind = options.WhichOneof('distribution')
  if kind == 'prioritized':
    return f'prioritized (exponent {options.prioritized.priority_exponent:g})'
  if kind == 'heap':
    return f'heap ({"lowest" if options.heap.min_heap else "highest"} priority first)'
  return kind or 'unknown'


def _leaves(signature: Any) -> tuple[Leaf, ...]:
  """Lists leaves in the order of Reverb's columns, named by their specification or path."""
  specs = tree.flatten_with_path(signature)
  names = [spec.name or '' for _, spec in specs]
  if len(set(names)) < len(names) or not all(names):
    names = ['/'.join(map(str, path)) or f'leaf_{i}' for i, (path, _) in enumerate(specs)]
  return tuple(
    Leaf(name, None if spec.shape.rank is None else tuple(spec.shape.as_list()), spec.dtype.name)
    for name, (_, spec) in zip(names, specs)
  )
