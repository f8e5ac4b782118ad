"""The replay side of a run: its server, restored or new, its writer and its memory."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
import tensorflow as tf
import tree

from seed_acme import checkpoint
from seed_acme import config as config_lib
from seed_acme import graph_function
from seed_acme import run_directory
from seed_acme import types
from seed_acme.programs import build
from seed_acme.replay import memory as memory_lib
from seed_acme.replay import server as server_lib
from seed_acme.replay import writer as writer_lib


def make_server(
  config: config_lib.ExperimentConfig,
  run: run_directory.RunDirectory,
  acting: build.Acting,
  port: int,
) -> server_lib.ReplayServer:
  """Serves the agent's tables on `port` (0 = any free one).

  They start with what the checkpoints of the run hold of them, the newest that has a memory.
  Where the replay memory cannot be restored the run goes on with an empty one, and says why.
  """
  spec = acting.agent.replay_spec(config.agent)
  serve = functools.partial(
    server_lib.ReplayServer,
    spec,
    config.replay.queue_size,
    config.replay.unrolls_per_item,
    acting.example_unroll(config),
    port,
  )
  if spec.memory is None:
    return serve()
  restore_from, reason = _saved_replay(config, run)
  if restore_from is not None:
    try:
      server = serve(checkpoints=run.replay_in_progress, restore_from=restore_from)
    except server_lib.CannotRestore as error:
      reason = str(error)
    else:
      if reason:
        run.add_notice(
          f'the replay memory is that of checkpoint {restore_from.parent.name}, older '
          f'than the weights, because {reason}'
        )
      return server
  if reason:
    run.add_notice(f'the replay memory starts empty, because {reason}')
  return serve(checkpoints=run.replay_in_progress)


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
    try:
      folder = checkpoint.replay_folder(path)
    except types.UserError as error:
      reason = reason or str(error)
      continue
    if folder is not None:
      return folder, reason
    reason = reason or (
      f'checkpoint {path.name} has none: a full disk or checkpoint.replay=False leaves it out'
    )
  return None, reason


def take_over(
  config: config_lib.ExperimentConfig, acting: build.Acting, server_address: str
) -> None:
  """For a learner whose replay has a node of its own, before anything is written.

  The node may have outlived another learner. A memory is kept; what stands in a queue was acted
  with weights that are gone, and is no whole update, as strictly on-policy steps need.
  """
  if acting.agent.replay_spec(config.agent).memory is None:
    server_lib.empty_queue(server_address)


def make_writer(
  config: config_lib.ExperimentConfig, acting: build.Acting, server_address: str
) -> writer_lib.ReplayWriter:
  """Computes initial priorities where the agent has them."""
  return writer_lib.ReplayWriter(
    server_address,
    config.replay.unrolls_per_item,
    config_lib.writer_backlog(config),
    _initial_priorities(config, acting),
  )


def _initial_priorities(
  config: config_lib.ExperimentConfig, acting: build.Acting
) -> writer_lib.InitialPriorities | None:
  agent = acting.agent
  if agent.initial_priorities is None:
    return None
  initial_priorities = agent.initial_priorities
  specs = tree.map_structure(
    lambda x: tf.TensorSpec((config.replay.unrolls_per_item, *np.shape(x)), np.asarray(x).dtype),
    acting.example_unroll(config),
  )
  return graph_function.GraphFunction(
    lambda unrolls: initial_priorities(unrolls, config.agent), (specs,)
  ).numpy


def make_memory(
  config: config_lib.ExperimentConfig, acting: build.Acting, server_address: str
) -> memory_lib.ReplayMemory | None:
  """None for a queue."""
  spec = acting.agent.replay_spec(config.agent)
  if spec.memory is None:
    return None
  return memory_lib.ReplayMemory(server_address, has_priorities=spec.kind == 'prioritized')
