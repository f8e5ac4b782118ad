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
_MAX_PATH_BYTES = 107  # of the address of a Unix socket


def header(num_bytes: int) -> bytes:
  """Of a message of so many bytes."""
  return num_bytes.to_bytes(HEADER_BYTES, 'little')


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
