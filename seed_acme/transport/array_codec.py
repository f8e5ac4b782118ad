"""Encoding of arrays: a message is the bytes of a fixed list of arrays and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

Buffer = Union[bytes, bytearray, memoryview]
_ALIGNMENT = 8  # bytes; decoded arrays are views, and unaligned views are slow


class Field(NamedTuple):
  """One array of a message."""

  name: str
  dtype: str
  shape: tuple[int, ...]


class ArrayCodec:
  """Encodes arrays of fixed shapes and dtypes as one `bytes`, and decodes it to views."""

  def __init__(self, fields: Sequence[Field]):
    self.fields = tuple(fields)
    self._dtypes = [np.dtype(field.dtype) for field in self.fields]
    self._offsets: list[int] = []
    self._padding: list[bytes] = []
    offset = 0
    for field, dtype in zip(self.fields, self._dtypes):
      self._offsets.append(offset)
      size = int(np.prod(field.shape, dtype=np.int64)) * dtype.itemsize
      padding = -size % _ALIGNMENT
      self._padding.append(b'\0' * padding)
      offset += size + padding
    self.num_bytes = offset

  def encode(self, arrays: Sequence[np.ndarray]) -> bytes:
    """Encodes arrays in field order; raises ValueError if one does not match its field."""
    self._check(arrays)
    parts: list[Any] = []
    for array, padding in zip(arrays, self._padding):
      parts.append(array.tobytes())
      if padding:
        parts.append(padding)
    return b''.join(parts)

  def views(self, buffer: bytearray, start: int) -> list[np.ndarray]:
    """Returns writable arrays over the message that begins at byte `start` of the buffer."""
    message = memoryview(buffer)[start : start + self.num_bytes]
    return self.decode(message)

  def write(self, arrays: Sequence[np.ndarray], views: Sequence[np.ndarray]) -> None:
    """Encodes like `encode`, but in place, into the arrays that `views` returned."""
    self._check(arrays)
    for view, array in zip(views, arrays):
      view[...] = array

  def _check(self, arrays: Sequence[np.ndarray]) -> None:
    if len(arrays) != len(self.fields):
      raise ValueError(
        f'{len(arrays)} arrays for {len(self.fields)} fields: '
        f'{", ".join(field.name for field in self.fields)}'
      )
    for field, dtype, array in zip(self.fields, self._dtypes, arrays):
      if array.shape != field.shape or array.dtype != dtype:
        raise ValueError(
          f'{field.name} is {array.dtype}{list(array.shape)}, '
          f'the specification says {dtype}{list(field.shape)}'
        )

  def decode(self, message: Buffer) -> list[np.ndarray]:
    """Returns the arrays as views into `message`; raises ValueError if its length is wrong."""
    if len(message) != self.num_bytes:
      raise ValueError(f'a message of {len(message)} bytes, expected {self.num_bytes}')
    return [
      np.frombuffer(message, dtype, int(np.prod(field.shape, dtype=np.int64)), offset).reshape(
        field.shape
      )
      for field, dtype, offset in zip(self.fields, self._dtypes, self._offsets)
    ]
