"""Reads files of arrays from untrusted sources, without running or trusting anything in them."""

from __future__ import annotations

import io
import math
import pathlib
import tokenize
import zipfile

import numpy as np

# Errors from reading a file that is damaged or of another kind.
UNREADABLE = (
  OSError,
  EOFError,
  AttributeError,
  IndexError,
  OverflowError,
  ValueError,
  KeyError,
  TypeError,
  RecursionError,
  MemoryError,
  NotImplementedError,
  RuntimeError,
  SyntaxError,
  tokenize.TokenError,
  zipfile.BadZipFile,
)


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads what `np.savez` wrote; ValueError for a header that claims more than the file contains.

  Damage raises any of `UNREADABLE`.
  """
  with zipfile.ZipFile(path) as archive:
    members = archive.infolist()
    if sum(member.file_size for member in members) > path.stat().st_size or any(
      member.compress_type != zipfile.ZIP_STORED for member in members
    ):
      raise ValueError(f'{path.name} is not as it is saved: its parts are larger than the file')
    return {
      member.filename.removesuffix('.npy'): _read_array(archive, member) for member in members
    }


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
  content = archive.read(member)
  file = io.BytesIO(content)
  if np.lib.format.read_magic(file) != (1, 0):
    raise ValueError(f'{member.filename} has an unknown version of its header')
  shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
  data = content[file.tell() :]
  if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
    raise ValueError(
      f'{member.filename} says {dtype} of shape {str(shape)[:60]}, and holds {len(data)} bytes'
    )
  array = np.frombuffer(bytearray(data), dtype)
  return array.reshape(shape, order='F' if is_fortran else 'C')
