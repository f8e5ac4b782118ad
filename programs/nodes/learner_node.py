"""The learner's node: inference server, replay writer and training loop in one process."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import threading
from typing import Any

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.inference import thread as inference_thread
from seed_acme.learning import peers as peers_lib
from seed_acme.learning import training_loop
from seed_acme.parallel import devices
from seed_acme.programs.building import learner_side
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import end_notice
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import descriptors
from seed_acme.programs.system import processes
from seed_acme.programs.trial import specification
from seed_acme.progress import waiting
from seed_acme.replay import server as server_of_replay
from seed_acme.tensors import graph_function
from seed_acme.transport import fence as fence_lib
from seed_acme.transport import joining
from seed_acme.transport import patience
from seed_acme.transport import transports

_POLL_S = 0.2  # how soon the training loop notices a stop or a failure
_GOODBYE_S = 10.0  # longest wait until every actor has heard that the run is over


def run(node: node_lib.Node[sections_lib.LearnerSections]) -> bool:
  """Runs the node on its main thread; returns whether the run is over, rather than only stopped."""
  sections, links, folder, life = node.sections, node.links, node.folder, node.life
  descriptors.prepare()
  processes.configure_tensorflow(sections.learner.tensorflow_threads)
  devices.configure(sections.learner)
  fence = fence_lib.Fence(life.admitted, folder.add_notice)
  timeout_s = sections.learner.host_timeout_s
  with contextlib.ExitStack() as cleanup:
    # Innermost, so that the reason of a failure is on the disk even if the cleanup fails.
    with life.ended_at_once(links), processes.reported_failures(folder, node.name, node.name):
      patience_s = life.patience(sections.actor.connect_timeout_s).first_s
      peers = peers_lib.make(sections.place.index, links.exchange, timeout_s, fence)
      if not peers.connect(patience_s, life.stop.is_set):
        return False
      devices.check_gpus(folder.add_notice)  # only after the hosts are connected
      for replay in links.replay:
        if not server_of_replay.wait_until_up(replay, patience_s, life.stop):
          return False
      greeting = _greeting(node)
      if greeting is None:
        return False
      process = None
      try:
        with peers.watched():
          process = LearnerNodeProcess(node, greeting, cleanup, fence, peers)
          with graph_function.serial_execution():
            status = process.train(life.stop)
      except types.OtherNodeFailed as error:
        error.has_begun = process is not None and process.loop.has_trained
        raise
      if status == training_loop.FINISHED:
        life.tell_absent(process.wait_for_absent)
        if peers.is_chief:
          life.end_program()
      peers.wait_for_chief(life.stop, timeout_s)
      if status == training_loop.STOPPED:
        life.check_stop()
  return status == training_loop.FINISHED


def _greeting(node: node_lib.Node[sections_lib.LearnerSections]) -> node_lib.Greeting | None:
  """Returns the specification of the environments; None if the node is stopped before."""
  folder = node.folder
  try:
    spec = specification.of_run(node.sections, folder, folder.set_phase)
  except types.MissingPackage as error:
    return node.life.greeting(node, error)
  return node_lib.Greeting(spec)


class LearnerNodeProcess:
  """The parts of the learner's process and their threads; `cleanup` stops them in reverse order.

  Threads: gRPC's threads only carry messages; one thread for each inference device reads the
  sockets of its actors on this host and runs `InferenceServer.step`; one writes replay; one fetches
  samples; the caller's thread trains.
  """

  def __init__(
    self,
    node: node_lib.Node[sections_lib.LearnerSections],
    greeting: node_lib.Greeting,
    cleanup: contextlib.ExitStack,
    fence: fence_lib.Fence,
    peers: peers_lib.Peers = peers_lib.ALONE,
  ):
    """greeting: what is known of the environments. peers: the learner hosts that train together."""
    sections, folder = node.sections, node.folder
    self._folder = folder
    self._failure: BaseException | None = None
    self._status = ''
    specification.save(folder, greeting.spec)
    side = learner_side.make(
      sections,
      folder,
      greeting.spec,
      cleanup,
      on_failure=self._on_failure,
      num_ahead=sections.prefetch_batches,
      replay_addresses=node.links.replay,
      peers=peers,
      fence=fence,
    )
    self.loop, self._samples, self._account = side.loop, side.samples, side.account
    self._layout = layout = side.layout
    batchers = _make_batchers(sections, side)
    self._desk = end_notice.make_desk(
      sections,
      node.links.token,
      lambda env_id: batchers[layout.device_of(env_id)],
      side.acting.spec,
      greeting.instance,
    )
    self._members = greeting.members or joining.Members(sections.shared, 0)
    self._members.resumptions = self.loop.resumptions  # the chief's, if there are several hosts
    transport = end_notice.make_transport(sections, self._desk, node.links.port, self._members)
    max_message_bytes = end_notice.max_message_bytes(layout, self._desk)
    beside = node.life.serve_beside(node, self._desk, batchers[0].loop, max_message_bytes)
    self.loop.watch_actors(lambda: _actor_records(layout, self._desk))
    self._inference = [
      inference_thread.InferenceThread(server, batcher, self._on_failure)
      for server, batcher in zip(side.servers, batchers)
    ]
    self._start(side, batchers, (transport, *beside), cleanup)
    if peers.is_chief:
      own_host = node.links.address.rpartition(':')[0]
      learner_side.write_addresses(folder, side, inference=f'{own_host}:{transport.port}')

  def _start(
    self,
    side: learner_side.LearnerSide,
    batchers: Sequence[batching.Batcher],
    servers: Sequence[transports.TransportServer],
    cleanup: contextlib.ExitStack,
  ) -> None:
    """Starts all threads; `cleanup` ends them in reverse order."""
    if side.memory is not None:
      side.memory.start(self._on_failure)
      cleanup.callback(side.memory.stop)

    def wake() -> None:
      for batcher in batchers:
        batcher.wake()

    side.acting.published.watch(wake)
    side.writer.start(on_room=wake, on_failure=self._on_failure)
    self._samples.start()
    cleanup.callback(self._samples.stop)
    for thread in self._inference:
      thread.start()
      cleanup.callback(thread.join)
    for server in servers:
      server.start()
      cleanup.callback(server.stop)
    # added last, so called first: it answers requests that still wait
    cleanup.callback(self._stop_inference)
    cleanup.callback(self._dismiss)

  def _on_failure(self, error: BaseException) -> None:
    self._failure = self._failure or error

  def wait_for_absent(self, stop: threading.Event) -> None:
    """Tells actors that the run is over, and waits for those that took part but are disconnected.

    Called before Launchpad ends this node, because it leaves a stopping node little time.
    """
    self._desk.end_run()
    self._stop_inference()
    layout = self._layout
    self._desk.wait_until_heard(
      self._desk.has_come,
      patience.ABSENCE_S,
      stop,
      lambda missing: self._folder.add_notice(
        f'not told yet that the run is over: {end_notice.absent_actors(layout, missing)}; '
        f'waiting for up to {patience.ABSENCE_S:g} s'
      ),
    )

  def _stop_inference(self) -> None:
    for thread in self._inference:
      thread.stop()

  def _dismiss(self) -> None:
    """Tells the other nodes that the run is over, and waits until they have heard it.

    If the run is not finished, it does nothing, and they wait for the learner to come back.
    """
    if self._status == training_loop.FINISHED:
      self._desk.end_run()
      self._stop_inference()
      self._desk.wait_until_all_left(_GOODBYE_S)
      self._members.end_run(_GOODBYE_S)

  def train(self, stop: threading.Event) -> str:
    """Trains until the budget is used up, `stop` is set or a thread fails; returns how it ended."""
    self.loop.report_wait()
    while (sample := self._next_sample(stop)) is not None:
      self.loop.train(sample)
    status = self._ending()
    self.loop.finish(status)
    self._status = status
    return status

  def _next_sample(self, stop: threading.Event) -> types.Sample | None:
    """Returns the next sample; None if the run is to end instead."""
    sample = None
    with waiting.on(lambda: self.loop.waits_for() or self._account.waiting_for()):
      while not self._ending():
        if sample is None:
          with self.loop.timer.phase('sample'):
            sample = self._samples.next(_POLL_S)
        if self.loop.may_train(sample is not None, stop.is_set()):
          return sample
    return None

  def _ending(self) -> str:
    """Returns how the run is to end now, or '' if it goes on."""
    if self._failure is not None:
      raise self._failure
    if self.loop.is_finished():
      return training_loop.FINISHED
    return training_loop.STOPPED if self.loop.is_stopped else ''


def _make_batchers(
  sections: sections_lib.LearnerSections, side: learner_side.LearnerSide
) -> list[batching.Batcher]:
  """Makes a batcher for each inference server."""
  return [
    batching.Batcher(
      device.rows,
      sections.inference_timeout_s,
      accepts_training=side.writer.has_room,
      hold_back=learner_side.hold_back(side, server),
    )
    for device, server in zip(side.layout.learners[sections.place.index].devices, side.servers)
  ]


def _actor_records(layout: layout_lib.Layout, desk: end_notice.Desk) -> list[dict[str, Any]]:
  """Returns the status of each actor: whether it is connected, and how many rows were answered."""
  connected, answered = desk.is_connected(), desk.num_answered()
  records = []
  for actor in layout.actors:
    its = slice(actor.env_ids.start, actor.env_ids.stop)
    records.append({'is_connected': bool(connected[its].all()), 'rows': int(answered[its].sum())})
  return records
