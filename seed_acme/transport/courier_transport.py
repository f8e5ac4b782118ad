"""Launchpad's courier as transport, for programs that already live on it.

Courier unpickles what it receives and listens on all interfaces: whoever reaches the port
can run code. It serves runs on one machine only, and a fence keeps other machines out.
"""

from __future__ import annotations

from concurrent import futures
import contextlib
import datetime
import itertools
import threading
import time
from typing import Any

import courier
import numpy as np
import portpicker

from seed_acme import core
from seed_acme import types
from seed_acme.transport import patience as patience_lib
from seed_acme.transport import sessions
from seed_acme.transport import wire
from seed_acme.utils import fence as fence_lib
from seed_acme.utils import grpc_variables

_POLL_S = 0.5
_CLOSE_S = 1.0  # how long a channel waits for the server to hear that it closes
_REPLY_TIMEOUT_S = 60.0  # courier reports a dead server only by running out of this
_NO_LIMIT_S = 1e7  # courier wants some number


class CourierServer:
  """Serves sessions by three methods: `open`, `answer`, `close`."""

  def __init__(
    self, desk: sessions.SessionDesk, port: int, max_streams: int, fence: fence_lib.Fence
  ):
    """fence: who may connect; courier itself listens on every interface."""
    self._desk = desk
    self._fence = fence
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
    self._server.Start()
    self._fence.put_around(self.port, fence_lib.RUNS_CODE)

  def stop(self) -> None:
    self._server.Stop()

  def _open(self, hello: bytes, token: str) -> tuple[int, str]:
    if not self._desk.is_admitted(token):
      return 0, 'the token of this run is missing or wrong'
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


class CourierChannel:
  """An actor's end; a call in flight at a time, waited for in short polls.

  Courier does not tell a server that is gone from one that takes its time with a reply. So a
  patience without limit is one for replies, too.
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
    self._call_timeout = datetime.timedelta(seconds=timeout_s)
    grpc_variables.reach_addresses([address])
    self._client = courier.Client(address)
    self._session_id, refusal = self._wait(self._call('open', codec.hello(env_ids, start), token))
    if refusal:
      raise wire.Refused(refusal)

  def send(self, request: types.ActorRequest) -> None:
    message = self._codec.encode_request(request)
    self._reply = self._call('answer', self._session_id, message)

  def receive(self) -> types.Nest:
    assert self._reply is not None
    reply = self._wait(self._reply)
    if self._closed:  # the server may have refused, because the session is gone
      raise core.ChannelClosed
    return self._codec.decode_reply(reply)

  def close(self) -> None:
    if self._closed:
      return
    self._closed = True
    closing = self._call('close', self._session_id)
    futures.wait([closing], _CLOSE_S)  # the server answers what is under way, too
    # A pending future would hold up the exit of the process.
    closing.cancel()
    if self._reply is not None:
      self._reply.cancel()

  def _call(self, method: str, *arguments: Any) -> futures.Future:
    """As `courier.Client.futures`, whose result would end the process by `std::terminate` if
    it arrived after a `cancel`; here it is dropped."""
    future: futures.Future = futures.Future()

    def on_result(result: Any) -> None:
      with contextlib.suppress(futures.InvalidStateError):
        future.set_result(result)

    def on_error(status: Any) -> None:
      with contextlib.suppress(futures.InvalidStateError):
        future.set_exception(ConnectionError(status.message()))

    call = self._client._client.AsyncPyCall(
      method, list(arguments), {}, on_result, on_error, True, self._call_timeout, False
    )
    future.add_done_callback(lambda done: call.Cancel() if done.cancelled() else None)
    return future

  def _wait(self, future: futures.Future) -> Any:
    give_up = time.monotonic() + self._patience.first_s
    while True:
      try:
        return future.result(_POLL_S)
      except futures.CancelledError as error:
        raise core.ChannelClosed from error
      except futures.TimeoutError:
        if self._closed or self._patience.is_stopped():
          future.cancel()  # a pending future would hold up the exit of the process
          raise core.ChannelClosed from None
        if time.monotonic() > give_up:
          future.cancel()
          raise core.ServerLost(
            f'no answer from the inference server at {self._address} for '
            f'{self._patience.first_s:g} s (actor.connect_timeout_s)'
          ) from None
