"""Values on their way: a pickle, and beside it the bytes of arrays, which it would copy twice.

    number of parts | their sizes | pickle | array | array | ...

Numbers are unsigned, of 64 bits, little-endian.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
from typing import Any

import cloudpickle

MAX_BYTES = 2**31 - 2**20  # gRPC takes messages below 2 GiB
_PROTOCOL = 5  # the first with buffers out of band
_NUMBER = struct.Struct('<Q')


class BadMessage(Exception):
  """What was received is no message, or names what this process does not have."""


class TooLarge(Exception):
  """More than one message may hold."""


def encode(value: Any) -> bytes:
  """Raises TooLarge, or whatever the value does when it is pickled."""
  pickled, buffers = _pickled(value)
  parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
  sizes = [part.nbytes for part in parts]
  if sum(sizes) > MAX_BYTES:
    raise TooLarge(f'{sum(sizes):,} bytes in one message, of which {MAX_BYTES:,} are the limit')
  return b''.join((_NUMBER.pack(len(parts)), *map(_NUMBER.pack, sizes), *parts))


def _pickled(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
  """By pickle, which takes a sixth of cloudpickle's time, where that is enough: it refuses lambdas,
  and of `__main__`, which is another program on the other side, it writes names only."""
  buffers: list[pickle.PickleBuffer] = []
  with contextlib.suppress(Exception):
    pickled = pickle.dumps(value, _PROTOCOL, buffer_callback=buffers.append)
    if b'__main__' not in pickled:
      return pickled, buffers
  buffers.clear()
  return cloudpickle.dumps(value, _PROTOCOL, buffer_callback=buffers.append), buffers


def decode(message: bytes) -> Any:
  """The value; its arrays can be written to. Raises BadMessage."""
  try:
    (num_parts,) = _NUMBER.unpack_from(message)
    start = _NUMBER.size * (1 + num_parts)
    if not 0 < num_parts <= len(message) or start > len(message):
      raise ValueError(f'{num_parts} parts in {len(message)} bytes')
    sizes = struct.unpack_from(f'<{num_parts}Q', message, _NUMBER.size)
    if start + sum(sizes) != len(message):
      raise ValueError(f'{start + sum(sizes)} bytes announced, {len(message)} received')
    # One copy, because an array over `bytes` could not be written to.
    content = memoryview(bytearray(message) if num_parts > 1 else message)
    parts = []
    for size in sizes:
      parts.append(content[start : start + size])
      start += size
    return pickle.loads(parts[0], buffers=parts[1:])
  except Exception as error:  # unpickling runs the code of whatever was sent
    raise BadMessage(f'{type(error).__name__}: {error}') from error
