"""The client, which calls functions of a server."""

from __future__ import annotations

from collections.abc import Callable
from concurrent import futures
import contextlib
import datetime
import sys
import threading
from typing import Any

from courier.python import credentials
from courier.python import messages
from courier.python import server
from courier.python.status import Status
from courier.python.status import StatusNotOk
import grpc

_OPTIONS = (
  *server.OPTIONS,
  ('grpc.enable_http_proxy', 0),  # servers are reached directly
  # Otherwise channels of one process would share their back-off between connection attempts.
  ('grpc.use_local_subchannel_pool', 1),
)
_WORDS = {  # the words that courier's callers expect
  grpc.StatusCode.DEADLINE_EXCEEDED: 'Deadline Exceeded',
  grpc.StatusCode.CANCELLED: 'CANCELLED',
}


class PyClient:
  """A client that connects on its first call, and reconnects to a restarted server. Thread-safe.

  Calls raise StatusNotOk: DEADLINE_EXCEEDED after their timeout, UNAVAILABLE if the server is lost
  (or, without `wait_for_ready`, absent), CANCELLED, UNAUTHENTICATED, NOT_FOUND, RESOURCE_EXHAUSTED
  for data larger than a message, INVALID_ARGUMENT for exceptions of the method itself and for
  arguments that cannot be pickled.
  """

  def __init__(self, address: str):
    self._metadata = credentials.metadata()
    self._channel = grpc.insecure_channel(address, options=list(_OPTIONS))
    self._call = self._channel.unary_unary(f'/{server.SERVICE}/{server.CALL}')
    self._list = self._channel.unary_unary(f'/{server.SERVICE}/{server.LIST_METHODS}')

  def PyCall(
    self,
    method: str,
    arguments: list[Any],
    named: dict[str, Any],
    wait_for_ready: bool,
    timeout: datetime.timedelta,
    compress: bool,
  ) -> Any:
    """Calls the method and returns its result. timeout: 0 = none."""
    request = _request(method, arguments, named)
    options = self._options(wait_for_ready, timeout, compress)
    try:
      return _result(method, self._call(request, **options))
    except grpc.RpcError as error:
      raise StatusNotOk(_status(error)) from None

  def AsyncPyCall(
    self,
    method: str,
    arguments: list[Any],
    named: dict[str, Any],
    set_result: Callable[[Any], None],
    set_exception: Callable[[Status], None],
    wait_for_ready: bool,
    timeout: datetime.timedelta,
    compress: bool,
  ) -> Canceller:
    """Acts as `PyCall`, but calls `set_result` or `set_exception` in another thread at the end."""
    try:
      request = _request(method, arguments, named)
    except StatusNotOk as error:
      set_exception(error.status)
      return Canceller(None)
    call = self._call.future(request, **self._options(wait_for_ready, timeout, compress))

    def on_end(call: Any) -> None:
      # The future may be cancelled at this very moment; then the result is not needed.
      with contextlib.suppress(futures.InvalidStateError):
        if call.cancelled():
          set_exception(_status_of(grpc.StatusCode.CANCELLED, ''))
          return
        if (failure := call.exception()) is not None:
          set_exception(_status(failure))
          return
        try:
          result = _result(method, call.result())
        except StatusNotOk as error:
          set_exception(error.status)
          return
        set_result(result)

    call.add_done_callback(on_end)
    return Canceller(call)

  def ListMethods(self) -> list[str]:
    try:
      reply = self._list(b'', metadata=self._metadata, wait_for_ready=True)
    except grpc.RpcError as error:
      raise StatusNotOk(_status(error)) from None
    return _result('ListMethods', reply)

  def Shutdown(self) -> None:
    """Closes the channel; calls under way end as cancelled.

    It does not wait for that, because the last reference to a client may be dropped in the very
    thread that reports cancellations, or at the exit of the process, when that thread no longer
    runs.
    """
    if not sys.is_finalizing():
      threading.Thread(target=self._channel.close, name='courier_close', daemon=True).start()

  def _options(
    self, wait_for_ready: bool, timeout: datetime.timedelta, compress: bool
  ) -> dict[str, Any]:
    return {
      'metadata': self._metadata,
      'wait_for_ready': wait_for_ready,
      'timeout': timeout.total_seconds() or None,
      'compression': grpc.Compression.Gzip if compress else None,
    }


class Canceller:
  """A handle to cancel a call that is under way."""

  def __init__(self, call: Any):
    self._call = call

  def Cancel(self) -> None:
    if self._call is not None:
      self._call.cancel()


def _request(method: str, arguments: list[Any], named: dict[str, Any]) -> bytes:
  try:
    return messages.encode((method, arguments, named))
  except messages.TooLarge as error:
    status = Status(grpc.StatusCode.RESOURCE_EXHAUSTED, f'the arguments of {method} have {error}')
  except Exception as error:  # pickling an argument may raise anything
    status = Status(
      grpc.StatusCode.INVALID_ARGUMENT,
      f'the arguments of {method} cannot be pickled: {type(error).__name__}: {error}',
    )
  raise StatusNotOk(status)


def _result(method: str, reply: bytes) -> Any:
  try:
    return messages.decode(reply)
  except messages.BadMessage as error:
    status = Status(grpc.StatusCode.DATA_LOSS, f'the result of {method} cannot be read: {error}')
  raise StatusNotOk(status)


def _status(error: Any) -> Status:
  return _status_of(error.code(), error.details())


def _status_of(code: grpc.StatusCode, details: str | None) -> Status:
  if code in _WORDS:
    return Status(code, _WORDS[code])
  return Status(code, details or code.name)
