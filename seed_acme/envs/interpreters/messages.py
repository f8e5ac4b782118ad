"""Messages between two interpreters: a JSON header, followed by the bytes of arrays."""

from __future__ import annotations

from collections.abc import Sequence
import json
import math
import socket
import struct
from typing import Any

import numpy as np

_LENGTHS = struct.Struct('<IQ')  # lengths of the header and of the arrays


class Closed(Exception):
  """Raised if the other end is gone."""


def send(connection: socket.socket, header: dict[str, Any], arrays: Sequence[Any] = ()) -> None:
  """Sends a message; raises `Closed` if the other end is gone."""
  parts = [np.ascontiguousarray(array) for array in arrays]
  described = [[part.dtype.str, list(np.shape(array))] for part, array in zip(parts, arrays)]
  text = json.dumps({**header, 'arrays': described}).encode()
  body = b''.join(part.tobytes() for part in parts)
  try:
    connection.sendall(_LENGTHS.pack(len(text), len(body)) + text + body)
  except OSError as error:
    raise Closed from error


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[np.ndarray]]:
  """Returns (header, arrays), which nothing else refers to. Raises `Closed` at the end, and
  TimeoutError after the socket's time-out."""
  length, num_bytes = _LENGTHS.unpack(_exactly(connection, _LENGTHS.size))
  header = json.loads(bytes(_exactly(connection, length)))
  body = _exactly(connection, num_bytes)
  arrays, offset = [], 0
  for dtype, shape in header.pop('arrays'):
    count = math.prod(shape)
    arrays.append(np.frombuffer(body, np.dtype(dtype), count, offset).reshape(shape))
    offset += arrays[-1].nbytes
  return header, arrays


def _exactly(connection: socket.socket, num_bytes: int) -> bytearray:
  data = bytearray(num_bytes)
  view, start = memoryview(data), 0
  while start < num_bytes:
    try:
      count = connection.recv_into(view[start:])
    except TimeoutError:
      raise
    except OSError as error:
      raise Closed from error
    if not count:
      raise Closed
    start += count
  return data
