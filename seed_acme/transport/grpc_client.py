"""The actors' end of gRPC streaming: one bidirectional stream an environment group, raw bytes.

The learner's is `grpc_server.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import logging
import math
import queue
import threading
import time
from typing import Any, TypeVar

import grpc
import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.transport import grpc_protocol
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import wire

_RETRY_S = 0.5
# Between a greeting and its answer, which waits for nothing. A stream that was opened while its
# server ended has been seen to wait for ever, connected to the next one, which never got it.
_GREETING_S = 20.0
_TELL_S = 30.0  # between two lines that say that an actor still waits
# A stream that lasted so long after its greeting was to a server that was there. One that ends
# sooner may be refused again and again, which must not go on for ever.
_LASTED_S = 5.0
_CHANNEL_OPTIONS = [
  *grpc_protocol.OPTIONS,
  ('grpc.max_receive_message_length', grpc_protocol.NO_LIMIT),
  ('grpc.enable_http_proxy', 0),  # gRPC would send even 127.0.0.1 through $http_proxy
  # We try again ourselves. gRPC would wait up to 2 minutes between attempts where another
  # channel of this process knows the address, and repeat a stream without our knowing.
  ('grpc.use_local_subchannel_pool', 1),
  ('grpc.enable_retries', 0),
]
# Errors after which the same actor may try again: the network, not the request.
_TRANSIENT = (
  grpc.StatusCode.UNAVAILABLE,
  grpc.StatusCode.CANCELLED,
  grpc.StatusCode.DEADLINE_EXCEEDED,
  grpc.StatusCode.UNKNOWN,
)
_LOG = logging.getLogger(__name__)
_T = TypeVar('_T')


class _NoAnswer(Exception):
  """The server is there, and silent."""


@contextlib.contextmanager
def _unless_done_within(limit_s: float, act: Callable[[], None]) -> Iterator[None]:
  """Calls `act` from another thread if the block takes longer."""
  timer = threading.Timer(limit_s, act)
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()


class _Connection:
  """A connection to the server that may be opened again and again, and closed from any thread."""

  def __init__(self, address: str, token: str, patience: patience_lib.Patience):
    self._address = address
    self._metadata = ((grpc_protocol.TOKEN_KEY, token),)
    self._patience = patience
    self._limit_s = patience.first_s
    self._greeted_s = math.inf  # when the stream that is open was greeted
    self._closed = False
    self._lock = threading.Lock()  # between `close` and opening a stream
    self._channel: grpc.Channel | None = None
    self._replies: Any = None

  def close(self) -> None:
    with self._lock:
      self._closed = True
      self._disconnect()

  def _disconnect(self) -> None:
    if self._replies is not None:
      self._replies.cancel()
    if self._channel is not None:
      self._channel.close()

  def _open(self, call: Callable[[grpc.Channel], Any]) -> None:
    """A new channel, and on it the stream that `call` makes."""
    with self._lock:
      if self._closed:  # while waiting for the next attempt
        raise core.ChannelClosed
      self._disconnect()
      self._greeted_s = math.inf
      self._channel = grpc.insecure_channel(self._address, options=_CHANNEL_OPTIONS)
      self._replies = call(self._channel)

  def _answer_to_greeting(self) -> bytes:
    """The first message of the stream; `_NoAnswer` if it does not come."""
    replies, is_late = self._replies, threading.Event()

    def give_up() -> None:
      is_late.set()
      replies.cancel()

    patience_s = min(_GREETING_S, self._limit_s)
    try:
      with _unless_done_within(patience_s, give_up):
        greeting = next(replies)
    except grpc.RpcError as error:
      if is_late.is_set() and not self._closed:
        raise _NoAnswer(f'silent for {patience_s:g} s') from error
      raise
    self._greeted_s = time.monotonic()
    self._limit_s = self._patience.again_s
    return greeting

  def _retry(self, attempt: Callable[[], _T]) -> _T:
    """Repeats `attempt` through transient errors for as long as `patience` allows."""
    started = there_s = told_s = time.monotonic()
    while True:
      try:
        result = attempt()
        if told_s > started:
          _LOG.warning('connected to %s after %.1f s', self._address, time.monotonic() - started)
        return result
      except (grpc.RpcError, StopIteration, core.ServerPaused, _NoAnswer) as error:
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

  def _lost(self, reason: str) -> core.ServerLost:
    return core.ServerLost(
      f'no inference server at {self._address} for {self._limit_s:g} s '
      f'(actor.connect_timeout_s): {reason}'
    )

  def _tell_of_wait(self, waited_s: float, reason: str) -> None:
    limit = '' if math.isinf(self._limit_s) else f', up to {self._limit_s:g} s'
    _LOG.warning(
      'waiting for the learner at %s, %.0f s by now%s (%s)', self._address, waited_s, limit, reason
    )

  def _explain(self, error: Exception) -> str:
    """Why a stream is lost that may be opened again; raises if it may not."""
    if self._closed or self._patience.is_stopped():
      raise core.ChannelClosed from error
    if isinstance(error, grpc.RpcError) and error.code() not in _TRANSIENT:
      raise wire.Refused(error.details()) from error
    reason = _reason(error)
    _take_apart(error)
    return reason

  def _tell_of_loss(self, error: Exception) -> None:
    _LOG.warning('the connection to %s is lost (%s)', self._address, self._explain(error))


def _take_apart(error: BaseException | None) -> None:
  """gRPC raises the stream itself as its error, which so refers to itself through its traceback.
  The garbage collector would end it at any moment, which has been seen to hang on gRPC's locks.
  """
  while error is not None:
    cause = error.__cause__ or error.__context__
    error.__traceback__ = error.__cause__ = error.__context__ = None
    error = cause


def _reason(error: Exception) -> str:
  if isinstance(error, core.ServerPaused):
    return 'it has stopped before the end of the run'
  if isinstance(error, _NoAnswer):
    return str(error)
  if isinstance(error, grpc.RpcError):
    return str(error.details() or error.code()).rpartition(': ')[2]
  return 'the stream has ended'


class GrpcChannel(_Connection):
  """An actor's stream; opens itself again after a broken connection and repeats the request."""

  def __init__(
    self,
    address: str,
    token: str,
    codec: wire.GroupCodec,
    env_ids: np.ndarray,
    patience: patience_lib.Patience,
    start: wire.Start = wire.FIRST_START,
  ):
    super().__init__(address, token, patience)
    self._codec = codec
    self._hello = codec.hello(env_ids, start)
    self._unanswered = b''
    self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    self._instance = self._retry(self._connect)

  def send(self, request: types.ActorRequest) -> None:
    self._unanswered = self._codec.encode_request(request)
    self._outbox.put(self._unanswered)

  def receive(self) -> types.Nest:
    try:
      return self._codec.decode_reply(next(self._replies))
    except (grpc.RpcError, StopIteration, core.ServerPaused) as error:
      self._tell_of_loss(error)
    return self._retry(self._connect_and_repeat)

  def _disconnect(self) -> None:
    self._outbox.put(None)
    super()._disconnect()

  def _connect(self) -> bytes:
    """Opens a stream; returns who answers."""

    def call(channel: grpc.Channel) -> Any:
      self._outbox = queue.SimpleQueue()
      stream = channel.stream_stream(grpc_protocol.method(grpc_protocol.STREAM))
      return stream(iter(self._outbox.get, None), metadata=self._metadata)

    self._open(call)
    self._outbox.put(self._hello)
    return self._answer_to_greeting()

  def _connect_and_repeat(self) -> types.Nest:
    if self._connect() != self._instance:
      raise core.ServerRestarted(f'another learner answers at {self._address} than before')
    self._outbox.put(self._unanswered)
    return self._codec.decode_reply(next(self._replies))


class GrpcMember(_Connection):
  """The place in a run of a node that was started by itself, on a host of its own."""

  def __init__(self, address: str, token: str, hello: bytes, connect_timeout_s: float):
    super().__init__(address, token, patience_lib.on_other_hosts(connect_timeout_s))
    self._hello = hello

  def join(self) -> wire.Start:
    """Waits for the learner; returns which start of this node this is.

    Raises `wire.Refused` with the learner's reason, `core.ServerLost` if there is none."""
    return joining.parse_welcome(self._retry(self._connect))

  def wait_for_end(self) -> None:
    """After `join`: returns when the run is over. Raises as `join`."""
    while True:
      try:
        while next(self._replies) != grpc_protocol.OVER:
          pass
        return
      except (grpc.RpcError, StopIteration) as error:
        self._tell_of_loss(error)
      self._retry(self._connect)

  def _connect(self) -> bytes:
    method = grpc_protocol.method(grpc_protocol.JOIN)
    said = iter((self._hello,))
    self._open(lambda channel: channel.stream_stream(method)(said, metadata=self._metadata))
    return self._answer_to_greeting()
