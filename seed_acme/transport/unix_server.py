"""Learner's side of the Unix socket transport, which runs on the threads that run inference.

So a message reaches its batch without waking another thread. All operations are non-blocking. An
actor has at most one request in flight; the server buffers replies for slow clients. With several
inference threads, one accepts connections, and after an actor's greeting its connection moves to
the thread that serves its environments.
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

_GREETING_S = 20.0  # after which a connection without a greeting may be closed
_MAX_STRANGERS = 64  # older connections without a greeting at a time
_READING_S = 1.0  # in which a greeting that has arrived is usually read
_STOP_S = 10.0
_BACKLOG = 1024
_LOG = logging.getLogger(__name__)


class UnixServer:
  """Serves sessions on a socket in the run folder, which only the run's user can open.

  All but `start`, `stop` and `forget` runs on the thread of `loop`. After its greeting, a
  connection runs on the thread that answers it.
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
    """Removes a closed connection; may be called from any thread."""

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
    """Closes connections without a greeting: those over the time limit, and the oldest above
    `_MAX_STRANGERS`, unless they have just come. All actors of a large run may connect at once."""
    strangers = [one for one in self._connections if one.session is None]
    now = time.monotonic()
    for index, stranger in enumerate(strangers):
      is_one_too_many = len(strangers) - index > _MAX_STRANGERS
      if now - stranger.accepted_s > (_READING_S if is_one_too_many else _GREETING_S):
        stranger.close()


class _Connection:
  """Connection of one environment group of one actor."""

  def __init__(self, server: UnixServer, caller: socket.socket):
    self.session: sessions.Session | None = None
    self.loop = server.loop  # until the greeting; then the session's
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
    """Closes the connection and its session; safe to call twice."""
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
    except Exception:  # a bad message on one connection must not end the run
      _LOG.exception('closed the connection of an actor: its message could not be handled')
      self.close()

  def _read(self) -> None:
    """Reads what has arrived. Closes the connection if the actor has disconnected, sends before
    its reply, or sends a message that is too long."""
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
    """Sends a reply; may be called from any thread."""
    self.loop.call(functools.partial(self._send, reply))

  def _send(self, message: bytes) -> None:
    self._owes_reply = False
    self._unsent = unix_protocol.header(len(message)) + message
    self._send_rest()

  def _send_rest(self) -> None:
    """Sends as much of the reply as the socket accepts. Never closes the session, because the
    caller may hold its lock; if the actor has disconnected, the next event shows it."""
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
      os.chmod(path, 0o600)  # before `listen`, so that no other user can connect
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
  """Removes the socket of a killed learner; raises OSError if a learner still listens there."""
  probe = unix_protocol.new_socket()
  try:
    probe.connect(address)
  except (ConnectionRefusedError, FileNotFoundError):
    path.unlink(missing_ok=True)
    return
  finally:
    probe.close()
  raise OSError('another learner listens there: the path is in use')
