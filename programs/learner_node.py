"""The learner's node: inference server, replay writer, training loop, in one process."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from seed_acme import config as config_lib
from seed_acme import counting
from seed_acme import graph_function
from seed_acme import run_directory
from seed_acme import training
from seed_acme.inference import batching
from seed_acme.inference import membership as membership_lib
from seed_acme.inference import server as server_lib
from seed_acme.programs import actors
from seed_acme.programs import build
from seed_acme.programs import build_replay
from seed_acme.programs import farewell
from seed_acme.programs import node_settings
from seed_acme.programs import node_start
from seed_acme.programs import processes
from seed_acme.replay import dataset as dataset_lib
from seed_acme.replay import server as server_of_replay

_POLL_S = 0.2  # how soon the training loop notices a stop or a failure
_GOODBYE_S = 10.0  # until every actor has heard that the run is over


def run(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  token: str,
  address: str,
  replay_address: str | None,
  stop: threading.Event,
) -> bool:
  """Main thread of the node; returns whether the run is over, or only this node was stopped.

  address: `host:port` to serve on.
  """
  processes.configure_tensorflow(config.learner.tensorflow_threads)
  with contextlib.ExitStack() as cleanup:
    # Innermost, so that the reason is on the disk whatever becomes of the cleanup.
    with processes.reported_failures(run_dir, 'learner/0', node_start.log('learner/0')):
      if replay_address is not None and not server_of_replay.wait_until_up(
        replay_address, config.actor.connect_timeout_s, stop
      ):
        return False
      node = LearnerNodeProcess(config, run_dir, token, address, replay_address, cleanup)
      with graph_function.in_calling_thread():
        status = node.train(stop)
      if status == training.FINISHED:
        if node_start.has_several_hosts():
          node.wait_for_absent(stop)
        node_start.end_program()
  return status == training.FINISHED


class LearnerNodeProcess:
  """Wires the parts and starts the threads; `cleanup` takes them down in reverse order.

  Threads: the transport's only carry messages; one runs `InferenceServer.step`; one writes
  replay; one fetches samples; the caller's trains.
  """

  def __init__(
    self,
    config: config_lib.ExperimentConfig,
    run_dir: run_directory.RunDirectory,
    token: str,
    address: str,
    replay_address: str | None,
    cleanup: contextlib.ExitStack,
  ):
    self._config = config
    self._run_dir = run_dir
    self._failure: BaseException | None = None
    self._status = ''
    acting = build.make_acting(config)
    if replay_address is None:
      replay = build_replay.make_server(config, run_dir, acting, config.replay.port)
      cleanup.callback(replay.stop)
      replay_address = replay.address
    else:
      build_replay.take_over(config, acting, replay_address)
    writer = build_replay.make_writer(config, acting, replay_address)
    cleanup.callback(writer.stop)
    counters = counting.Counters()
    server = build.make_server(config, acting, writer, counters)
    memory = build_replay.make_memory(config, acting, replay_address)
    self.loop = build.make_training_loop(config, run_dir, acting, server, counters, memory)
    self.loop.watch_writer(writer.timer, lambda: writer.num_inserted)
    self.loop.restore()
    batcher = batching.Batcher(
      config_lib.inference_batch_size(config),
      config.inference.timeout_ms / 1e3,
      accepts_training=writer.has_room,
      holds=server.holds,
    )
    acting.published.watch(batcher.wake)
    self._desk = farewell.Desk(
      batcher,
      acting.spec,
      config_lib.num_environments(config),
      config_lib.num_training_environments(config),
      token,
    )
    self._membership = membership_lib.Membership(
      node_settings.by_kind(config), self.loop.resumptions
    )
    transport = farewell.make_transport(
      config, self._desk, int(address.rpartition(':')[2]), self._membership
    )
    self.loop.watch_actors(lambda: _actor_records(config, self._desk))
    self._inference = server_lib.InferenceThread(server, batcher, self._on_failure)
    self._prefetcher = dataset_lib.Prefetcher(
      dataset_lib.make_dataset(
        replay_address,
        config.agent.batch_size,
        config.replay.unrolls_per_item,
        config.replay.prefetch_batches,
      ),
      self._on_failure,
      config.replay.prefetch_batches,
    )
    if memory is not None:
      memory.start(self._on_failure)
      cleanup.callback(memory.stop)
    writer.start(on_room=batcher.wake, on_failure=self._on_failure)
    self._prefetcher.start()
    self._inference.start()
    transport.start()
    cleanup.callback(self._prefetcher.stop)
    cleanup.callback(transport.stop)
    cleanup.callback(self._inference.stop)  # before: it answers whoever still waits
    cleanup.callback(self._dismiss)
    run_directory.write_json(
      run_dir.addresses,
      {'inference': f'{address.rpartition(":")[0]}:{transport.port}', 'replay': replay_address},
    )

  def _on_failure(self, error: BaseException) -> None:
    self._failure = self._failure or error

  def wait_for_absent(self, stop: threading.Event) -> None:
    """After a finished run: tells the actors, and waits for those that have taken part and are
    away. Before Launchpad ends this node, which gives it little time."""
    self._desk.end_run()
    self._inference.stop()
    self._desk.wait_until_heard(
      self._desk.has_come,
      farewell.PATIENCE_S,
      stop,
      lambda missing: self._run_dir.add_notice(
        f'{farewell.absent_actors(self._config, missing)} cannot be told that the run is over: '
        f'waiting for up to {farewell.PATIENCE_S:g} s'
      ),
    )

  def _dismiss(self) -> None:
    """After a finished run, tells the other nodes and waits until they have heard it. After any
    other end they wait for the learner to come back."""
    if self._status == training.FINISHED:
      self._desk.end_run()
      self._inference.stop()
      self._desk.wait_until_all_left(_GOODBYE_S)
      self._membership.end_run(_GOODBYE_S)

  def train(self, stop: threading.Event) -> str:
    """Until the budget is used up, `stop` is set or a thread fails."""
    status = ''
    while not status:
      if self._failure is not None:
        raise self._failure
      if self.loop.is_finished():
        status = training.FINISHED
      elif stop.is_set():
        status = training.STOPPED
      else:
        with self.loop.timer.phase('sample'):
          sample = self._prefetcher.next(_POLL_S)
        if sample is None:
          self.loop.do_what_is_due()
        else:
          self.loop.train(sample)
    self.loop.finish(status)
    self._status = status
    return status


def _actor_records(
  config: config_lib.ExperimentConfig, desk: farewell.Desk
) -> list[dict[str, Any]]:
  """Of each actor, for the status: whether it is connected, and rows answered."""
  connected, answered = desk.is_connected(), desk.num_answered()
  records = []
  for index in range(actors.num_actor_nodes(config)):
    first, number = actors.env_id_range(config, index)
    its = slice(first, first + number)
    records.append({'is_connected': bool(connected[its].all()), 'rows': int(answered[its].sum())})
  return records


def serve_replay(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  port: int,
  stop: threading.Event,
) -> None:
  """Main thread of a replay node of its own, called by `nodes.replay`."""
  processes.configure_tensorflow(num_threads=1)
  server = build_replay.make_server(config, run_dir, build.make_acting(config), port)
  stop.wait()
  server.stop()
