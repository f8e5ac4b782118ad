"""The end of a run with nodes on other hosts, all of which have to be told.

On one machine the launcher ends the nodes. On several hosts, an actor that is disconnected at the
end (cut off, or being restarted elsewhere) would find no server when it returns, wait for
`actor.connect_timeout_s` and fail. So the learner stays up for a while, and so does a learner that
a scheduler restarts after the end.
"""

from __future__ import annotations

from collections.abc import Callable
import threading
import time
from typing import Any

import numpy as np

from seed_acme import layout as layout_lib
from seed_acme import types
from seed_acme.inference import batching
from seed_acme.programs.building import sections as sections_lib
from seed_acme.transport import joining
from seed_acme.transport import patience
from seed_acme.transport import sessions
from seed_acme.transport import transports

_SPARE_STREAMS = 16  # threads for streams that are being replaced, and for nodes that join
_POLL_S = 0.02
# An actor that hears of the end closes its stream at once. One whose stream stays open is within a
# step of its environment, and hears with its next request; or its host is cut off, which the
# transport notices after 3 to 5 s.
_CLOSED_S = 2.0


class Desk(sessions.SessionDesk):
  """A session desk that knows which actors have heard that the run is over."""

  def __init__(self, *arguments: Any, **more: Any):
    super().__init__(*arguments, **more)
    self._is_here = self.is_connected()  # connected when the run ended
    self.has_come = np.zeros_like(self._is_here)  # connected at any time
    self._has_come_back = np.zeros_like(self._is_here)  # connected again since the run ended

  def end_run(self) -> None:
    if not self._run_is_over:
      super().end_run()
      self._is_here = self.is_connected()

  def open(self, hello: bytes) -> sessions.Session:
    session = super().open(hello)
    if not session.is_open:  # of a replaced actor, whose replacement counts instead
      return session
    self.has_come[list(session.env_ids)] = True
    if self._run_is_over:
      self._has_come_back[list(session.env_ids)] = True
    return session

  def wait_until_heard(
    self,
    expected: np.ndarray,
    patience_s: float,
    stop: threading.Event,
    on_absence: Callable[[np.ndarray], None],
  ) -> None:
    """Waits after `end_run` until actors have heard of it and closed their streams.

    It waits for connected actors, and for those of the `expected` environments even if they are not
    connected, but for `patience_s` at most.
    expected: `[environments]` bool. on_absence: called with those that did not hear at once.
    """
    started, has_told = time.monotonic(), False
    while not stop.is_set() and time.monotonic() - started < patience_s:
      connected = self.is_connected()
      if not has_told and time.monotonic() - started > _CLOSED_S:
        has_told = True
        self._is_here &= ~connected
        if (missing := expected & ~self._has_heard()).any():
          on_absence(missing)
      if not connected.any() and self._has_heard()[expected].all():
        return
      time.sleep(_POLL_S)

  def _has_heard(self) -> np.ndarray:
    heard = self._is_here | self._has_come_back
    with self._lock:
      for session in self._sessions:
        heard[list(session.env_ids)] |= session.asks_after_end
    return heard


def absent_actors(layout: layout_lib.Layout, missing: np.ndarray) -> str:
  """Returns the names of the actors that environments, `[environments]` bool, belong to."""
  return ', '.join(
    f'actor/{actor.index}' for actor in layout.actors if missing[np.array(actor.env_ids)].any()
  )


def make_desk(
  sections: sections_lib.LearnerSections,
  token: str,
  batcher_of: Callable[[int], batching.Batcher],
  spec: types.EnvironmentSpec | None,
  instance: str = '',
) -> Desk:
  """Returns a desk that opens sessions for actors of this run alone. batcher_of, spec, instance:
  as `sessions.SessionDesk` takes them."""
  layout = sections.layout
  return Desk(
    batcher_of,
    spec,
    layout.num_environments,
    layout.num_training,
    token,
    instance,
    settings=sections.shared['actor'],
    groups=[group for actor in layout.actors for group in actor.groups],
  )


def make_transport(
  sections: sections_lib.LearnerSections,
  desk: sessions.SessionDesk,
  port: int,
  members: joining.Members,
) -> transports.NetworkServer:
  """Returns a server with a thread for each stream of the actors, and some to spare."""
  layout = sections.layout
  num_streams = sum(len(actor.groups) for actor in layout.actors)
  return transports.serve(
    sections.transport,
    desk,
    port,
    num_streams + _SPARE_STREAMS,
    max_message_bytes(layout, desk),
    members,
  )


def max_message_bytes(layout: layout_lib.Layout, desk: sessions.SessionDesk) -> int:
  """Returns the largest message that actors and nodes of the run send."""
  largest_group = max(len(group) for actor in layout.actors for group in actor.groups)
  return desk.max_message_bytes(largest_group)


def closed_batcher() -> Callable[[int], batching.Batcher]:
  """Returns a closed batcher for every environment, for a desk that answers no request."""
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda request: False)
  batcher.close()
  return lambda env_id: batcher


def serve(
  sections: sections_lib.LearnerSections, token: str, port: int, stop: threading.Event
) -> None:
  """Runs in place of the learner of a run that was over before this start.

  It only tells actors so, until all of them know or for `patience.ABSENCE_S`. Loads no TensorFlow.
  """
  # None of the actors' requests is answered, so their specification does not matter.
  desk = make_desk(sections, token, closed_batcher(), None)
  desk.end_run()
  members = joining.Members(sections.shared, resumptions=0)
  members.end_run(timeout_s=0.0)
  transport = make_transport(sections, desk, port, members)
  transport.start()
  everyone = np.ones(sections.layout.num_environments, bool)
  desk.wait_until_heard(everyone, patience.ABSENCE_S, stop, lambda missing: None)
  transport.stop()
