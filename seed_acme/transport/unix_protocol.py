"""Framing of messages that both sides of the Unix socket transport share.

A frame is the length of a message (8 bytes) and the message. The first frame of a connection holds
the run's token, a zero byte and the greeting; its answer has the form of a reply.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import socket

HEADER_BYTES = 8  # keeps the message aligned
_FIRST_BYTES = 1 << 12  # initial size of a buffer, which grows with the messages
_MAX_PATH_BYTES = 107  # limit of a Unix socket's address


def header(num_bytes: int) -> bytes:
  """Returns the header of a message of `num_bytes` bytes."""
  return num_bytes.to_bytes(HEADER_BYTES, 'little')


class FrameBuffer:
  """Receives frames one after another into the same memory."""

  def __init__(self, max_message_bytes: float):
    self._max_message_bytes = max_message_bytes
    self._buffer = memoryview(bytearray(_FIRST_BYTES))
    self._num_read = 0

  def receive(self, there: socket.socket) -> memoryview:
    """Returns the next message, valid until the next call.

    Raises EOFError if the other side has closed the connection, ValueError for a message that is
    too long, and the errors of `there`. After BlockingIOError the next call continues the frame.
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
    """Discards the incomplete frame of an earlier connection."""
    self._num_read = 0

  def _num_missing(self) -> int:
    """Returns how many bytes the current frame still misses, and makes room for them."""
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
  """Returns (token, hello); the token is empty if there is none."""
  token, _, hello = message.partition(b'\0')
  return token.decode(errors='replace'), hello


def new_socket() -> socket.socket:
  return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


@contextlib.contextmanager
def short(path: str) -> Iterator[str]:
  """Yields a name of `path` that is short enough for a socket address, valid inside the context."""
  if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
    yield path
    return
  folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
  try:
    yield f'/proc/self/fd/{folder}/{os.path.basename(path)}'
  finally:
    os.close(folder)
