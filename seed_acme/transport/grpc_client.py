"""Actors' side of the gRPC transport: one bidirectional stream of raw bytes per environment group.

The learner's side is `grpc_server.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import queue
import threading
from typing import Any

import grpc
import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.transport import grpc_protocol
from seed_acme.transport import joining
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import reconnecting
from seed_acme.transport import wire

_CHANNEL_OPTIONS = [
  *grpc_protocol.OPTIONS,
  ('grpc.max_receive_message_length', grpc_protocol.NO_LIMIT),
  ('grpc.enable_http_proxy', 0),  # gRPC would send even 127.0.0.1 through $http_proxy
  # `Reconnecting` does the retries. gRPC would wait up to 2 minutes between attempts if another
  # channel of this process uses the address, and could repeat a stream unnoticed.
  ('grpc.use_local_subchannel_pool', 1),
  ('grpc.enable_retries', 0),
]
# Errors of the network rather than the request, after which the actor may try again.
_TRANSIENT = (
  grpc.StatusCode.UNAVAILABLE,
  grpc.StatusCode.CANCELLED,
  grpc.StatusCode.DEADLINE_EXCEEDED,
  grpc.StatusCode.UNKNOWN,
)


@contextlib.contextmanager
def _unless_done_within(limit_s: float, act: Callable[[], None]) -> Iterator[None]:
  """Calls `act` from another thread if the block takes longer than `limit_s`."""
  timer = threading.Timer(limit_s, act)
  timer.daemon = True
  timer.start()
  try:
    yield
  finally:
    timer.cancel()


class _Connection(reconnecting.Reconnecting):
  """A gRPC channel with one stream."""

  losses = (grpc.RpcError, StopIteration)

  def __init__(self, address: str, token: str, patience: patience_lib.Patience):
    super().__init__(address, patience)
    self._metadata = ((grpc_protocol.TOKEN_KEY, token),)
    self._channel: grpc.Channel | None = None
    self._replies: Any = None

  def _disconnect(self) -> None:
    if self._replies is not None:
      self._replies.cancel()
    if self._channel is not None:
      self._channel.close()

  def _open_stream(self, call: Callable[[grpc.Channel], Any]) -> None:
    """Opens a new channel and the stream that `call` makes on it."""

    def connect() -> None:
      self._channel = grpc.insecure_channel(self._address, options=_CHANNEL_OPTIONS)
      self._replies = call(self._channel)

    self._open(connect)

  def _answer_to_greeting(self) -> bytes:
    """Returns the server's first message; raises `NoAnswer` if it does not come in time."""
    replies, is_late = self._replies, threading.Event()

    def give_up() -> None:
      is_late.set()
      replies.cancel()

    patience_s = self._greeting_limit_s()
    try:
      with _unless_done_within(patience_s, give_up):
        greeting = next(replies)
    except grpc.RpcError as error:
      if is_late.is_set() and not self._closed:
        raise reconnecting.NoAnswer(f'silent for {patience_s:g} s') from error
      raise
    self._was_greeted()
    return greeting

  def _reason(self, error: Exception) -> str:
    if not isinstance(error, grpc.RpcError):
      return 'the stream has ended'
    if error.code() not in _TRANSIENT:
      raise core.Refused(error.details()) from error
    reason = str(error.details() or error.code()).rpartition(': ')[2]
    _take_apart(error)
    return reason


def _take_apart(error: BaseException | None) -> None:
  """Breaks the reference cycle of an error of gRPC. gRPC raises the stream itself as the error,
  which then refers to itself through its traceback. The garbage collector could delete it at any
  moment, and that has been seen to hang on gRPC's locks.
  """
  while error is not None:
    cause = error.__cause__ or error.__context__
    error.__traceback__ = error.__cause__ = error.__context__ = None
    error = cause


class GrpcChannel(_Connection):
  """An actor's channel to the gRPC server. Reconnects when the connection breaks, and then repeats
  the unanswered request."""

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
    """Opens a stream; returns the instance name of the server that answers."""

    def call(channel: grpc.Channel) -> Any:
      self._outbox = queue.SimpleQueue()
      stream = channel.stream_stream(grpc_protocol.method(grpc_protocol.STREAM))
      return stream(iter(self._outbox.get, None), metadata=self._metadata)

    self._open_stream(call)
    self._outbox.put(self._hello)
    return self._answer_to_greeting()

  def _connect_and_repeat(self) -> types.Nest:
    if self._connect() != self._instance:
      raise self._replaced()
    self._outbox.put(self._unanswered)
    return self._codec.decode_reply(next(self._replies))


class GrpcMember(_Connection):
  """Registers a node with the learner, in a run whose nodes are started separately on each host."""

  def __init__(self, address: str, token: str, hello: bytes, connect_timeout_s: float):
    super().__init__(address, token, patience_lib.on_other_hosts(connect_timeout_s))
    self._hello = hello

  def join(self) -> wire.Start:
    """Waits for the learner and returns which start of this node this is.

    Raises `core.Refused` with the learner's reason, or `core.ServerLost` if no learner answers."""
    return joining.parse_welcome(self._retry(self._connect))

  def wait_for_end(self) -> None:
    """Returns when the run is over. Call `join` first; raises the same errors."""
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
    self._open_stream(lambda channel: channel.stream_stream(method)(said, metadata=self._metadata))
    return self._answer_to_greeting()
