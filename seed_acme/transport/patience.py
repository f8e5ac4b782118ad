"""How long an actor waits for its server, and a server that ends for its actors."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math

# How long a learner whose run is over waits for actors that are away: enough for a host that was
# cut off, or for a pod that restarts.
ABSENCE_S = 60.0


def _never() -> bool:
  return False


@dataclasses.dataclass(frozen=True)
class Patience:
  """Time limits of an actor's wait for its server.

  first_s: limit for the server's first answer. again_s: limit for a server that has disappeared.
  is_stopped: polled by the waiting thread; True ends the wait with `ChannelClosed`.
  """

  first_s: float
  again_s: float
  is_stopped: Callable[[], bool] = _never


def on_other_hosts(connect_timeout_s: float) -> Patience:
  """Limits both waits, because on another host nothing tells an actor that the learner has died."""
  return Patience(connect_timeout_s, connect_timeout_s)


def beside_learner(connect_timeout_s: float, is_stopped: Callable[[], bool] = _never) -> Patience:
  """Waits without a time limit until the learner first answers, because the launcher ends the actor
  if the learner dies."""
  return Patience(math.inf, connect_timeout_s, is_stopped)
