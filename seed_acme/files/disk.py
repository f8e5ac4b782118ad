"""Detects a full disk, and describes it for messages. Imports no TensorFlow."""

from __future__ import annotations

import errno
import os
import pathlib

_FULL = {
  errno.ENOSPC: 'the disk of {path} is full',
  errno.EDQUOT: 'the quota on the disk of {path} is used up',
}
# Errors that no other path or permission would fix.
_OF_THE_MACHINE = {
  *_FULL,
  errno.EIO,
  errno.EMFILE,
  errno.ENFILE,
  errno.ENOMEM,
  errno.ESTALE,
  errno.EAGAIN,
  errno.ETIMEDOUT,
}
RESERVE_FILE = '.reserve'
_RESERVE_BYTES = 1 << 16  # with less free space, nothing useful can be written


def is_full(error: BaseException | None) -> bool:
  """Whether an error, or one of its causes, is that a disk is full."""
  return _refusal(error) is not None


def _refusal(error: BaseException | None) -> OSError | None:
  while error is not None:
    if isinstance(error, OSError) and error.errno in _FULL:
      return error
    error = error.__cause__
  return None


def is_of_the_machine(error: OSError) -> bool:
  """Whether the operating system's error has nothing to do with the path that the user gave."""
  return error.errno in _OF_THE_MACHINE


def has_no_room(path: pathlib.Path) -> bool:
  """Whether the disk of a path has practically no free space."""
  return free_bytes(path) < _RESERVE_BYTES


def free_bytes(path: pathlib.Path) -> int:
  """Returns the free bytes of a path's disk that a user without root privileges can write."""
  status = os.statvfs(path)
  return status.f_bavail * status.f_frsize


def describe(path: str | os.PathLike[str], error: BaseException | None = None) -> str:
  """Returns `the disk of /runs/catch is full (0.0 of 500.0 MB free)`; error: its cause, if any.

  If something unfinished was deleted meanwhile there is room again, and the text says so.
  """
  words = _FULL[getattr(_refusal(error), 'errno', None) or errno.ENOSPC]
  folder = pathlib.Path(path).absolute()
  while not folder.is_dir():
    folder = folder.parent
  status = os.statvfs(folder)
  total = status.f_blocks * status.f_frsize
  deleted = '' if has_no_room(folder) else ' now that the unfinished file is deleted'
  return (
    f'{words.format(path=folder)} '
    f'({free_bytes(folder) / 1e6:.1f} of {total / 1e6:.1f} MB free{deleted})'
  )


def reserve(folder: pathlib.Path) -> None:
  """Reserves space for `release_reserve` to free; does nothing if the disk is full."""
  try:
    (folder / RESERVE_FILE).write_bytes(bytes(_RESERVE_BYTES))
  except OSError:
    release_reserve(folder)


def release_reserve(folder: pathlib.Path) -> None:
  """Frees space on a full disk for the reason of a failure and the summary."""
  (folder / RESERVE_FILE).unlink(missing_ok=True)
