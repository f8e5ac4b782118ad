"""The server, which offers the functions of a router over gRPC."""

from __future__ import annotations

from collections.abc import Iterator
import threading
import traceback
from typing import NoReturn

from courier.python import credentials
from courier.python import messages
from courier.python import router as router_lib
from courier.python import threads
import grpc

SERVICE = 'courier.Courier'
CALL = 'Call'
LIST_METHODS = 'ListMethods'
# Longest traceback; gRPC sends it percent-encoded in a header.
_MAX_WORDS = 16_000
OPTIONS = (
  ('grpc.max_receive_message_length', -1),  # `messages` has a limit of its own
  ('grpc.max_send_message_length', -1),
  ('grpc.max_metadata_size', 8 * _MAX_WORDS),
  ('grpc.absolute_max_metadata_size', 8 * _MAX_WORDS),
)
_STOP_S = 5.0  # longest wait for calls under way when the server is stopped


def BuildAndStart(router: router_lib.Router, port: int, num_threads: int) -> RunningServer:
  """Starts a server. Raises OSError if the port is in use."""
  return RunningServer(router, port, num_threads)


class RunningServer:
  """A server that answers calls as soon as it is constructed."""

  def __init__(self, router: router_lib.Router, port: int, num_threads: int):
    """num_threads: threads that are kept. More calls are still answered at the same time."""
    self._stopped = threading.Event()
    self._threads = threads.CallThreads(num_threads)
    self._server = grpc.server(self._threads, options=[*OPTIONS, ('grpc.so_reuseport', 0)])
    self._server.add_generic_rpc_handlers((_Handlers(router, credentials.current()),))
    try:
      has_port = self._server.add_insecure_port(f'{credentials.host()}:{port}') == port
    except RuntimeError:  # newer versions of grpcio
      has_port = False
    if not has_port:
      raise OSError(f'cannot listen on {credentials.host()}:{port}: the port is in use')
    self._server.start()

  def Stop(self) -> None:
    """Stops the server. Calls under way have five seconds to finish; then they fail."""
    self._server.stop(_STOP_S).wait()
    self._threads.shutdown()
    self._stopped.set()

  def Join(self) -> None:
    """Waits for `Stop`."""
    self._stopped.wait()

  def SetIsHealthy(self, is_healthy: bool) -> None:
    """Does nothing, because there is no load balancer that would ask."""
    del is_healthy


class _Handlers(grpc.GenericRpcHandler):
  """The handlers of calls with the right token. Others are refused before their message is read."""

  def __init__(self, router: router_lib.Router, token: str):
    self._router = router
    self._token = token
    self._handlers = {
      f'/{SERVICE}/{CALL}': grpc.unary_unary_rpc_method_handler(self._call),
      f'/{SERVICE}/{LIST_METHODS}': grpc.unary_unary_rpc_method_handler(self._list),
    }

  def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
    handler = self._handlers.get(handler_call_details.method)
    if handler is None:
      return None
    if not credentials.admits(self._token, handler_call_details.invocation_metadata):
      return grpc.stream_unary_rpc_method_handler(_refuse)  # reads nothing
    return handler

  def _call(self, request: bytes, context: grpc.ServicerContext) -> bytes:
    try:
      method, arguments, named = messages.decode(request)
    except (messages.BadMessage, TypeError, ValueError) as error:
      _abort(context, grpc.StatusCode.INVALID_ARGUMENT, f'the call cannot be read: {error}')
    handler = self._router.find(method)
    if handler is None:
      _abort(context, grpc.StatusCode.NOT_FOUND, f'method {method} not found')
    try:
      return messages.encode(handler(*arguments, **named))
    except messages.TooLarge as error:
      _abort(context, grpc.StatusCode.RESOURCE_EXHAUSTED, f'the result of {method} has {error}')
    except BaseException:  # a method's SystemExit must not end the server's thread silently
      _abort(context, grpc.StatusCode.INVALID_ARGUMENT, traceback.format_exc())

  def _list(self, request: bytes, context: grpc.ServicerContext) -> bytes:
    del request, context
    return messages.encode(self._router.names())


def _refuse(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
  del requests
  _abort(
    context,
    grpc.StatusCode.UNAUTHENTICATED,
    'this server answers those that hold its token: start both sides with the same '
    f'{credentials.TOKEN_VARIABLE}',
  )


def _abort(context: grpc.ServicerContext, code: grpc.StatusCode, words: str) -> NoReturn:
  if len(words) > _MAX_WORDS:
    words = f'...{words[-_MAX_WORDS:]}'  # a traceback ends with its error
  context.abort(code, words)
  raise AssertionError('abort has raised')
