"""A disk that is full: how it shows, and what to say of it. Imports no TensorFlow."""

from __future__ import annotations

import errno
import os
import pathlib

_FULL = {
  errno.ENOSPC: 'the disk of {path} is full',
  errno.EDQUOT: 'the quota on the disk of {path} is used up',
}
# What no other path and no other permission would mend.
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
_RESERVE_BYTES = 1 << 16  # less is no room for anything


def is_full(error: BaseException | None) -> bool:
  """Whether an error, or what it arose from, is that a disk has no more room."""
  return _refusal(error) is not None


def _refusal(error: BaseException | None) -> OSError | None:
  while error is not None:
    if isinstance(error, OSError) and error.errno in _FULL:
      return error
    error = error.__cause__
  return None


def is_of_the_machine(error: OSError) -> bool:
  """Whether the operating system refused for a reason that lies in no path the user gave."""
  return error.errno in _OF_THE_MACHINE


def has_no_room(path: pathlib.Path) -> bool:
  """Whether next to nothing can be written there now."""
  return free_bytes(path) < _RESERVE_BYTES


def free_bytes(path: pathlib.Path) -> int:
  """What may still be written there without the privileges of root."""
  status = os.statvfs(path)
  return status.f_bavail * status.f_frsize


def describe(path: str | os.PathLike[str], error: BaseException | None = None) -> str:
  """`the disk of /runs/catch is full (0.0 of 500.0 MB free)`; error: what told it."""
  words = _FULL[getattr(_refusal(error), 'errno', None) or errno.ENOSPC]
  folder = pathlib.Path(path).absolute()
  while not folder.is_dir():
    folder = folder.parent
  status = os.statvfs(folder)
  total = status.f_blocks * status.f_frsize
  return (
    f'{words.format(path=folder)} ({free_bytes(folder) / 1e6:.1f} of {total / 1e6:.1f} MB free)'
  )


def reserve(folder: pathlib.Path) -> None:
  """Takes the room that `release_reserve` gives back; none where the disk has none."""
  try:
    (folder / RESERVE_FILE).write_bytes(bytes(_RESERVE_BYTES))
  except OSError:
    release_reserve(folder)


def release_reserve(folder: pathlib.Path) -> None:
  """Makes room for the reason of a failure and the summary on a disk that is full."""
  (folder / RESERVE_FILE).unlink(missing_ok=True)
