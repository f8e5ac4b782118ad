"""A connection to the learner that is retried until the limits of a `Patience` are reached."""

from __future__ import annotations

import abc
from collections.abc import Callable
import logging
import math
import threading
import time
from typing import ClassVar, TypeVar

from seed_acme import core
from seed_acme.transport import patience as patience_lib

# Limit from a greeting to its answer, which the server sends at once. Without a limit, a stream
# that was opened while its server ended has been seen to hang: it was connected to the next
# server, which never received the call.
GREETING_S = 20.0
_RETRY_S = 0.5
_TELL_S = 30.0  # between two warnings that an actor still waits
# A connection that lasted so long after its greeting restarts the time limit. A shorter one does
# not: it may be ended again and again, and such retries must end at some time.
_LASTED_S = 5.0
_LOG = logging.getLogger(__name__)
_T = TypeVar('_T')


class NoAnswer(Exception):
  """The server accepted the connection but does not answer."""


_WITH_REASON: tuple[type[Exception], ...] = (core.ServerPaused, NoAnswer)


class Reconnecting(abc.ABC):
  """Base class of the actors' channels that reconnect. `close` may be called from any thread."""

  losses: ClassVar[tuple[type[Exception], ...]]  # raised when a connection breaks

  def __init__(self, address: str, patience: patience_lib.Patience):
    self._address = address
    self._patience = patience
    self._limit_s = patience.first_s
    self._greeted_s = math.inf  # when the server of the open connection answered the greeting
    self._closed = False
    self._lock = threading.Lock()  # between `close` and opening a connection

  def close(self) -> None:
    """Closes the connection; a call that waits for the server raises `core.ChannelClosed`."""
    with self._lock:
      self._closed = True
      self._disconnect()

  @abc.abstractmethod
  def _disconnect(self) -> None:
    """Ends the connection, if there is one; called with the lock held."""

  @abc.abstractmethod
  def _reason(self, error: Exception) -> str:
    """Returns why the connection was lost. error: one of `losses`. Raises `core.Refused` if the
    server rejected the actor, so that a retry is useless."""

  def _open(self, connect: Callable[[], None]) -> None:
    """Replaces the open connection, if any, by a new one, which `connect` opens."""
    with self._lock:
      if self._closed:  # while waiting for the next attempt
        raise core.ChannelClosed
      self._disconnect()
      self._greeted_s = math.inf
      connect()

  def _greeting_limit_s(self) -> float:
    return min(GREETING_S, self._limit_s)

  def _was_greeted(self) -> None:
    self._greeted_s = time.monotonic()
    self._limit_s = self._patience.again_s

  def _retry(self, attempt: Callable[[], _T]) -> _T:
    """Repeats `attempt` while the connection is lost, up to the limits of `patience`."""
    started = there_s = told_s = time.monotonic()
    while True:
      try:
        result = attempt()
        if told_s > started:
          _LOG.warning('connected to %s after %.1f s', self._address, time.monotonic() - started)
        return result
      except self.losses + _WITH_REASON as error:
        reason = self._explain(error)
      now = time.monotonic()
      if now - self._greeted_s > _LASTED_S:
        there_s = now
      if now - there_s > self._limit_s:
        raise self._lost(reason)
      if told_s == started or now - told_s > _TELL_S:
        told_s = now
        self._tell_of_wait(now - there_s, reason)
      time.sleep(_RETRY_S)

  def _explain(self, error: Exception) -> str:
    """Returns why the connection was lost; raises if the actor must not reconnect."""
    if self._closed or self._patience.is_stopped():
      raise core.ChannelClosed from error
    if isinstance(error, core.ServerPaused):
      return 'it has stopped before the end of the run'
    if isinstance(error, NoAnswer):
      return str(error)
    return self._reason(error)

  def _tell_of_loss(self, error: Exception) -> None:
    _LOG.warning('the connection to %s is lost (%s)', self._address, self._explain(error))

  def _tell_of_wait(self, waited_s: float, reason: str) -> None:
    limit = '' if math.isinf(self._limit_s) else f', up to {self._limit_s:g} s'
    _LOG.warning(
      'waiting for the learner at %s, %.0f s by now%s (%s)', self._address, waited_s, limit, reason
    )

  def _lost(self, reason: str) -> core.ServerLost:
    return core.ServerLost(
      f'no inference server at {self._address} for {self._limit_s:g} s '
      f'(actor.connect_timeout_s): {reason}'
    )

  def _replaced(self) -> core.ServerRestarted:
    return core.ServerRestarted(f'another learner answers at {self._address} than before')
