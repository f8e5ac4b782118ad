"""The learner's end of Unix sockets: read and answered by the thread that acts.

A message so reaches its batch without waking another thread. Nothing here blocks: an actor sends
one request and waits for its reply, and what a slow reader does not take is kept for it. Where
several threads act, one of them takes the calls, and each connection moves to its own thread
once the actor has said who it is.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import functools
import logging
import os
import pathlib
import select
import socket
import threading
import time

from seed_acme import types
from seed_acme.inference import event_loop
from seed_acme.transport import sessions
from seed_acme.transport import unix_protocol
from seed_acme.transport import wire

_GREETING_S = 20.0  # who has not said by then who it is makes room for others
_MAX_STRANGERS = 64  # connections that have not said it yet
_STOP_S = 10.0
_BACKLOG = 1024
_LOG = logging.getLogger(__name__)


class UnixServer:
  """Serves sessions on a socket in the run folder, which only the run's user can open.

  All but `start` and `stop` happens on the thread that waits on `loop`, and what a connection does
  after its greeting on the one that answers it.
  """

  def __init__(
    self,
    desk: sessions.SessionDesk,
    loop: event_loop.EventLoop,
    path: pathlib.Path,
    max_message_bytes: int,
  ):
    """Raises `types.UserError` if there can be no socket at `path`."""
    self.desk, self.loop, self.max_message_bytes = desk, loop, max_message_bytes
    self._path = path
    self._connections: list[_Connection] = []
    self._on_empty: Callable[[], None] = lambda: None
    self._listener = _listen(path)

  def start(self) -> None:
    self.loop.call(lambda: self.loop.add(self._listener.fileno(), self._on_caller))

  def stop(self) -> None:
    """Ends all connections."""
    is_done = threading.Event()

    def end() -> None:
      with contextlib.suppress(KeyError):
        self.loop.remove(self._listener.fileno())
      self._listener.close()
      for connection in list(self._connections):
        connection.loop.call(connection.close)
      self._on_empty = is_done.set
      self._look_whether_empty()

    self.loop.call(end)
    is_done.wait(_STOP_S)
    self._path.unlink(missing_ok=True)

  def forget(self, connection: _Connection) -> None:
    """From any thread."""

    def remove() -> None:
      self._connections.remove(connection)
      self._look_whether_empty()

    self.loop.call(remove)

  def _look_whether_empty(self) -> None:
    if not self._connections:
      self._on_empty()

  def _on_caller(self, _: int) -> None:
    with contextlib.suppress(BlockingIOError):
      while True:
        caller, _ = self._listener.accept()
        self._connections.append(_Connection(self, caller))
        self._dismiss_strangers()

  def _dismiss_strangers(self) -> None:
    """Of those who have said nothing, the silent and, of too many, the oldest."""
    strangers = [one for one in self._connections if one.session is None]
    now = time.monotonic()
    for index, stranger in enumerate(strangers):
      is_one_too_many = len(strangers) - index > _MAX_STRANGERS
      if is_one_too_many or now - stranger.accepted_s > _GREETING_S:
        stranger.close()


class _Connection:
  """To one environment group of one actor."""

  def __init__(self, server: UnixServer, caller: socket.socket):
    self.session: sessions.Session | None = None
    self.loop = server.loop  # until the greeting, then that of the session
    self.accepted_s = time.monotonic()
    self._server = server
    self._socket = caller
    self._frames = unix_protocol.FrameBuffer(server.max_message_bytes)
    self._owes_reply = False
    self._ends_when_sent = False
    self._unsent = b''
    self._waits_to_send = False
    self._is_closed = False
    caller.setblocking(False)
    self.loop.add(caller.fileno(), self._on_ready)

  def close(self) -> None:
    """Safe to call twice."""
    if self._is_closed:
      return
    self._is_closed = True
    self.loop.remove(self._socket.fileno())
    self._socket.close()
    self._server.forget(self)
    if self.session is not None:
      self.session.close()

  def _on_ready(self, events: int) -> None:
    try:
      if events & select.EPOLLOUT:
        self._send_rest()
      if events & ~select.EPOLLOUT and not self._is_closed:
        self._read()
    except Exception:  # whatever came over one connection, the run goes on with the others
      _LOG.exception('closed the connection of an actor: its message could not be handled')
      self.close()

  def _read(self) -> None:
    """As much as has come. Whoever is gone, speaks before the reply or too long, is cut off."""
    if self._owes_reply:
      self.close()
      return
    try:
      message = self._frames.receive(self._socket)
    except BlockingIOError:
      return
    except (OSError, EOFError, ValueError):
      self.close()
      return
    if self.session is None:
      self._greet(bytes(message))
    else:
      self._owes_reply = True
      self.session.ask(message, self._reply)

  def _greet(self, message: bytes) -> None:
    desk = self._server.desk
    token, hello = unix_protocol.split_greeting(message)
    try:
      if not desk.is_admitted(token):
        raise ValueError('the token of this run is missing or wrong')
      self.session = desk.open(hello)
    except ValueError as error:
      self._ends_when_sent = True
      self._send(wire.encode_refusal(str(error)))
      return
    if self.session.loop is not self.loop:
      self.loop.remove(self._socket.fileno())
      self.loop = self.session.loop
      self.loop.call(lambda: self.loop.add(self._socket.fileno(), self._on_ready))
    self.loop.call(functools.partial(self._send, wire.encode_welcome(desk.instance)))

  def _reply(self, reply: bytes) -> None:
    """From any thread."""
    self.loop.call(functools.partial(self._send, reply))

  def _send(self, message: bytes) -> None:
    self._owes_reply = False
    self._unsent = unix_protocol.header(len(message)) + message
    self._send_rest()

  def _send_rest(self) -> None:
    """Never closes the session: whoever answers may hold its lock. That a caller is gone is told
    by the next event."""
    if self._is_closed:
      return
    try:
      self._unsent = self._unsent[self._socket.send(self._unsent) :]
    except BlockingIOError:
      pass
    except OSError:
      self._unsent = b''
    if bool(self._unsent) != self._waits_to_send:
      self._waits_to_send = bool(self._unsent)
      self.loop.expect(self._socket.fileno(), writable=self._waits_to_send)
    if self._ends_when_sent and not self._unsent:
      self.close()


def _listen(path: pathlib.Path) -> socket.socket:
  listener = unix_protocol.new_socket()
  try:
    with unix_protocol.short(str(path)) as address:
      _remove_left_over(path, address)
      listener.bind(address)
      os.chmod(path, 0o600)  # before `listen`, so nobody else gets in
    listener.listen(_BACKLOG)
    listener.setblocking(False)
  except OSError as error:
    listener.close()
    raise types.UserError(
      f'cannot listen on {path}: {error.strerror or error}; use --config.transport.kind=grpc, '
      'or a run folder on a disk of this machine'
    ) from error
  return listener


def _remove_left_over(path: pathlib.Path, address: str) -> None:
  """The socket of a learner that was killed; OSError where one listens."""
  probe = unix_protocol.new_socket()
  try:
    probe.connect(address)
  except (ConnectionRefusedError, FileNotFoundError):
    path.unlink(missing_ok=True)
    return
  finally:
    probe.close()
  raise OSError('another learner listens there: the path is in use')
