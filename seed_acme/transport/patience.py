"""How long an actor waits for its server."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math


def _never() -> bool:
  return False


@dataclasses.dataclass(frozen=True)
class Patience:
  """The limits of a wait, and who may end it earlier.

  first_s: for a server that was not there yet. again_s: for one that was there and went.
  is_stopped: asked during the wait, from the thread that waits; True ends it by `ChannelClosed`.
  """

  first_s: float
  again_s: float
  is_stopped: Callable[[], bool] = _never


def on_other_hosts(connect_timeout_s: float) -> Patience:
  """Nobody here knows whether the learner still lives."""
  return Patience(connect_timeout_s, connect_timeout_s)


def beside_learner(connect_timeout_s: float, is_stopped: Callable[[], bool] = _never) -> Patience:
  """The launcher ends the actor if the learner dies: until that serves, the wait has no limit."""
  return Patience(math.inf, connect_timeout_s, is_stopped)
