"""The message format: a pickle, followed by the bytes of arrays, which pickle would copy twice.

    number of parts | their sizes | pickle | array | array | ...

Numbers are unsigned 64-bit integers, little-endian.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
from typing import Any

import cloudpickle

MAX_BYTES = 2**31 - 2**20  # gRPC takes messages below 2 GiB
_PROTOCOL = 5  # the first with out-of-band buffers
_NUMBER = struct.Struct('<Q')


class BadMessage(Exception):
  """The received bytes are no message, or they name something that this process does not have."""


class TooLarge(Exception):
  """A value does not fit into one message."""


def encode(value: Any) -> bytes:
  """Encodes a value. Raises TooLarge, or whatever pickling the value raises."""
  pickled, buffers = _pickled(value)
  parts = [memoryview(pickled), *(buffer.raw() for buffer in buffers)]
  sizes = [part.nbytes for part in parts]
  if sum(sizes) > MAX_BYTES:
    raise TooLarge(f'{sum(sizes):,} bytes in one message, of which {MAX_BYTES:,} are the limit')
  return b''.join((_NUMBER.pack(len(parts)), *map(_NUMBER.pack, sizes), *parts))


def _pickled(value: Any) -> tuple[bytes, list[pickle.PickleBuffer]]:
  """Pickles a value with pickle if possible, since cloudpickle takes six times as long.

  pickle refuses lambdas, and it writes objects of `__main__` only by name, which means another
  program on the other side.
  """
  buffers: list[pickle.PickleBuffer] = []
  with contextlib.suppress(Exception):
    pickled = pickle.dumps(value, _PROTOCOL, buffer_callback=buffers.append)
    if b'__main__' not in pickled:
      return pickled, buffers
  buffers.clear()
  return cloudpickle.dumps(value, _PROTOCOL, buffer_callback=buffers.append), buffers


def decode(message: bytes) -> Any:
  """Returns the value, with arrays that can be written to. Raises BadMessage."""
  try:
    (num_parts,) = _NUMBER.unpack_from(message)
    start = _NUMBER.size * (1 + num_parts)
    if not 0 < num_parts <= len(message) or start > len(message):
      raise ValueError(f'{num_parts} parts in {len(message)} bytes')
    sizes = struct.unpack_from(f'<{num_parts}Q', message, _NUMBER.size)
    if start + sum(sizes) != len(message):
      raise ValueError(f'{start + sum(sizes)} bytes announced, {len(message)} received')
    # One copy, because an array over `bytes` would be read-only.
    content = memoryview(bytearray(message) if num_parts > 1 else message)
    parts = []
    for size in sizes:
      parts.append(content[start : start + size])
      start += size
    return pickle.loads(parts[0], buffers=parts[1:])
  except Exception as error:  # unpickling runs code of the message, which may raise anything
    raise BadMessage(f'{type(error).__name__}: {error}') from error
