"""gRPC streaming: one bidirectional stream an environment group, raw bytes.

Generic handlers: no generated code, no protocol buffers, nothing unpickled.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
import queue
import threading
import time
from typing import Any

import grpc
import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.inference import sessions
from seed_acme.inference import wire

_SERVICE = 'seed_acme.Inference'
_METHOD = 'Stream'
_TOKEN_KEY = 'seed-acme-token'
_WELCOME = b'welcome'
_RETRY_S = 0.5
_NO_LIMIT = -1
_KEEPALIVE_MS = 20_000  # an end that vanished without a word is noticed after twice this
_MESSAGE_OPTIONS = [
    ('grpc.keepalive_time_ms', _KEEPALIVE_MS),
    ('grpc.keepalive_timeout_ms', _KEEPALIVE_MS),
    ('grpc.keepalive_permit_without_calls', 1),
    ('grpc.http2.max_pings_without_data', 0),
    ('grpc.http2.min_ping_interval_without_data_ms', _KEEPALIVE_MS // 2),
    ('grpc.max_send_message_length', _NO_LIMIT),
    ('grpc.max_receive_message_length', _NO_LIMIT),
    ('grpc.enable_http_proxy', 0),  # gRPC would send even 127.0.0.1 through $http_proxy
]
# Errors after which the same actor may try again: the network, not the request.
_TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED,
              grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN)


class GrpcServer:
  """Serves sessions on `host:port`; one thread of its pool for each open stream."""

  def __init__(self, desk: sessions.SessionDesk, host: str, port: int, max_streams: int):
    """port 0 picks a free one. Raises `types.UserError` if the port is taken."""
    self._desk = desk
    self._server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=max_streams, thread_name_prefix='grpc_stream'),
        # Without this two servers share a port silently, and actors reach either.
        options=[('grpc.so_reuseport', 0), *_MESSAGE_OPTIONS])
    handler = grpc.stream_stream_rpc_method_handler(self._stream)
    self._server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler}),))
    try:
      self.port = self._server.add_insecure_port(f'{host}:{port}')
    except RuntimeError:
      self.port = 0
    if not self.port:
      raise types.UserError(
          f'cannot listen on {host}:{port}: the port is in use or the address is not of this '
          'machine; choose another --config.transport.port, or 0 for any free one')

  def start(self) -> None:
    self._server.start()

  def stop(self) -> None:
    """Ends all streams. Close the batcher first, or streams wait for their replies."""
    self._server.stop(grace=1.0).wait()

  def _stream(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    token = dict(context.invocation_metadata()).get(_TOKEN_KEY, '')
    if not self._desk.is_admitted(str(token)):
      context.abort(grpc.StatusCode.UNAUTHENTICATED, 'the token of this run is missing or wrong')
    try:
      session = self._desk.open(next(messages))
    except (ValueError, StopIteration) as error:
      context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    if not context.add_callback(session.close):  # the stream has ended already
      session.close()
      return
    try:
      yield _WELCOME
      for message in messages:
        yield session.answer(message)
    finally:
      session.close()


class GrpcChannel:
  """An actor's stream; opens itself again after a broken connection and repeats the request."""

  def __init__(self, address: str, token: str, codec: wire.GroupCodec, env_ids: np.ndarray,
               connect_timeout_s: float):
    self._address = address
    self._token = token
    self._codec = codec
    self._hello = codec.hello(env_ids)
    self._connect_timeout_s = connect_timeout_s
    self._closed = False
    self._lock = threading.Lock()  # between `close` and opening a stream
    self._unanswered = b''
    self._channel: grpc.Channel | None = None
    self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    self._replies: Any = None
    self._retry(self._connect)

  def send(self, request: types.ActorRequest) -> None:
    self._unanswered = self._codec.encode_request(request)
    self._outbox.put(self._unanswered)

  def receive(self) -> types.Nest:
    try:
      reply = next(self._replies)
    except (grpc.RpcError, StopIteration) as error:
      self._raise_unless_transient(error)
      reply = self._retry(self._connect_and_repeat)
    return self._codec.decode_reply(reply)

  def close(self) -> None:
    with self._lock:
      self._closed = True
      self._disconnect()

  def _disconnect(self) -> None:
    self._outbox.put(None)
    if self._replies is not None:
      self._replies.cancel()
    if self._channel is not None:
      self._channel.close()

  def _connect(self) -> bytes:
    with self._lock:
      if self._closed:  # while waiting for the next attempt
        raise core.ChannelClosed
      self._disconnect()
      self._outbox = queue.SimpleQueue()
      self._channel = grpc.insecure_channel(self._address, options=_MESSAGE_OPTIONS)
      stream = self._channel.stream_stream(f'/{_SERVICE}/{_METHOD}')
      self._replies = stream(iter(self._outbox.get, None), metadata=((_TOKEN_KEY, self._token),))
    self._outbox.put(self._hello)
    return next(self._replies)  # the welcome

  def _connect_and_repeat(self) -> bytes:
    self._connect()
    self._outbox.put(self._unanswered)
    return next(self._replies)

  def _retry(self, attempt: Callable[[], bytes]) -> bytes:
    """Repeats `attempt` through transient errors for as long as the configuration allows."""
    give_up = time.monotonic() + self._connect_timeout_s
    while True:
      try:
        return attempt()
      except (grpc.RpcError, StopIteration) as error:
        self._raise_unless_transient(error)
      if time.monotonic() > give_up:
        raise ConnectionError(
            f'no inference server at {self._address} for {self._connect_timeout_s:g} s '
            '(actor.connect_timeout_s)')
      time.sleep(_RETRY_S)

  def _raise_unless_transient(self, error: Exception) -> None:
    if self._closed:
      raise core.ChannelClosed from error
    if isinstance(error, grpc.RpcError) and error.code() not in _TRANSIENT:
      raise wire.Refused(error.details()) from error
