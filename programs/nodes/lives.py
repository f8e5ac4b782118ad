"""The lives of nodes that Launchpad's launcher starts as processes, and what the processes do."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import threading
from typing import Any

from seed_acme import types
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import actor_supervisor
from seed_acme.programs.nodes import first_greeting
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.storage import run_locks
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import transports


class OnThisMachine(node_lib.Life):
  """A life on one machine with all other nodes of the run.

  The module is light to import, because launchers and actor supervisors never load TensorFlow, and
  because a node should be tied to its launcher and handle SIGTERM before it spends seconds on that.
  """

  def live(self, node: node_lib.Node[Any]) -> None:
    """See `node.Life`."""
    signals.leave_hangup_to_parent()
    getattr(self, node.sections.kind)(node)

  def learner(self, node: node_lib.Node[sections_lib.LearnerSections]) -> None:
    """Trains until the run is over or stopped."""
    with contextlib.ExitStack() as locks:
      try:
        is_chief = node.sections.place.index == 0
        locks.enter_context(run_locks.learns(node.folder, is_chief))
      except types.UserError as error:  # the folder is another program's, so nothing is written
        print(f'{node.name}: {error}', flush=True)
        raise SystemExit(processes.USER_ERROR_EXIT) from None
      with processes.reported_failures(node.folder, node.name, node.name):
        node.folder.set_phase('loading TensorFlow')
        processes.load_tensorflow()
        from seed_acme.programs.nodes import learner_node

        learner_node.run(node)

  def replay(self, node: node_lib.Node[sections_lib.ReplaySections]) -> None:
    """Serves one shard of replay until it is stopped."""
    with processes.reported_failures(node.folder, node.name, node.name):
      processes.load_tensorflow()
      from seed_acme.programs.nodes import replay_service

      replay_service.serve(node)

  def actor(self, node: node_lib.Node[sections_lib.ActorSections]) -> None:
    """Acts until the run is over or stopped."""
    with processes.reported_failures(node.folder, node.name, node.name):
      actor_supervisor.Supervisor(node).run()


class OnOwnHost(OnThisMachine):
  """A life with the other nodes on hosts of their own.

  Nobody ends them when this one fails, and they do not share the run folder.
  """

  def __init__(self, stop: threading.Event, admitted: tuple[str, ...] | None):
    super().__init__(stop)
    self.admitted = admitted

  def patience(self, timeout_s: float) -> patience_lib.Patience:
    """Returns time-outs for hosts that cannot tell whether the others are alive."""
    return patience_lib.on_other_hosts(timeout_s)

  def learner_of(self, node: node_lib.Node[sections_lib.ActorSections]) -> str:
    """Returns the learner's network address."""
    return node.links.address

  def serve_beside(self, *_: object) -> list[transports.TransportServer]:
    """Returns no servers, because the run folder may not support Unix sockets."""
    return []

  def filming(self, sections: sections_lib.ActorSections) -> sections_lib.ActorSections:
    """Returns the sections without filming.

    Commands refuse to film in such runs; programs launched in other ways continue with a message.
    """
    if sections.record_every:
      print(
        f'{sections.name}: nothing is filmed (record_every={sections.record_every}), because the '
        'run folder is on another host',
        flush=True,
      )
    return dataclasses.replace(sections, record_every=0)

  def greeting(
    self, node: node_lib.Node[sections_lib.LearnerSections], error: types.MissingPackage
  ) -> node_lib.Greeting | None:
    """Waits for the first actor that connects, and returns its specification."""
    node.folder.add_notice(f'{error}; the first actor that connects says what its environments are')
    node.folder.set_phase('waiting for the first actor, to learn what its environments are')
    return first_greeting.wait_for(node)

  def tell_absent(self, tell: Callable[[threading.Event], None]) -> None:
    """Tells the actors now, because Launchpad leaves a stopping node little time."""
    tell(self.stop)

  def check_stop(self) -> None:
    """Raises `HostGone` if another host was stopped, because this one cannot continue alone."""
    if not self.stop.is_set():
      from seed_acme.parallel import collectives  # which loads TensorFlow

      raise collectives.HostGone('another learner host was stopped: start this one again, too')
