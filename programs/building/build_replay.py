"""The replay side of a run: servers, restored or new, with their writers and memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import functools
import pathlib

import numpy as np
import tensorflow as tf
import tree

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.programs.building import build
from seed_acme.replay import account as account_lib
from seed_acme.replay import connection
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import local_queue as local_queue_lib
from seed_acme.replay import memory as memory_lib
from seed_acme.replay import server as server_lib
from seed_acme.replay import table_counts as table_counts_lib
from seed_acme.replay import tables as tables_lib
from seed_acme.replay import writer as writer_lib
from seed_acme.replay.shards import accounts
from seed_acme.replay.shards import memories
from seed_acme.replay.shards import samples
from seed_acme.replay.shards import writers
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.tensors import graph_function
from seed_acme.transport import fence as fence_lib


def make_replay_server(
  run: run_directory.RunDirectory,
  layout: layout_lib.Layout,
  acting: build.Acting,
  is_saved: bool,
  port: int,
  fence: fence_lib.Fence,
  queue_of: tables_lib.QueueOf = 'items',
  host: int = 0,
  shard: int = 0,
) -> server_lib.ReplayServer:
  """Serves the agent's tables of one shard on `port` (0 = any free one).

  is_saved: whether checkpoints include the replay memory. fence: who may connect.
  queue_of: see `tables.make_tables`. host, shard: index of the learner host, and of the shard
    within that host.

  A replay memory is restored from the newest checkpoint that has one. If it cannot be restored, the
  run continues with an empty one and adds a notice that says why.
  """
  part = layout.learners[host].shards[shard]
  serve = functools.partial(
    server_lib.ReplayServer,
    part.spec,
    part.batch_size,
    part.queue_size,
    part.unrolls_per_item,
    acting.example_unroll(),
    port,
    queue_of=queue_of,
    fence=fence,
  )
  if not part.spec.is_memory:
    return serve()
  num_shards = len(layout.learners[host].shards)
  in_progress = memories.part(run.replay_in_progress_of(host), shard, num_shards)
  saved, reason = _saved_replay(run, is_saved)
  if saved is not None:
    restore_from = _part(saved, layout, host, shard)
    try:
      server = serve(checkpoints=in_progress, restore_from=restore_from)
    except server_lib.CannotRestore as error:
      reason = str(error)
    else:
      if reason:
        run.add_notice(
          f'the replay memory is that of checkpoint {saved.parent.name}, older '
          f'than the weights, because {reason}'
        )
      return server
  if reason:
    run.add_notice(f'the replay memory starts empty, because {reason}')
  return serve(checkpoints=in_progress)


def _part(saved: pathlib.Path, layout: layout_lib.Layout, host: int, shard: int) -> pathlib.Path:
  """Returns the folder that one shard of one learner host restores from.

  Its name depends on the numbers of hosts and shards, so a run saved with other numbers has none.
  """
  of_host = saved / checkpoint.part_of_host(host) if layout.has_several_learners else saved
  return memories.part(of_host, shard, len(layout.learners[host].shards))


def _saved_replay(
  run: run_directory.RunDirectory, is_saved: bool
) -> tuple[pathlib.Path | None, str]:
  """Returns the replay saved last, or None, and why it is not that of the newest checkpoint.

  The reason is '' if it is, and in a new run.
  """
  saved = checkpoint.all_whole(run.checkpoints)
  if saved and not is_saved:
    return None, 'checkpoint.replay is False'
  reason = ''
  for path in reversed(saved):
    folder, why_not = _replay_of(path)
    if folder is not None:
      return folder, reason
    reason = reason or why_not
  return None, reason


def _replay_of(path: pathlib.Path) -> tuple[pathlib.Path | None, str]:
  """Returns the replay folder of a checkpoint; or None and the reason."""
  try:
    folder = checkpoint.replay_folder(path)
  except checkpoint.Damaged as error:
    return None, str(error)
  if folder is None:
    why = 'it was empty then, or a full disk or checkpoint.replay=False left it out'
    return None, f'checkpoint {path.name} has none: {why}'
  return folder, ''


def take_over(
  shard: layout_lib.Shard,
  acting: build.Acting,
  run: run_directory.RunDirectory,
  addresses: Sequence[str],
) -> None:
  """Prepares replay nodes for this learner, before anything is written to them.

  Such a node may have served an earlier learner process. A queue is emptied, because its unrolls
  were acted with weights that are gone, and a part of an update would break strictly on-policy
  steps. A replay memory is kept for a run that goes on; the memory of another run is emptied, with
  a notice, when a new run begins.
  """
  if not shard.spec.is_memory:
    item = _repeated(acting.example_unroll(), shard.unrolls_per_item)
    for address in addresses:
      server_lib.empty_queue(address, item)
  elif checkpoint.newest(run.checkpoints) is None:
    number = sum(map(server_lib.empty_memory, addresses))
    if number:
      run.add_notice(
        f'{number:,} unrolls of an earlier run were dropped from the replay node: this run is new'
      )


def _repeated(unroll: types.Unroll, number: int) -> types.Unroll:
  return tree.map_structure(lambda x: np.repeat(np.asarray(x)[None], number, axis=0), unroll)


def make_memories(
  layout: layout_lib.Layout,
  run: run_directory.RunDirectory,
  is_saved: bool,
  addresses: Sequence[str],
  host: int,
) -> memories.Memories | None:
  """Returns the memories of all shards of a learner host; None for queues.

  is_saved: see `make_replay_server`, which restores from the same folders. addresses: of its
    shards.
  """
  spec = layout.learners[host].shards[0].spec
  if not spec.is_memory:
    return None
  in_progress = run.replay_in_progress_of(host)
  saved, _ = _saved_replay(run, is_saved)
  each = []
  for shard, address in enumerate(addresses):
    restored_from = None if saved is None else _part(saved, layout, host, shard)
    own = memories.part(in_progress, shard, len(addresses))
    has_priorities = spec.kind == 'prioritized'
    each.append(memory_lib.ReplayMemory(address, has_priorities, own, restored_from))
  return memories.Memories(each, in_progress)


def make_writers(
  layout: layout_lib.Layout,
  acting: build.Acting,
  addresses: Sequence[str],
  memory: memories.Memories | None,
  items: Sequence[local_queue_lib.Keeper | None],
  host: int = 0,
) -> writers.Writers:
  """Makes a writer for each shard of a learner host.

  A writer computes initial priorities if the agent defines them; otherwise new items get the
  greatest priority so far.
  """
  shards = layout.learners[host].shards
  initial_priorities = _initial_priorities(shards[0], acting, memory)
  each = [
    writer_lib.ReplayWriter(
      address, shard.unrolls_per_item, shard.writer_backlog, initial_priorities, its_items
    )
    for address, shard, its_items in zip(addresses, shards, items)
  ]
  return writers.Writers(each, layout.shards_of)


def make_samples(
  shards: Sequence[layout_lib.Shard],
  acting: build.Acting,
  addresses: Sequence[str],
  of_shards: writers.Writers,
  num_ahead: int,
  on_failure: Callable[[BaseException], None],
  items: Sequence[local_queue_lib.Keeper | None],
  tell: Callable[[str], None],
) -> tuple[samples.Samples, accounts.Accounts]:
  """Makes the learner's samples and the account of them, neither of them started.

  num_ahead: samples to prefetch, except from a local queue. tell: called with a line for the user
    if another process inserts into a table.
  """
  has_unrolls = any(its_items is None for its_items in items)  # in tables, not beside them
  example = acting.example_unroll() if has_unrolls else None
  sources: list[dataset_lib.Prefetcher | local_queue_lib.LocalQueue] = []
  its_accounts = []
  for shard, address, writer, its_items in zip(shards, addresses, of_shards.each, items):
    sizes = (shard.batch_size, shard.unrolls_per_item)
    if isinstance(its_items, local_queue_lib.LocalQueue):
      sources.append(its_items)
      its_accounts.append(account_lib.Account(its_items.counts, writer, its_items, *sizes, 0))
      continue
    dropped = account_lib.Dropped(address, tell)
    dataset = dataset_lib.make_samples(
      address, *sizes, num_ahead, its_items, dropped, example, shard.spec.is_memory
    )
    sources.append(dataset_lib.Prefetcher(dataset, on_failure, num_ahead, dropped))
    its_accounts.append(
      account_lib.Account(
        functools.partial(table_counts_lib.read, connection.client(address)),
        writer,
        sources[-1],
        *sizes,
        dataset_lib.num_items_under_way(address, *sizes, num_ahead),
        dropped,
      )
    )
  return samples.Samples(sources), accounts.Accounts(its_accounts)


def _initial_priorities(
  shard: layout_lib.Shard, acting: build.Acting, memory: memories.Memories | None
) -> writer_lib.InitialPriorities | None:
  if shard.spec.kind != 'prioritized':
    return None
  initial_priorities = acting.agent.initial_priorities
  if initial_priorities is None:
    assert memory is not None
    return lambda unrolls: np.array(memory.greatest_priority)
  specs = tree.map_structure(
    lambda x: tf.TensorSpec((shard.unrolls_per_item, *np.shape(x)), np.asarray(x).dtype),
    acting.example_unroll(),
  )
  return graph_function.GraphFunction(lambda unrolls: initial_priorities(unrolls), (specs,)).numpy
