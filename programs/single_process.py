"""The reference: the same objects as the distributed program, in one thread, without RPC.

Actors, inference, replay and learner take turns. With a queue it is repeatable bit for bit
with a seed; what Reverb draws from a replay memory cannot be seeded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seed_acme import actor as actor_lib
from seed_acme import config as config_lib
from seed_acme import counting
from seed_acme import graph_function
from seed_acme import run_directory
from seed_acme import training
from seed_acme import types
from seed_acme.programs import actors
from seed_acme.programs import build
from seed_acme.programs import build_replay
from seed_acme.replay import dataset as dataset_lib


def run(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  should_stop: Callable[[], bool] = lambda: False,
) -> str:
  """Trains to the end of the budget; returns `training.FINISHED` or `training.STOPPED`."""
  program = SingleProcess(config, run_dir)
  try:
    with graph_function.in_calling_thread():
      return _train(program, should_stop)
  finally:
    program.close()


def _train(program: SingleProcess, should_stop: Callable[[], bool]) -> str:
  while not program.loop.is_finished():
    if should_stop():
      program.loop.finish(training.STOPPED)
      return training.STOPPED
    program.step()
  program.loop.finish(training.FINISHED)
  return training.FINISHED


class _QueueTurns:
  """Whose turn it is with a queue: nobody may wait for the other in one thread."""

  def __init__(self, config: config_lib.ExperimentConfig):
    self._config = config
    self._num_queued = 0  # unrolls in the table, or on their way to the learner

  def may_insert(self) -> bool:
    return self._num_queued + self._config.replay.unrolls_per_item <= self._config.replay.queue_size

  def inserted(self) -> None:
    self._num_queued += self._config.replay.unrolls_per_item

  def may_sample(self) -> bool:
    return self._num_queued >= self._config.agent.batch_size

  def sampled(self) -> None:
    self._num_queued -= self._config.agent.batch_size


class _MemoryTurns:
  """Whose turn it is with a replay memory: the replay ratio, exactly, from the minimum size on.

  Reverb's rate limiter lets either side run ahead by two batches, so it never blocks these.
  """

  def __init__(self, config: config_lib.ExperimentConfig, num_inserted: int, num_sampled: int):
    """num_inserted, num_sampled: as the rate limiter has counted them, over all resumptions."""
    assert isinstance(config.agent, config_lib.ReplayAgentConfig)
    self._agent = config.agent
    self._num_inserted = num_inserted
    self._num_sampled = num_sampled

  def may_insert(self) -> bool:
    return True

  def inserted(self) -> None:
    self._num_inserted += 1

  def may_sample(self) -> bool:
    surplus = self._num_inserted - self._agent.replay_min_size
    return surplus >= 0 and self._num_sampled <= self._agent.replay_ratio * surplus

  def sampled(self) -> None:
    self._num_sampled += self._agent.batch_size


class SingleProcess:
  """Everything of a run; `step` lets every actor act once and then trains on what is there."""

  def __init__(self, config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory):
    self._config = config
    acting = build.make_acting(config)
    self._replay = build_replay.make_server(config, run_dir, acting, config.replay.port)
    run_directory.write_json(run_dir.addresses, {'replay': self._replay.address})
    self.writer = build_replay.make_writer(config, acting, self._replay.address)
    self._memory = build_replay.make_memory(config, acting, self._replay.address)
    self.counters = counting.Counters()
    self.server = build.make_server(config, acting, self.writer, self.counters)
    self.loop = build.make_training_loop(
      config, run_dir, acting, self.server, self.counters, self._memory
    )
    self.loop.restore()
    self._turns: _QueueTurns | _MemoryTurns = (
      _QueueTurns(config) if self._memory is None else _MemoryTurns(config, *self._memory.counts())
    )
    self._samples = iter(
      dataset_lib.make_dataset(
        self._replay.address,
        config.agent.batch_size,
        config.replay.unrolls_per_item,
        config.replay.prefetch_batches,
      )
    )
    self._channels: list[list[actor_lib.LocalChannel]] = []
    self.actors = [self._make_actor(index) for index in range(actors.num_actor_nodes(config))]

  def _make_actor(self, index: int) -> actor_lib.Actor:
    channels: list[actor_lib.LocalChannel] = []

    def connect(_: np.ndarray) -> actor_lib.LocalChannel:
      channels.append(actor_lib.LocalChannel(self.server.step))
      return channels[-1]

    self._channels.append(channels)
    return actors.make_actor(
      self._config,
      index,
      attempt=self.loop.resumptions,
      run_seed=self._config.seed + self.loop.resumptions,
      connect=connect,
    )

  def step(self) -> None:
    """One step of every actor that need not wait, then all the updates there is data for."""
    for actor, channels in zip(self.actors, self._channels):
      # All are asked: what a request finishes is handed on when it is held.
      held = [self._holds(channel.waiting()) for channel in channels]
      if not any(held):
        actor.step()
      while self.writer.has_item():
        self._write_one_item()

  def _holds(self, request: types.ActorRequest | None) -> bool:
    return request is not None and self.server.holds(request)

  def _write_one_item(self) -> None:
    if self._turns.may_insert():
      self.writer.write_item()
      self._turns.inserted()
    while self._turns.may_sample():
      with self.loop.timer.phase('sample'):
        sample = next(self._samples)
      self._turns.sampled()
      self.loop.train(sample)
      if self._memory is not None:
        self._memory.flush()

  def close(self) -> None:
    """Stops replay and closes the environments and the logs."""
    for actor in self.actors:
      actor.close()
    self.loop.close()
    self.writer.stop()
    self._replay.stop()
