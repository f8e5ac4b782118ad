"""A node of a run: what a launch sends of it, and what it has in its own process."""

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
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import transports
from seed_acme.transport import wire

_Sections = TypeVar('_Sections', bound=sections_lib.NodeSections, covariant=True)
_Address = TypeVar('_Address', covariant=True)


class Handle(Protocol):
  """An address that is known only when all nodes have been started."""

  def resolve(self) -> str:
    """`host:port`."""


@dataclasses.dataclass(frozen=True)
class Links(Generic[_Address]):
  """Where the others are, and what they have to be shown.

  token: that all nodes of a run know. address: where a learner or a replay node serves; of an actor
  where its learner does. replay: of the replay nodes; () = the learner serves replay itself.
  exchange: of all learner hosts, for what they tell each other; () for one alone. start: which one
  of an actor this is; seeds of a resumed run differ by it.
  """

  token: str
  address: _Address
  replay: tuple[_Address, ...] = ()
  exchange: tuple[_Address, ...] = ()
  start: wire.Start = wire.FIRST_START

  @property
  def port(self) -> int:
    """Of the address."""
    return int(str(self.address).rpartition(':')[2])


@dataclasses.dataclass(frozen=True)
class Node(Generic[_Sections]):
  """All that the code of a node is told, in the process where it runs.

  folder: of the run, or one that this node alone has.
  """

  sections: _Sections
  links: Links[str]
  folder: run_directory.RunDirectory
  life: Life

  @property
  def name(self) -> str:
    """Such as `learner/0`."""
    return self.sections.name

  def tell(self, text: str) -> None:
    """In its log, and where there is a front end on its screen."""
    print(text, flush=True)
    self.folder.add_notice(text)


class Life:
  """Who ends a node and how, and what of the other nodes it can count on.

  The launch chooses one, so a node need not know how it was started. This is the life of a node
  all of whose fellows are processes of the same machine, which one launcher starts and ends.

  stop: the program's stop. admitted: hosts that may connect to ports without a password, as
  `fence.Fence` takes them.
  """

  admitted: tuple[str, ...] | None = ()

  def __init__(self, stop: threading.Event):
    self.stop = stop

  def live(self, node: Node[Any]) -> None:
    """Of a node that has a process of its own: all of it, on the main thread."""
    raise NotImplementedError

  def patience(self, timeout_s: float) -> patience_lib.Patience:
    """With other nodes. timeout_s: `actor.connect_timeout_s`."""
    return patience_lib.beside_learner(timeout_s)

  def learner_of(self, node: Node[sections_lib.ActorSections]) -> str:
    """The address by which an actor reaches its learner."""
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
    """What a learner serves its actors by, beside its port."""
    sections, folder = node.sections, node.folder.path
    return transports.serve_beside(
      sections.transport, desk, loop, folder, max_message_bytes, sections.place.index
    )

  def filming(self, sections: sections_lib.ActorSections) -> sections_lib.ActorSections:
    """Those of an actor whose films the learner can see."""
    return sections

  def greeting(
    self, node: Node[sections_lib.LearnerSections], error: types.MissingPackage
  ) -> Greeting | None:
    """Where the environments cannot be made on the learner's host, as the error says. None if the
    node is stopped before."""
    raise error

  def tell_absent(self, tell: Callable[[threading.Event], None]) -> None:
    """After the end of the run: the launcher ends whoever has not heard of it. tell: tells the
    actors, and waits for those that are away until its event is set."""

  def end_program(self) -> None:
    """Called by the learner of a finished run."""
    import launchpad as lp  # which hosts that only act do not have

    lp.stop()

  def check_stop(self) -> None:
    """After another learner host was stopped: the launcher stops this one, too."""

  @contextlib.contextmanager
  def ended_at_once(self, links: Links[str]) -> Iterator[None]:
    """Around the work of a learner host. After a failure of one of several, a port that stayed open
    would be taken for that of the host's next start."""
    try:
      yield
    except SystemExit as exit_:
      if not links.exchange:
        raise
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(int(exit_.code or 0))


class Greeting(NamedTuple):
  """What a learner knows of the environments before it is put together.

  instance: of the server that an actor has greeted; the one that takes its place goes by the same
  name. '' = none has.
  """

  spec: types.EnvironmentSpec
  instance: str = ''


@dataclasses.dataclass(frozen=True)
class NodeSpec(Generic[_Sections]):
  """A node, as it is sent to where it runs; may be pickled. life: begins its life there, of the
  program's stop."""

  sections: _Sections
  links: Links[Handle]
  folder: run_directory.RunDirectory
  life: Callable[[threading.Event], Life]

  def node(self, stop: threading.Event) -> Node[_Sections]:
    """In its process, when all nodes have been started. stop: the program's."""
    given = self.links
    replay = tuple(one.resolve() for one in given.replay)
    exchange = tuple(one.resolve() for one in given.exchange)
    links = Links(given.token, given.address.resolve(), replay, exchange, given.start)
    return Node(self.sections, links, self.folder, self.life(stop))
