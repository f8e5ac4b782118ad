"""Calls functions of a server."""

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
  ('grpc.enable_http_proxy', 0),  # servers are reached themselves
  # Channels of one process would share their pauses between attempts to connect.
  ('grpc.use_local_subchannel_pool', 1),
)
_WORDS = {  # as courier's callers know them
  grpc.StatusCode.DEADLINE_EXCEEDED: 'Deadline Exceeded',
  grpc.StatusCode.CANCELLED: 'CANCELLED',
}


class PyClient:
  """Connects when it first calls, and again where a server has come back. Thread-safe.

  Calls raise StatusNotOk: DEADLINE_EXCEEDED after their timeout, UNAVAILABLE where the server is
  lost (or, without `wait_for_ready`, absent), CANCELLED, UNAUTHENTICATED, NOT_FOUND,
  RESOURCE_EXHAUSTED for what is larger than a message, INVALID_ARGUMENT for what the method itself
  raised and for what cannot be pickled.
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
    """The result. timeout: none if 0."""
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
    """As `PyCall`, with one of the two called, from another thread, when it is over."""
    try:
      request = _request(method, arguments, named)
    except StatusNotOk as error:
      set_exception(error.status)
      return Canceller(None)
    call = self._call.future(request, **self._options(wait_for_ready, timeout, compress))

    def on_end(call: Any) -> None:
      # The future may be cancelled at this very moment; then nobody waits for the result.
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
    """Calls under way end as cancelled. Does not wait for that, because the last reference to a
    client may go on the very thread that is to tell of them, or at the end of the process, when
    that thread no longer runs."""
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
  """Of a call under way."""

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
  except Exception as error:  # whatever an argument does when it is pickled
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
