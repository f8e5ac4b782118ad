"""A node of a run: the spec that a launch sends, and the object in the node's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import os
import sys
import threading
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from seed_acme import types
from seed_acme.inference import event_loop
from seed_acme.programs.building import sections as sections_lib
from seed_acme.storage import run_directory
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import transports
from seed_acme.transport import wire

_Sections = TypeVar('_Sections', bound=sections_lib.NodeSections, covariant=True)
_Address = TypeVar('_Address', covariant=True)


class Handle(Protocol):
  """An address that is known only after all nodes have been started."""

  def resolve(self) -> str:
    """Returns `host:port`."""


@dataclasses.dataclass(frozen=True)
class Links(Generic[_Address]):
  """The addresses of the other nodes, and the token that they ask for.

  token: secret that all nodes of a run know. address: where a learner or replay node serves; for an
    actor, its learner's address. replay: addresses of replay nodes; () = the learner serves replay
    itself. exchange: addresses at which learner hosts reach each other; () for a single one. start:
    which start of an actor this is; a resumed run's seeds depend on it.
  """

  token: str
  address: _Address
  replay: tuple[_Address, ...] = ()
  exchange: tuple[_Address, ...] = ()
  start: wire.Start = wire.FIRST_START

  @property
  def port(self) -> int:
    """The port of the address."""
    return int(str(self.address).rpartition(':')[2])


@dataclasses.dataclass(frozen=True)
class Node(Generic[_Sections]):
  """The arguments of a node's code, in the process where it runs.

  folder: of the run, or a folder that only this node has.
  """

  sections: _Sections
  links: Links[str]
  folder: run_directory.RunDirectory
  life: Life

  @property
  def name(self) -> str:
    """The name of the node, such as `learner/0`."""
    return self.sections.name

  def tell(self, text: str) -> None:
    """Prints a message to the node's log, and shows it to the user if there is a front end."""
    print(text, flush=True)
    self.folder.add_notice(text)


class Life:
  """How a node ends, and what it can expect of the other nodes.

  The launch chooses one, so the node need not know how it was started. This class is for a node
  that shares one machine with all other nodes, which a launcher starts and ends.
  stop: the program's stop event. admitted: hosts that may connect to ports without a password, as
    `fence.Fence` takes them.
  """

  admitted: tuple[str, ...] | None = ()

  def __init__(self, stop: threading.Event):
    self.stop = stop

  def live(self, node: Node[Any]) -> None:
    """Runs a node that has a process of its own, on the main thread."""
    raise NotImplementedError

  def patience(self, timeout_s: float) -> patience_lib.Patience:
    """Returns the time-outs for other nodes. timeout_s: `actor.connect_timeout_s`."""
    return patience_lib.beside_learner(timeout_s)

  def learner_of(self, node: Node[sections_lib.ActorSections]) -> str:
    """Returns the address at which an actor reaches its learner."""
    sections, folder = node.sections, node.folder.path
    return transports.address_beside(
      sections.transport, folder, node.links.address, sections.place.learner
    )

  def serve_beside(
    self,
    node: Node[sections_lib.LearnerSections],
    desk: sessions.SessionDesk,
    loop: event_loop.EventLoop,
    max_message_bytes: int,
  ) -> list[transports.TransportServer]:
    """Returns the servers for a learner's actors besides that on its port."""
    sections, folder = node.sections, node.folder.path
    return transports.serve_beside(
      sections.transport, desk, loop, folder, max_message_bytes, sections.place.index
    )

  def filming(self, sections: sections_lib.ActorSections) -> sections_lib.ActorSections:
    """Returns the sections of an actor whose films the learner can see."""
    return sections

  def greeting(
    self, node: Node[sections_lib.LearnerSections], error: types.MissingPackage
  ) -> Greeting | None:
    """Returns the specification if this host cannot make environments; None if stopped before.

    error: the reason, which is raised on a single machine.
    """
    raise error

  def tell_absent(self, tell: Callable[[threading.Event], None]) -> None:
    """Called after the run. Does nothing: the launcher ends actors that have not heard of it.

    tell: tells the actors, and waits for disconnected ones until its event is set.
    """

  def end_program(self) -> None:
    """Ends the program; the learner calls it when the run is finished."""
    import launchpad as lp  # not installed on hosts for actors only

    lp.stop()

  def check_stop(self) -> None:
    """Called after another host was stopped. Does nothing: the launcher stops this one, too."""

  @contextlib.contextmanager
  def ended_at_once(self, links: Links[str]) -> Iterator[None]:
    """Ends the process of a failed learner host at once if there are several.

    Otherwise its open port could be mistaken for that of the host's next start.
    """
    try:
      yield
    except SystemExit as exit_:
      if not links.exchange:
        raise
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(int(exit_.code or 0))


class Greeting(NamedTuple):
  """The facts about the environments that a learner needs before its parts are built.

  instance: name of the server that an actor has contacted, which the server that replaces it keeps;
    '' = none was. members: the nodes that have joined that server; None = there was none.
  """

  spec: types.EnvironmentSpec
  instance: str = ''
  members: joining.Members | None = None


@dataclasses.dataclass(frozen=True)
class NodeSpec(Generic[_Sections]):
  """A node as it is sent to the place where it runs; can be pickled.

  life: makes the node's life there, given the program's stop event.
  """

  sections: _Sections
  links: Links[Handle]
  folder: run_directory.RunDirectory
  life: Callable[[threading.Event], Life]

  def node(self, stop: threading.Event) -> Node[_Sections]:
    """Returns the node, in its process, once all nodes have been started. stop: the program's."""
    given = self.links
    replay = tuple(one.resolve() for one in given.replay)
    exchange = tuple(one.resolve() for one in given.exchange)
    links = Links(given.token, given.address.resolve(), replay, exchange, given.start)
    return Node(self.sections, links, self.folder, self.life(stop))
