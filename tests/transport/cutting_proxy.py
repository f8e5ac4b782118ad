"""A connection that can be cut or fall silent."""

from __future__ import annotations

import contextlib
import socket
import threading


class CuttingProxy:
  """A TCP proxy to a port. It can hold back the server's replies, cut every connection, and drop
  all data on existing connections while new ones work."""

  def __init__(self, port: int):
    self._to = port
    self._listener = socket.create_server(('127.0.0.1', 0))
    self.port = self._listener.getsockname()[1]
    self._sockets: list[socket.socket] = []
    self._silent: set[socket.socket] = set()
    self.lets_replies_pass = threading.Event()
    self.lets_replies_pass.set()
    self.num_connections = 0
    threading.Thread(target=self._accept, daemon=True).start()

  def _accept(self) -> None:
    with contextlib.suppress(OSError):
      while True:
        client, _ = self._listener.accept()
        server = socket.create_connection(('127.0.0.1', self._to))
        self._sockets += [client, server]
        self.num_connections += 1
        for pair in ((client, server, None), (server, client, self.lets_replies_pass)):
          threading.Thread(target=self._forward, args=pair, daemon=True).start()

  def _forward(
    self, source: socket.socket, target: socket.socket, gate: threading.Event | None
  ) -> None:
    with contextlib.suppress(OSError):
      while data := source.recv(65536):
        if gate is not None:
          gate.wait()
        if source not in self._silent:
          target.sendall(data)

  def fall_silent(self) -> None:
    self._silent.update(self._sockets)

  def cut(self) -> None:
    cut, self._sockets = self._sockets, []
    for one in cut:
      with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
      one.close()

  def close(self) -> None:
    with contextlib.suppress(OSError):
      self._listener.shutdown(socket.SHUT_RDWR)
    self._listener.close()
    self.cut()
    self.lets_replies_pass.set()
