"""Launchpad's courier as transport, for programs that already use it.

Courier unpickles what it receives, so every caller can run code. It therefore serves only runs on
one machine, listens only on that machine, and checks the run's token before it unpickles anything.
"""

from __future__ import annotations

from concurrent import futures
import ipaddress
import itertools
import threading
import time
from typing import Any

import courier
from courier.python import credentials
import grpc
import numpy as np
import portpicker

from seed_acme import core
from seed_acme import types
from seed_acme.libraries import grpc_variables
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import wire

_POLL_S = 0.5
_CLOSE_S = 1.0  # how long a closing channel waits for the server's acknowledgement
_REPLY_TIMEOUT_S = 60.0  # after which the server counts as hanging
_NO_LIMIT_S = 1e7  # courier requires a number
_WRONG_TOKEN = 'the token of this run is missing or wrong'


class CourierServer:
  """Serves sessions through three courier methods: `open`, `answer` and `close`."""

  def __init__(self, desk: sessions.SessionDesk, port: int, max_streams: int):
    _check_host(credentials.host())
    self._desk = desk
    self._sessions: dict[int, sessions.Session] = {}
    self._ids = itertools.count(1)
    self._lock = threading.Lock()
    self.port = port or portpicker.pick_unused_port()
    if port and not portpicker.is_port_free(port):
      raise types.UserError(
        f'cannot listen on port {port}: it is in use; choose another '
        '--config.transport.port, or 0 for any free one'
      )
    self._server = courier.Server('inference', port=self.port, thread_pool_size=max_streams)
    self._server.Bind('open', self._open)
    self._server.Bind('answer', self._answer)
    self._server.Bind('close', self._close)

  def start(self) -> None:
    with courier.credentials(self._desk.token):
      self._server.Start()

  def stop(self) -> None:
    self._server.Stop()

  def _open(self, hello: bytes) -> tuple[int, str]:
    try:
      session = self._desk.open(hello)
    except ValueError as error:
      return 0, str(error)
    with self._lock:
      session_id = next(self._ids)
      self._sessions[session_id] = session
    return session_id, ''

  def _answer(self, session_id: int, message: bytes) -> bytes:
    with self._lock:
      session = self._sessions.get(session_id)
    if session is None:
      return wire.encode_refusal('this session is closed; open another')
    return session.answer(message)

  def _close(self, session_id: int) -> None:
    with self._lock:
      session = self._sessions.pop(session_id, None)
    if session is not None:
      session.close()


def _check_host(host: str) -> None:
  """Raises `types.UserError` if courier would listen for other machines."""
  try:
    is_loopback = host == 'localhost' or ipaddress.ip_address(host.strip('[]')).is_loopback
  except ValueError:  # a name, which may resolve to any address
    is_loopback = False
  if not is_loopback:
    raise types.UserError(
      f'{credentials.HOST_VARIABLE} is {host}, but transport.kind=courier serves this machine '
      f'only, because every caller can run code: unset {credentials.HOST_VARIABLE}, or set '
      'transport.kind=grpc'
    )


class CourierChannel:
  """An actor's channel to the courier server. It has one call in flight and polls for its reply.

  A hanging server cannot be told from a slow one, so without a limit on the wait for the server
  there is no limit on the wait for a reply either.
  """

  def __init__(
    self,
    address: str,
    token: str,
    codec: wire.GroupCodec,
    env_ids: np.ndarray,
    patience: patience_lib.Patience,
    start: wire.Start = wire.FIRST_START,
  ):
    self._codec = codec
    self._address = address
    self._patience = patience
    self._closed = False
    self._reply: futures.Future | None = None
    timeout_s = min(_NO_LIMIT_S, max(_REPLY_TIMEOUT_S, patience.first_s))
    grpc_variables.reach_addresses([address])
    if not token:
      raise core.Refused(_WRONG_TOKEN)
    with courier.credentials(token):
      self._client = courier.Client(address, call_timeout=timeout_s)
    opening = self._client.futures.open(codec.hello(env_ids, start))
    self._session_id, refusal = self._wait(opening)
    if refusal:
      raise core.Refused(refusal)

  def send(self, request: types.ActorRequest) -> None:
    message = self._codec.encode_request(request)
    self._reply = self._client.futures.answer(self._session_id, message)

  def receive(self) -> types.Nest:
    assert self._reply is not None
    reply = self._wait(self._reply)
    if self._closed:  # the server may have refused because the session was closed
      raise core.ChannelClosed
    return self._codec.decode_reply(reply)

  def close(self) -> None:
    if self._closed:
      return
    self._closed = True
    closing = self._client.futures.close(self._session_id)
    futures.wait([closing], _CLOSE_S)  # the server then also answers a pending request
    closing.cancel()
    if self._reply is not None:
      self._reply.cancel()

  def _wait(self, future: futures.Future) -> Any:
    give_up = time.monotonic() + self._patience.first_s
    while True:
      try:
        return future.result(_POLL_S)
      except futures.CancelledError as error:
        raise core.ChannelClosed from error
      except courier.StatusNotOk as error:
        raise self._why(error) from error
      except futures.TimeoutError:
        if self._closed or self._patience.is_stopped():
          future.cancel()
          raise core.ChannelClosed from None
        if time.monotonic() > give_up:
          future.cancel()
          raise core.ServerLost(
            f'no answer from the inference server at {self._address} for '
            f'{self._patience.first_s:g} s (actor.connect_timeout_s)'
          ) from None

  def _why(self, error: courier.StatusNotOk) -> Exception:
    """Returns the exception with which channels report this failure of a call."""
    if self._closed or error.code is grpc.StatusCode.CANCELLED:
      return core.ChannelClosed()
    if error.code is grpc.StatusCode.UNAUTHENTICATED:
      return core.Refused(_WRONG_TOKEN)
    if error.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
      return core.ServerLost(f'the inference server at {self._address} was lost: {error}')
    return ConnectionError(error.message)
