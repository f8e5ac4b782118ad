"""The reference program: the objects of the distributed one, without RPC, one after another.

Actors, inference, replay and learner take turns. Nobody waits at a queue, so it is no table of
Reverb's (`local_queue`). With a queue, a seed makes the program repeatable bit for bit; sampling
from a replay memory is Reverb's and cannot be seeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import contextlib
import dataclasses

import numpy as np

from seed_acme import config as config_lib
from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.acting import actor as actor_lib
from seed_acme.envs import closing
from seed_acme.inference import server as server_lib
from seed_acme.learning import training_loop
from seed_acme.programs.building import learner_side
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import actors
from seed_acme.programs.nodes import filming
from seed_acme.programs.nodes import stall_watch
from seed_acme.programs.trial import specification
from seed_acme.progress import waiting
from seed_acme.storage import run_directory
from seed_acme.tensors import graph_function
from seed_acme.transport import fence as fence_lib

_LOOK_S = 0.5  # how often a step that waits checks for the end


def run(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  should_stop: Callable[[], bool] = lambda: False,
  on_hanging_close: Callable[[bool], None] = lambda is_saved: None,
) -> str:
  """Trains to the end of the budget; returns `FINISHED` or `STOPPED` of `training_loop`.

  on_hanging_close: called if the environments' close() does not return, with whether the run was
    saved.
  """
  status = ''
  program = SingleProcess(config, run_dir, should_stop, lambda: on_hanging_close(bool(status)))
  try:
    with graph_function.serial_execution():
      status = _train(program, should_stop)
      return status
  finally:
    program.close()


def _train(program: SingleProcess, should_stop: Callable[[], bool]) -> str:
  program.loop.report_wait()
  while not program.loop.is_finished():
    if should_stop():
      program.loop.finish(training_loop.STOPPED)
      return training_loop.STOPPED
    program.step()
    program.loop.show_life()
  program.loop.finish(training_loop.FINISHED)
  return training_loop.FINISHED


class _QueueTurns:
  """The order of acting and training with a queue, in which one thread cannot wait."""

  def __init__(self, shard: layout_lib.Shard):
    self._shard = shard
    self._num_queued = 0  # unrolls

  def may_insert(self) -> bool:
    return self._num_queued + self._shard.unrolls_per_item <= self._shard.queue_size

  def inserted(self) -> None:
    self._num_queued += self._shard.unrolls_per_item

  def may_sample(self) -> bool:
    return self._num_queued >= self._shard.batch_size

  def sampled(self) -> None:
    self._num_queued -= self._shard.batch_size


class _MemoryTurns:
  """The order of acting and training with a replay memory.

  It keeps the replay ratio exactly once the minimum size is reached. Reverb's rate limiter lets
  either side run ahead by two batches at least, so it never blocks here.
  """

  def __init__(self, shard: layout_lib.Shard, counts: tuple[int, int]):
    """counts: as for `agree`, over all resumptions."""
    self._spec = shard.spec
    self._batch_size = shard.batch_size
    self._num_inserted, self._num_sampled = counts

  def agree(self, counts: tuple[int, int]) -> None:
    """Continues from the rate limiter's own counts of unrolls inserted and sampled.

    The limiter decides who waits, and other processes may have inserted or sampled, too.
    """
    self._num_inserted, self._num_sampled = counts

  def may_insert(self) -> bool:
    return True

  def inserted(self) -> None:
    self._num_inserted += 1

  def may_sample(self) -> bool:
    surplus = self._num_inserted - self._spec.min_size
    return surplus >= 0 and self._num_sampled <= self._spec.ratio * surplus

  def sampled(self) -> None:
    self._num_sampled += self._batch_size


class SingleProcess:
  """All objects of a run; `step` lets every actor act once, then trains on available data."""

  def __init__(
    self,
    config: config_lib.ExperimentConfig,
    run_dir: run_directory.RunDirectory,
    should_stop: Callable[[], bool] = lambda: False,
    on_hanging_close: Callable[[], None] = lambda: None,
  ):
    """should_stop: asked every `_LOOK_S` seconds while a step waits for replay; if true, it ends.
    on_hanging_close: called if close() of environments does not return."""
    # No actor waits for a batch here, so all training environments may share one.
    self._rows_together = config.inference.batch_size or layout_lib.Layout.of(config).num_training
    config = dataclasses.replace(
      config, inference=dataclasses.replace(config.inference, batch_size=self._rows_together)
    )
    sections = sections_lib.split(config)
    [learner] = sections.learners
    self._environment_id, self._tell = config.environment.id, run_dir.add_notice
    self._should_stop = should_stop
    self._failure: BaseException | None = None  # raised in another thread
    self._cleanup = contextlib.ExitStack()
    self._watch = stall_watch.Thread(run_dir, on_hanging_close)
    self._cleanup.callback(self._watch.stop)
    side = learner_side.make(
      learner,
      run_dir,
      specification.of_run(learner, run_dir, run_dir.set_phase),
      self._cleanup,
      on_failure=self._on_failure,
      num_ahead=0,
      takes_turns=True,
      fence=fence_lib.Fence(tell=run_dir.add_notice),
    )
    learner_side.write_addresses(run_dir, side)
    self.writer, self.counters = side.writer, side.counters
    self.servers, self.statistics = side.servers, side.statistics
    self._hold_back = [learner_side.hold_back(side, server) for server in side.servers]
    self.loop = side.loop
    self.replay_addresses = side.replay_addresses
    self._memory, self._samples, self._account = side.memory, side.samples, side.account
    self._layout, self._shown_counts = side.layout, side.shown_counts
    self._turns: list[_QueueTurns | _MemoryTurns] = []
    for shard in side.layout.learners[0].shards:
      memory = None if side.memory is None else side.memory.each[shard.index]
      self._turns.append(
        _QueueTurns(shard) if memory is None else _MemoryTurns(shard, memory.counts())
      )
    if side.memory is not None:
      side.memory.start(self._on_failure)
      self._cleanup.callback(side.memory.stop)
    side.samples.start()
    self._cleanup.callback(side.samples.stop)
    self._channels: list[list[actor_lib.LocalChannel]] = []
    self._films = filming.Films(
      run_dir.videos, lambda: self.counters.snapshot().agent_steps, run_dir.add_notice
    )
    self.actors: list[actor_lib.Actor] = []
    with contextlib.ExitStack() as made:  # whoever gets no object cannot close it
      made.callback(self.close)
      for actor in sections.actors:
        self.actors.append(self._make_actor(actor))
      made.pop_all()

  def _make_actor(self, sections: sections_lib.ActorSections) -> actor_lib.Actor:
    channels: list[actor_lib.LocalChannel] = []

    def connect(env_ids: np.ndarray, spec: types.EnvironmentSpec) -> actor_lib.LocalChannel:
      del spec  # the same as the run's
      channels.append(actor_lib.LocalChannel(self._server_of(env_ids).step))
      return channels[-1]

    self._channels.append(channels)
    return actors.make_actor(
      sections,
      attempt=self.loop.resumptions,
      run_seed=sections.seed + self.loop.resumptions,
      connect=connect,
      activity=self._watch.add(sections),
      films=self._films,
    )

  def step(self) -> None:
    """Steps every actor that need not wait, then makes all updates that the data allows."""
    acting, waiting_channels = [], []
    for actor, channels in zip(self.actors, self._channels):
      # All are asked, because a held request still passes on the unrolls that it finishes.
      held = [self._holds(channel.waiting()) for channel in channels]
      if not any(held):
        acting.append(actor)
        waiting_channels += channels
    self._answer(waiting_channels)
    for actor in acting:
      actor.step()
    is_written = True
    while is_written:
      # First, because a restored memory may have no room before samples are drawn.
      while all(turns.may_sample() for turns in self._turns):
        if not self._train() and self._is_to_end():
          return
      is_written = self._write_items()
    for shown in self._shown_counts:
      shown.update()

  def _answer(self, channels: Sequence[actor_lib.LocalChannel]) -> None:
    """Answers waiting requests in few batches, because a call costs as much as hundreds of rows."""
    for server in self.servers:
      batch: list[actor_lib.LocalChannel] = []
      requests: list[types.ActorRequest] = []
      for channel in channels:
        request = channel.waiting()  # None before the first step
        if request is None or self._server_of(request.env_ids) is not server:
          continue
        num_rows = sum(r.env_ids.size for r in requests) + request.env_ids.size
        if requests and num_rows > self._rows_together:
          _answer_batch(server, batch, requests)
          batch, requests = [], []
        batch.append(channel)
        requests.append(request)
      if requests:
        _answer_batch(server, batch, requests)

  def _holds(self, request: types.ActorRequest | None) -> bool:
    return request is not None and self._hold_back[self._device_of(request.env_ids)](request)

  def _server_of(self, env_ids: np.ndarray) -> server_lib.InferenceServer:
    """Returns the server of the actor which has these environments."""
    return self.servers[self._device_of(env_ids)]

  def _device_of(self, env_ids: np.ndarray) -> int:
    return self._layout.device_of(int(env_ids[0]))

  def _write_items(self) -> bool:
    """Writes one item into each shard that has room; returns whether there was any.

    With one shard this loop ends when no item waits, because a full queue holds a batch, which is
    trained on before the next call. With several, one shard may be full while another lacks its
    part of the batch.
    """
    has_written = False
    for writer, turns in zip(self.writer.each, self._turns):
      if writer.has_item() and turns.may_insert():
        writer.write_item(self._is_to_end)
        turns.inserted()
        has_written = True
    return has_written

  def _train(self) -> bool:
    """Makes one update; returns False if the run is to end, or if the actors have to act first."""
    with self.loop.timer.phase('sample'):
      sample = self._next_sample()
    if sample is None:
      return False
    for turns in self._turns:
      turns.sampled()
    self.loop.train(sample)
    self._wait_for_priorities()
    return True

  def _next_sample(self) -> types.Sample | None:
    """Returns the next sample; None if the run is to end, or if the actors have to act first."""
    with waiting.on(self._account.waiting_for):
      while (sample := self._samples.next(_LOOK_S)) is None:
        if self._is_to_end():
          return None
        if not self._agree():
          return None
    return sample

  def _agree(self) -> bool:
    """Whether the learner may train according to the replay memories' own counts."""
    for memory, turns in zip(self._memory.each if self._memory else (), self._turns):
      counts = memory.counts_now()
      if counts is not None and isinstance(turns, _MemoryTurns):
        turns.agree(counts)
    return all(turns.may_sample() for turns in self._turns)

  def _wait_for_priorities(self) -> None:
    """Waits until new priorities are sent, because the next sample depends on them."""
    while self._memory is not None and not self._memory.wait_until_sent(_LOOK_S):
      if self._is_to_end():
        return

  def _is_to_end(self) -> bool:
    if self._failure is not None:
      raise self._failure
    return self._should_stop()

  def _on_failure(self, error: BaseException) -> None:
    self._failure = self._failure or error

  def close(self) -> None:
    """Closes the logs and the environments, which may hang or raise, and stops replay.

    The environments' errors become one notice: how the run ended is known by now.
    """
    with self._cleanup:
      self.loop.close()
      with closing.told(self._environment_id, self._tell), contextlib.ExitStack() as stack:
        for actor in reversed(self.actors):  # the stack calls the last one first
          stack.callback(actor.close)


def _answer_batch(
  server: server_lib.InferenceServer,
  channels: Sequence[actor_lib.LocalChannel],
  requests: Sequence[types.ActorRequest],
) -> None:
  for channel, reply in zip(channels, server.step(requests)):
    channel.answer(reply)
