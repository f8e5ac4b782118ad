"""The replay side of a run: its server, restored or new, its writer and its memory."""

from __future__ import annotations

from collections.abc import Callable
import functools
import pathlib

import numpy as np
import tensorflow as tf
import tree

from seed_acme import config as config_lib
from seed_acme import sizes
from seed_acme.programs.building import build
from seed_acme.replay import account as account_lib
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import local_items as local_items_lib
from seed_acme.replay import memory as memory_lib
from seed_acme.replay import server as server_lib
from seed_acme.replay import writer as writer_lib
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.utils import graph_function


def make_replay_server(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory,
  acting: build.Acting,
  port: int,
  items: local_items_lib.LocalItems | None = None,
  host: int = 0,
) -> server_lib.ReplayServer:
  """Serves the agent's tables on `port` (0 = any free one).

  items: keeps the items of a queue in this process; None = the table keeps them. host: among the
  learner hosts; config says what it keeps, see `sizes.share`.
  They start with what the checkpoints of the run hold of them, the newest that has a memory.
  Where the replay memory cannot be restored the run goes on with an empty one, and says why.
  """
  spec = config.agent.replay_spec()
  serve = functools.partial(
    server_lib.ReplayServer,
    spec,
    config.agent.batch_size,
    config.replay.queue_size,
    config.replay.unrolls_per_item,
    acting.example_unroll(config),
    port,
    keeps_items=items is None,
  )
  if not spec.is_memory:
    return serve()
  in_progress = run.replay_in_progress_of(host)
  saved, reason = _saved_replay(config, run)
  if saved is not None:
    restore_from = _part(saved, config.num_learner_hosts, host)
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


def _part(saved: pathlib.Path, num_hosts: int, host: int) -> pathlib.Path:
  """What one of several learner hosts restores; another number of them saved it otherwise."""
  return saved if num_hosts == 1 else saved / checkpoint.part_of_host(host)


def _saved_replay(
  config: config_lib.ExperimentConfig, run: run_directory.RunDirectory
) -> tuple[pathlib.Path | None, str]:
  """The replay saved last, or None; and why it is not the newest checkpoint's ('' if it is, and
  in a new run)."""
  saved = checkpoint.all_whole(run.checkpoints)
  if saved and not config.checkpoint.replay:
    return None, 'checkpoint.replay is False'
  reason = ''
  for path in reversed(saved):
    folder, why_not = _replay_of(path)
    if folder is not None:
      return folder, reason
    reason = reason or why_not
  return None, reason


def _replay_of(path: pathlib.Path) -> tuple[pathlib.Path | None, str]:
  """That of a checkpoint, or None; and why it is None."""
  try:
    folder = checkpoint.replay_folder(path)
  except checkpoint.Damaged as error:
    return None, str(error)
  if folder is None:
    left_out = 'a full disk or checkpoint.replay=False leaves it out'
    return None, f'checkpoint {path.name} has none: {left_out}'
  return folder, ''


def take_over(config: config_lib.ExperimentConfig, server_address: str) -> None:
  """For a learner whose replay has a node of its own, before anything is written.

  The node may have outlived another learner. A memory is kept; what stands in a queue was acted
  with weights that are gone, and is no whole update, as strictly on-policy steps need.
  """
  if not config.agent.replay_spec().is_memory:
    server_lib.empty_queue(server_address)


def make_writer(
  config: config_lib.ExperimentConfig,
  acting: build.Acting,
  server_address: str,
  memory: memory_lib.ReplayMemory | None,
  items: local_items_lib.LocalItems | None = None,
) -> writer_lib.ReplayWriter:
  """Computes initial priorities where the agent says how."""
  return writer_lib.ReplayWriter(
    server_address,
    config.replay.unrolls_per_item,
    sizes.writer_backlog(config),
    _initial_priorities(config, acting, memory),
    items,
  )


def make_samples(
  config: config_lib.ExperimentConfig,
  server_address: str,
  writer: writer_lib.ReplayWriter,
  num_ahead: int,
  on_failure: Callable[[BaseException], None],
  items: local_items_lib.LocalItems | None = None,
) -> tuple[dataset_lib.Prefetcher, account_lib.Account]:
  """The learner's samples, fetched ahead so many, and the account of them. Not started yet."""
  sizes = (server_address, config.agent.batch_size, config.replay.unrolls_per_item, num_ahead)
  prefetcher = dataset_lib.Prefetcher(
    dataset_lib.make_samples(*sizes, items), on_failure, num_ahead
  )
  return prefetcher, account_lib.Account(
    server_address,
    writer,
    prefetcher,
    config.agent.batch_size,
    config.replay.unrolls_per_item,
    dataset_lib.num_items_under_way(*sizes),
  )


def _initial_priorities(
  config: config_lib.ExperimentConfig, acting: build.Acting, memory: memory_lib.ReplayMemory | None
) -> writer_lib.InitialPriorities | None:
  agent = acting.agent
  if config.agent.replay_spec().kind != 'prioritized':
    return None
  if agent.initial_priorities is None:
    assert memory is not None
    return lambda unrolls: np.array(memory.greatest_priority)
  initial_priorities = agent.initial_priorities
  specs = tree.map_structure(
    lambda x: tf.TensorSpec((config.replay.unrolls_per_item, *np.shape(x)), np.asarray(x).dtype),
    acting.example_unroll(config),
  )
  return graph_function.GraphFunction(lambda unrolls: initial_priorities(unrolls), (specs,)).numpy


def make_memory(
  config: config_lib.ExperimentConfig, server_address: str
) -> memory_lib.ReplayMemory | None:
  """None for a queue."""
  spec = config.agent.replay_spec()
  if not spec.is_memory:
    return None
  return memory_lib.ReplayMemory(server_address, has_priorities=spec.kind == 'prioritized')
