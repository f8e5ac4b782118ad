"""Learner's side of the gRPC transport, on a port that unauthorized callers may also reach.

It uses generic handlers: no generated code, no protocol buffers, and nothing is unpickled. From a
caller without the token only the headers are read, and it gets none of the actors' threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
import resource
import threading
from typing import Any, NoReturn

import grpc

from seed_acme import types
from seed_acme.transport import grpc_protocol
from seed_acme.transport import joining
from seed_acme.transport import sessions

# Limit from the start of a call to its first message, which clients send at once.
_GREETING_S = 20.0
_STRANGERS = 1024  # connections allowed besides two for each stream
# A connection is closed if it does not speak HTTP/2 by then, or has no call for so long. Actors
# open a connection for each call, and their calls last as long as the connection.
_IDLE_S = 10.0


class GrpcServer:
  """Serves sessions on `host:port`, with one thread for each open stream."""

  def __init__(
    self,
    desk: sessions.SessionDesk,
    host: str,
    port: int,
    max_streams: int,
    max_message_bytes: int,
    members: joining.Members,
  ):
    """Raises `types.UserError` if the port is taken.

    port: 0 = any free one. max_message_bytes: limit of a message; if one is longer, only its length
    is read and its stream ends."""
    self._desk = desk
    self._members = members
    handlers = {
      grpc_protocol.STREAM: grpc.stream_stream_rpc_method_handler(self._stream),
      grpc_protocol.JOIN: grpc.stream_stream_rpc_method_handler(self._join),
    }
    self._server = grpc.server(
      futures.ThreadPoolExecutor(max_workers=max_streams, thread_name_prefix='grpc_stream'),
      handlers=[_ForAdmitted(desk, handlers)],
      options=[
        *grpc_protocol.OPTIONS,
        # Without this, two servers could silently share a port, and actors would reach either.
        ('grpc.so_reuseport', 0),
        ('grpc.max_receive_message_length', max_message_bytes),
        ('grpc.max_allowed_incoming_connections', _max_connections(max_streams)),
        ('grpc.max_concurrent_streams', 8),  # per connection
        ('grpc.server_handshake_timeout_ms', int(1e3 * _IDLE_S)),
        ('grpc.max_connection_idle_ms', int(1e3 * _IDLE_S)),
      ],
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
    """Ends all streams. Close the batcher first; otherwise streams wait for their replies."""
    self._server.stop(grace=1.0).wait()

  def _stream(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    try:
      session = self._desk.open(_greeting(messages, context))
    except ValueError as error:
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

  def _join(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    try:
      greeting = _greeting(messages, context)
      welcome = self._members.join(greeting, self._desk.latest_joined())
    except ValueError as error:
      context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
    stay = self._members.wait_for_end()
    if not context.add_callback(stay.leave):
      return
    yield welcome
    if stay.wait_until_over():
      yield grpc_protocol.OVER


def _max_connections(max_streams: int) -> int:
  """Returns how many connections the server accepts at a time; it closes any further one. Each
  stream counts twice, because a reconnecting actor holds two for a moment, and half of the file
  descriptors are left to the rest of the process."""
  descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
  wanted = 2 * max_streams + _STRANGERS
  if descriptors == resource.RLIM_INFINITY:
    return wanted
  return min(wanted, max(descriptors // 2, max_streams))


def _greeting(messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
  """Returns the first message. Cancels the call if it does not come in time, to free the thread."""
  timer = threading.Timer(_GREETING_S, context.cancel)
  timer.daemon = True
  timer.start()
  try:
    return next(messages)
  except StopIteration:
    raise ValueError('the stream has ended before its greeting') from None
  finally:
    timer.cancel()


class _ForAdmitted(grpc.GenericRpcHandler):
  """Handler that gives access to the service's methods only to callers with the run's token.

  gRPC calls `service` when it has read the headers of a call, on the thread that accepts all calls.
  """

  def __init__(self, desk: sessions.SessionDesk, methods: dict[str, grpc.RpcMethodHandler]):
    self._desk = desk
    self._methods = {grpc_protocol.method(name): one for name, one in methods.items()}
    self._turn_away = grpc.stream_stream_rpc_method_handler(_TurnAway())

  def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
    token = dict(handler_call_details.invocation_metadata or ()).get(grpc_protocol.TOKEN_KEY, '')
    if not self._desk.is_admitted(str(token)):
      return self._turn_away
    return self._methods.get(handler_call_details.method)


class _TurnAway:
  """Rejects a call without the token at once. It runs on a separate thread, so that actors' calls
  and unauthorized ones do not queue behind each other."""

  def __init__(self) -> None:
    self.experimental_thread_pool = futures.ThreadPoolExecutor(
      max_workers=1, thread_name_prefix='grpc_strangers'
    )  # gRPC looks for an attribute of this name

  def __call__(self, messages: Any, context: grpc.ServicerContext) -> NoReturn:
    del messages  # unread
    context.abort(grpc.StatusCode.UNAUTHENTICATED, 'the token of this run is missing or wrong')
    raise AssertionError
