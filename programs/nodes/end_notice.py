"""The end of a run with nodes on other hosts, who are all to hear of it.

On one machine the launcher ends the nodes. Elsewhere an actor that is away at that moment (cut off,
or started anew on another host) would come back to nobody, wait for `actor.connect_timeout_s` and
fail. So the learner stays a while, and so does one that a scheduler starts after the end.
"""

from __future__ import annotations

from collections.abc import Callable
import threading
import time
from typing import Any

import numpy as np

from seed_acme import layout as layout_lib
from seed_acme.inference import batching
from seed_acme.programs.building import sections as sections_lib
from seed_acme.transport import joining
from seed_acme.transport import sessions
from seed_acme.transport import transports

PATIENCE_S = 60.0  # a host that was cut off is back, a pod has started again
_SPARE_STREAMS = 16  # threads for streams that are being replaced, and for nodes that join
_POLL_S = 0.02
# Who hears of the end closes its stream at once. One that stays open leads nowhere: the host at
# its other end is cut off, which the transport notices after 3 to 5 s.
_CLOSED_S = 2.0


class Desk(sessions.SessionDesk):
  """A desk that knows whose actors have heard that the run is over."""

  def __init__(self, *arguments: Any):
    super().__init__(*arguments)
    self._is_here = self.is_connected()  # when the run ended
    self.has_come = np.zeros_like(self._is_here)  # at any time
    self._has_come_back = np.zeros_like(self._is_here)  # since the run ended

  def end_run(self) -> None:
    if not self._run_is_over:
      super().end_run()
      self._is_here = self.is_connected()

  def open(self, hello: bytes) -> sessions.Session:
    session = super().open(hello)
    if not session.is_open:  # of an actor that was replaced, which its replacement speaks for
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
    """After `end_run`: returns when actors have heard of it and closed their streams, those of
    the `expected` environments even if they are not connected now; or after `patience_s`.

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
    return self._is_here | self._has_come_back


def absent_actors(layout: layout_lib.Layout, missing: np.ndarray) -> str:
  """Names of the actors that environments, `[environments]` bool, belong to."""
  return ', '.join(
    f'actor/{actor.index}' for actor in layout.actors if missing[np.array(actor.env_ids)].any()
  )


def make_transport(
  sections: sections_lib.LearnerSections,
  desk: sessions.SessionDesk,
  port: int,
  members: joining.Members,
) -> transports.NetworkServer:
  """With a thread for each stream of the actors, and some to spare."""
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
  """Of what actors and nodes of the run send."""
  largest_group = max(len(group) for actor in layout.actors for group in actor.groups)
  return desk.max_message_bytes(largest_group)


def closed_batcher() -> Callable[[int], batching.Batcher]:
  """For a desk that answers no request, whichever environments it is of."""
  batcher = batching.Batcher(1, 0.0, lambda: True, lambda request: False)
  batcher.close()
  return lambda env_id: batcher


def serve(
  sections: sections_lib.LearnerSections, token: str, port: int, stop: threading.Event
) -> None:
  """In place of the learner of a run that was over before it started: serves nothing but this
  news, until all actors have it or for `PATIENCE_S`. Loads no TensorFlow."""
  layout = sections.layout
  number = layout.num_environments
  # Whatever environments the actors have: none of their requests is answered.
  desk = Desk(closed_batcher(), None, number, layout.num_training, token)
  desk.end_run()
  members = joining.Members(sections.shared, resumptions=0)
  members.end_run(timeout_s=0.0)
  transport = make_transport(sections, desk, port, members)
  transport.start()
  desk.wait_until_heard(np.ones(number, bool), PATIENCE_S, stop, lambda missing: None)
  transport.stop()
