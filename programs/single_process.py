"""The reference: the same objects as the distributed program, in one thread, without RPC.

Bit-for-bit repeatable with a seed: actors, inference, replay and learner take turns.
"""
from __future__ import annotations

from collections.abc import Callable

from seed_acme import actor as actor_lib
from seed_acme import config as config_lib
from seed_acme import counting
from seed_acme import graph_function
from seed_acme import run_directory
from seed_acme import training
from seed_acme.programs import actors
from seed_acme.programs import build
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import writer as writer_lib


def run(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory,
        should_stop: Callable[[], bool] = lambda: False) -> str:
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


class SingleProcess:
  """Everything of a run; `step` lets every actor act once and then trains on what is there."""

  def __init__(self, config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory):
    self._config = config
    acting = build.make_acting(config)
    self._replay = build.make_replay_server(config, acting, config.replay.port)
    self.writer = writer_lib.ReplayWriter(
        self._replay.address, config.replay.unrolls_per_item, config_lib.writer_backlog(config))
    self.counters = counting.Counters()
    self.server = build.make_server(config, acting, self.writer, self.counters)
    self.loop = build.make_training_loop(config, run_dir, acting, self.server, self.counters)
    self.loop.restore()
    self._samples = iter(dataset_lib.make_dataset(
        self._replay.address, config.agent.batch_size, config.replay.unrolls_per_item))
    self._num_queued = 0  # unrolls in the table, or on their way to the learner
    self.actors = [
        actors.make_actor(config, index, attempt=self.loop.resumptions,
                          run_seed=config.seed + self.loop.resumptions,
                          connect=lambda env_ids: actor_lib.LocalChannel(self.server.step))
        for index in range(actors.num_actor_nodes(config))]

  def step(self) -> None:
    """One step of every actor, then all the updates that the queue has data for."""
    for actor in self.actors:
      actor.step()
      while self.writer.has_item():
        self._write_one_item()

  def _write_one_item(self) -> None:
    if self._num_queued + self._config.replay.unrolls_per_item <= self._config.replay.queue_size:
      self.writer.write_item()
      self._num_queued += self._config.replay.unrolls_per_item
    if self._num_queued >= self._config.agent.batch_size:
      with self.loop.timer.phase('sample'):
        sample = next(self._samples)
      self.loop.train(sample)
      self._num_queued -= self._config.agent.batch_size

  def close(self) -> None:
    """Stops replay and closes the environments and the logs."""
    for actor in self.actors:
      actor.close()
    self.loop.close()
    self.writer.stop()
    self._replay.stop()
