"""A connection to the learner that is opened again and again, for as long as patience allows."""

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

# Between a greeting and its answer, which waits for nothing. A stream that was opened while its
# server ended has been seen to wait for ever, connected to the next one, which never got it.
GREETING_S = 20.0
_RETRY_S = 0.5
_TELL_S = 30.0  # between two lines that say that an actor still waits
# A stream that lasted so long after its greeting was to a server that was there. One that ends
# sooner may be refused again and again, which must not go on for ever.
_LASTED_S = 5.0
_LOG = logging.getLogger(__name__)
_T = TypeVar('_T')


class NoAnswer(Exception):
  """The server is there, and silent."""


_WITH_REASON: tuple[type[Exception], ...] = (core.ServerPaused, NoAnswer)


class Reconnecting(abc.ABC):
  """What the actors' ends of transports share. `close` may be called from any thread."""

  losses: ClassVar[tuple[type[Exception], ...]]  # by which a connection may end

  def __init__(self, address: str, patience: patience_lib.Patience):
    self._address = address
    self._patience = patience
    self._limit_s = patience.first_s
    self._greeted_s = math.inf  # when the connection that is open was greeted
    self._closed = False
    self._lock = threading.Lock()  # between `close` and opening a connection

  def close(self) -> None:
    """A call that waits for the server raises `core.ChannelClosed`."""
    with self._lock:
      self._closed = True
      self._disconnect()

  @abc.abstractmethod
  def _disconnect(self) -> None:
    """Ends the connection, if there is one; called with the lock held."""

  @abc.abstractmethod
  def _reason(self, error: Exception) -> str:
    """Why the connection was lost, one of `losses`; raises `wire.Refused` if the server says that
    no other attempt will be better."""

  def _open(self, connect: Callable[[], None]) -> None:
    """In place of the connection that is open the one that `connect` makes."""
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
    """Repeats `attempt` through losses for as long as `patience` allows."""
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
    """Why a connection is lost that may be opened again; raises if it may not."""
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
