"""What both ends of the transport over Unix sockets have to agree on.

A frame is the length of a message, 8 bytes, and the message. The first frame of a connection is the
token of the run, a zero byte and the greeting; its answer has the form of a reply.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import socket

HEADER_BYTES = 8  # keeps what follows aligned
_FIRST_BYTES = 1 << 12  # of a buffer, until the size of the messages is known
_MAX_PATH_BYTES = 107  # of the address of a Unix socket


def header(num_bytes: int) -> bytes:
  """Of a message of so many bytes."""
  return num_bytes.to_bytes(HEADER_BYTES, 'little')


class FrameBuffer:
  """Receives frames, one after another, into the same memory."""

  def __init__(self, max_message_bytes: float):
    self._max_message_bytes = max_message_bytes
    self._buffer = memoryview(bytearray(_FIRST_BYTES))
    self._num_read = 0

  def receive(self, there: socket.socket) -> memoryview:
    """The next message; the one after it overwrites it.

    Raises EOFError where the other end is closed, ValueError for a message that is too long, and
    what `there` raises. After BlockingIOError the next call goes on with the same frame.
    """
    while (missing := self._num_missing()) > 0:
      number = there.recv_into(self._buffer[self._num_read :], missing)
      if not number:
        raise EOFError('it was closed at the other end')
      self._num_read += number
    message = self._buffer[HEADER_BYTES : self._num_read]
    self._num_read = 0
    return message

  def clear(self) -> None:
    """Forgets a frame that had begun on an earlier connection."""
    self._num_read = 0

  def _num_missing(self) -> int:
    """Bytes of the frame under way; makes room for them."""
    if self._num_read < HEADER_BYTES:
      return HEADER_BYTES - self._num_read
    length = int.from_bytes(self._buffer[:HEADER_BYTES], 'little')
    if length > self._max_message_bytes:
      raise ValueError(f'a message of {length} bytes')
    whole = HEADER_BYTES + length
    if whole > len(self._buffer):
      larger = memoryview(bytearray(whole))
      larger[: self._num_read] = self._buffer[: self._num_read]
      self._buffer = larger
    return whole - self._num_read


def greeting(token: str, hello: bytes) -> bytes:
  return token.encode() + b'\0' + hello


def split_greeting(message: bytes) -> tuple[str, bytes]:
  """(token, hello); an empty token where there is none."""
  token, _, hello = message.partition(b'\0')
  return token.decode(errors='replace'), hello


def new_socket() -> socket.socket:
  return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


@contextlib.contextmanager
def short(path: str) -> Iterator[str]:
  """Another name of `path`, short enough for an address, while the context lasts."""
  if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
    yield path
    return
  folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
  try:
    yield f'/proc/self/fd/{folder}/{os.path.basename(path)}'
  finally:
    os.close(folder)
