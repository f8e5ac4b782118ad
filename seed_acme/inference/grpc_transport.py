"""gRPC streaming: one bidirectional stream an environment group, raw bytes.

Generic handlers: no generated code, no protocol buffers, nothing unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
import logging
import queue
import threading
import time
from typing import Any, TypeVar

import grpc
import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.inference import membership as membership_lib
from seed_acme.inference import sessions
from seed_acme.inference import wire

_SERVICE = 'seed_acme.Inference'
_STREAM, _JOIN = 'Stream', 'Join'
_TOKEN_KEY = 'seed-acme-token'
_OVER = b'over'
_RETRY_S = 0.5
# Between a greeting and its answer, which waits for nothing. A stream that was opened while its
# server ended has been seen to wait for ever, connected to the next one, which never got it.
_GREETING_S = 20.0
_NO_LIMIT = -1
# An end that vanishes without a word is noticed after the sum of the two, sooner where something
# was under way: the kernel then gives up on unacknowledged data after the second alone.
_KEEPALIVE_MS = 2_000
_KEEPALIVE_TIMEOUT_MS = 3_000
_MESSAGE_OPTIONS = [
  ('grpc.keepalive_time_ms', _KEEPALIVE_MS),
  ('grpc.keepalive_timeout_ms', _KEEPALIVE_TIMEOUT_MS),
  # gRPC sends no keepalive ping while another one of its own is unanswered, and would wait a
  # minute for the answer to that.
  ('grpc.http2.ping_timeout_ms', _KEEPALIVE_TIMEOUT_MS),
  ('grpc.keepalive_permit_without_calls', 1),
  ('grpc.http2.max_pings_without_data', 0),
  ('grpc.http2.min_ping_interval_without_data_ms', _KEEPALIVE_MS // 2),
  ('grpc.max_send_message_length', _NO_LIMIT),
  ('grpc.max_receive_message_length', _NO_LIMIT),
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


class GrpcServer:
  """Serves sessions on `host:port`; one thread of its pool for each open stream."""

  def __init__(
    self,
    desk: sessions.SessionDesk,
    host: str,
    port: int,
    max_streams: int,
    membership: membership_lib.Membership,
  ):
    """port 0 picks a free one. Raises `types.UserError` if the port is taken."""
    self._desk = desk
    self._membership = membership
    self._server = grpc.server(
      futures.ThreadPoolExecutor(max_workers=max_streams, thread_name_prefix='grpc_stream'),
      # Without this two servers share a port silently, and actors reach either.
      options=[('grpc.so_reuseport', 0), *_MESSAGE_OPTIONS],
    )
    self._server.add_generic_rpc_handlers(
      (
        grpc.method_handlers_generic_handler(
          _SERVICE,
          {
            _STREAM: grpc.stream_stream_rpc_method_handler(self._stream),
            _JOIN: grpc.unary_stream_rpc_method_handler(self._join),
          },
        ),
      )
    )
    try:
      self.port = self._server.add_insecure_port(f'{host}:{port}')
    except RuntimeError:
      self.port = 0
    if not self.port:
      raise types.UserError(
        f'cannot listen on {host}:{port}: the port is in use or the address is not of this '
        'machine; choose another --config.transport.port, or 0 for any free one'
      )

  def start(self) -> None:
    self._server.start()

  def stop(self) -> None:
    """Ends all streams. Close the batcher first, or streams wait for their replies."""
    self._server.stop(grace=1.0).wait()

  def _check_token(self, context: grpc.ServicerContext) -> None:
    token = dict(context.invocation_metadata()).get(_TOKEN_KEY, '')
    if not self._desk.is_admitted(str(token)):
      context.abort(grpc.StatusCode.UNAUTHENTICATED, 'the token of this run is missing or wrong')

  def _stream(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    self._check_token(context)
    try:
      session = self._desk.open(next(messages))
    except (ValueError, StopIteration) as error:
      context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    if not context.add_callback(session.close):  # the stream has ended already
      session.close()
      return
    try:
      yield self._desk.instance.encode()
      for message in messages:
        yield session.answer(message)
    finally:
      session.close()

  def _join(self, hello: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
    self._check_token(context)
    try:
      welcome = self._membership.join(hello)
    except ValueError as error:
      context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    stay = self._membership.stay()
    if not context.add_callback(stay.leave):
      return
    yield welcome
    if stay.wait_until_over():
      yield _OVER


class _NoAnswer(Exception):
  """The server is there, and silent."""


class _Connection:
  """A connection to the server that may be opened again and again, and closed from any thread."""

  def __init__(self, address: str, token: str, connect_timeout_s: float):
    self._address = address
    self._metadata = ((_TOKEN_KEY, token),)
    self._connect_timeout_s = connect_timeout_s
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
      self._channel = grpc.insecure_channel(self._address, options=_MESSAGE_OPTIONS)
      self._replies = call(self._channel)

  def _answer_to_greeting(self) -> bytes:
    """The first message of the stream; `_NoAnswer` if it does not come."""
    replies, is_late = self._replies, threading.Event()

    def give_up() -> None:
      is_late.set()
      replies.cancel()

    patience_s = min(_GREETING_S, self._connect_timeout_s)
    timer = threading.Timer(patience_s, give_up)
    timer.daemon = True
    timer.start()
    try:
      return next(replies)
    except grpc.RpcError as error:
      if is_late.is_set() and not self._closed:
        raise _NoAnswer(f'silent for {patience_s:g} s') from error
      raise
    finally:
      timer.cancel()

  def _retry(self, attempt: Callable[[], _T]) -> _T:
    """Repeats `attempt` through transient errors for as long as the configuration allows."""
    started = time.monotonic()
    give_up = started + self._connect_timeout_s
    has_told = False
    while True:
      try:
        result = attempt()
        if has_told:
          _LOG.warning('connected to %s after %.1f s', self._address, time.monotonic() - started)
        return result
      except (grpc.RpcError, StopIteration, core.ServerPaused, _NoAnswer) as error:
        reason = self._explain(error)
      if time.monotonic() > give_up:
        raise core.ServerLost(
          f'no inference server at {self._address} for {self._connect_timeout_s:g} s '
          f'(actor.connect_timeout_s): {reason}'
        )
      if not has_told:
        has_told = True
        _LOG.warning(
          'waiting for the inference server at %s, up to %g s (%s)',
          self._address,
          self._connect_timeout_s,
          reason,
        )
      time.sleep(_RETRY_S)

  def _explain(self, error: Exception) -> str:
    """Why a stream is lost that may be opened again; raises if it may not."""
    if self._closed:
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
    connect_timeout_s: float,
  ):
    super().__init__(address, token, connect_timeout_s)
    self._codec = codec
    self._hello = codec.hello(env_ids)
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
      stream = channel.stream_stream(f'/{_SERVICE}/{_STREAM}')
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
    super().__init__(address, token, connect_timeout_s)
    self._hello = hello

  def join(self) -> int:
    """Waits for the learner; returns how often this node was started before.

    Raises `wire.Refused` with the learner's reason, `core.ServerLost` if there is none."""
    return membership_lib.parse_welcome(self._retry(self._connect))

  def wait_for_end(self) -> None:
    """After `join`: returns when the run is over. Raises as `join`."""
    while True:
      try:
        while next(self._replies) != _OVER:
          pass
        return
      except (grpc.RpcError, StopIteration) as error:
        self._tell_of_loss(error)
      self._retry(self._connect)

  def _connect(self) -> bytes:
    self._open(
      lambda channel: channel.unary_stream(f'/{_SERVICE}/{_JOIN}')(
        self._hello, metadata=self._metadata
      )
    )
    return self._answer_to_greeting()
