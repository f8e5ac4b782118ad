"""Actors' side of the Unix socket transport, on the learner's host. The learner's side is
`unix_server.py`."""

from __future__ import annotations

import contextlib
import math
import socket

import numpy as np

from seed_acme import core
from seed_acme import types
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import reconnecting
from seed_acme.transport import unix_protocol
from seed_acme.transport import wire


class UnixChannel(reconnecting.Reconnecting):
  """An actor's channel to the Unix socket server. Reconnects when the connection breaks, and then
  repeats the unanswered request."""

  losses = (OSError, EOFError)

  def __init__(
    self,
    path: str,
    token: str,
    codec: wire.GroupCodec,
    env_ids: np.ndarray,
    patience: patience_lib.Patience,
    start: wire.Start = wire.FIRST_START,
  ):
    super().__init__(path, patience)
    self._codec = codec
    self._greeting = unix_protocol.greeting(token, codec.hello(env_ids, start))
    self._request = codec.request_writer(unix_protocol.header(codec.num_request_bytes))
    self._frames = unix_protocol.FrameBuffer(math.inf)
    self._socket: socket.socket | None = None
    try:
      self._instance = self._retry(self._connect)
    except BaseException:  # also the exception of SIGTERM, which ends a worker's wait
      self.close()
      raise

  def send(self, request: types.ActorRequest) -> None:
    self._request.write(request)
    with contextlib.suppress(OSError):  # `receive` notices the loss and repeats the request
      self._connected().sendall(self._request.frame)

  def receive(self) -> types.Nest:
    try:
      return self._codec.decode_reply(bytes(self._read()))
    except (OSError, EOFError, core.ServerPaused) as error:
      self._tell_of_loss(error)
    return self._retry(self._connect_and_repeat)

  def _connect(self) -> str:
    """Opens a connection; returns the instance name of the server that answers."""

    def connect() -> None:
      self._socket = unix_protocol.new_socket()
      with unix_protocol.short(self._address) as address:
        self._socket.connect(address)

    self._open(connect)
    self._frames.clear()
    there, limit_s = self._connected(), self._greeting_limit_s()
    there.settimeout(limit_s)
    try:
      there.sendall(unix_protocol.header(len(self._greeting)) + self._greeting)
      instance = wire.decode_welcome(self._read())
    except TimeoutError as error:
      raise reconnecting.NoAnswer(f'silent for {limit_s:g} s') from error
    there.settimeout(None)
    self._was_greeted()
    return instance

  def _connect_and_repeat(self) -> types.Nest:
    if self._connect() != self._instance:
      raise self._replaced()
    self._connected().sendall(self._request.frame)
    return self._codec.decode_reply(bytes(self._read()))

  def _read(self) -> memoryview:
    return self._frames.receive(self._connected())

  def _connected(self) -> socket.socket:
    if self._socket is None:
      raise EOFError('it is closed')
    return self._socket

  def _disconnect(self) -> None:
    if self._socket is not None:
      with contextlib.suppress(OSError):
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes a thread that waits in `_read`
      self._socket.close()

  def _reason(self, error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
      return error.strerror
    return str(error)
