"""Reads and writes whole files, and locks them. Imports no TensorFlow."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import pathlib
import secrets
import shutil
import tempfile
import time
from typing import IO, Any

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import disk

_POLL_S = 0.05  # of a lock


@contextlib.contextmanager
def lock(
  path: pathlib.Path, complaint: Callable[[str], str], patience_s: float = 0.0
) -> Iterator[None]:
  """Locks a file for this process; `UserError` with `complaint(holder)` if another holds it, and
  still does after `patience_s`.

  The kernel releases the lock when the process ends, however it ends, so no lock becomes stale.
  """
  with explained(path, 'write'):
    handle = open(path, 'a+', encoding='utf-8')
  with handle:
    end_s = time.monotonic() + patience_s
    while not _is_locked(handle):
      if time.monotonic() >= end_s:
        handle.seek(0)
        holder = handle.read().strip() or 'unknown'
        raise types.UserError(complaint(holder))
      time.sleep(_POLL_S)
    handle.truncate(0)
    handle.write(f'{os.getpid()}\n')
    handle.flush()
    yield
    # The file stays: unlinking it would let two programs lock two different files.
    handle.truncate(0)


def _is_locked(handle: IO[str]) -> bool:
  """Tries to lock a file that is open for writing; returns whether it is locked now."""
  try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return False
  return True


@contextlib.contextmanager
def lock_with_others(path: pathlib.Path) -> Iterator[None]:
  """Holds a shared lock on a file; `is_held` is True until the last holder releases it."""
  with explained(path, 'write'):
    handle = open(path, 'a+', encoding='utf-8')  # NFS locks only what is open for reading
  with handle:
    fcntl.flock(handle, fcntl.LOCK_SH)
    yield


def is_held(path: pathlib.Path) -> bool:
  """Whether a process on this machine holds a lock on the file; False if it does not exist."""
  try:
    with open(path, 'r+', encoding='utf-8') as handle:  # NFS locks only what is open for writing
      return not _is_locked(handle)
  except FileNotFoundError:
    return False


def write_json(path: str | os.PathLike[str], value: Any, *, keeps_first: bool = False) -> None:
  """Writes JSON like `write_text`; NaN and infinities, which JSON does not have, become null."""
  text = json.dumps(_finite(value), indent=2, allow_nan=False) + '\n'
  write_text(path, text, keeps_first=keeps_first)


def write_text(path: str | os.PathLike[str], text: str, *, keeps_first: bool = False) -> None:
  """Writes `text` atomically: readers see the old file or the new one, never a part.

  keeps_first: does nothing if the file exists, even if another process wrote it just now; on a disk
    without hard links a file of the last moment may be replaced.
  Raises `types.Failure` on a full disk, and `UserError` for a path that cannot be written.
  """
  target = pathlib.Path(path)
  with (
    explained(target, 'write'),
    replacing(target, _rename_unless_it_exists if keeps_first else os.replace) as temporary,
    open(temporary, 'w', encoding='utf-8') as handle,
  ):
    handle.write(text)
    handle.flush()
    os.fsync(handle.fileno())


@contextlib.contextmanager
def replacing(
  target: pathlib.Path, rename: Callable[[pathlib.Path, pathlib.Path], None] = os.replace
) -> Iterator[pathlib.Path]:
  """Yields a temporary path beside `target`, which is renamed to `target` at the end.

  Whoever reads a file or folder that is written in this way sees the old or the new one, never a
  part. After an exception the temporary one is deleted.
  """
  # Not named by the process, because threads, and containers with one volume, may have the same.
  temporary = target.with_name(f'.{secrets.token_hex(4)}.{target.name}')
  try:
    yield temporary
    rename(temporary, target)
  finally:
    if temporary.is_dir():
      shutil.rmtree(temporary, ignore_errors=True)
    with contextlib.suppress(OSError):
      temporary.unlink()


def _rename_unless_it_exists(source: pathlib.Path, target: pathlib.Path) -> None:
  try:
    os.link(source, target)
  except FileExistsError:
    pass
  except OSError:  # a disk without hard links
    if not target.exists():
      os.replace(source, target)


def link_or_copy(source: str, target: str) -> None:
  """Makes a hard link to a file, or a copy if the disk has no hard links; for `shutil.copytree`."""
  try:
    os.link(source, target)
  except FileNotFoundError:
    raise
  except OSError:
    shutil.copy2(source, target)


def sync(path: pathlib.Path) -> None:
  """Returns when a file's contents, or a folder's entries, are on the disk. Some file systems, such
  as those of shared folders, cannot do so for folders, and write them when they like."""
  handle = os.open(path, os.O_RDONLY)
  try:
    os.fsync(handle)
  except OSError as error:
    if not path.is_dir() or error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
      raise
  finally:
    os.close(handle)


def sync_all(folder: pathlib.Path) -> None:
  """Does the same for a folder and everything in it."""
  for path in (*folder.rglob('*'), folder):
    sync(path)


def lasting_folder() -> pathlib.Path:
  """Returns a new temporary folder, which is deleted when this process exits."""
  folder = pathlib.Path(tempfile.mkdtemp(prefix='seed_acme_'))
  atexit.register(shutil.rmtree, folder, ignore_errors=True)
  return folder


def refuse_url(path: str | os.PathLike[str], kind: str = 'folder') -> None:
  """Raises `UserError` if what is to be written locally has a URL, of which `pathlib` would make a
  folder `gs:`.

  Call it before `pathlib` gets the path. kind: what is written, for the message.
  """
  if bucket.is_url(path):
    raise types.UserError(f'{os.fspath(path)} is in a bucket: give a local {kind} and copy that')


def new_folder(path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the absolute path of a folder to create. Raises `UserError` unless it is new or empty,
  and not in a bucket."""
  refuse_url(path)
  folder = pathlib.Path(path).absolute()
  with explained(folder, 'write'):
    if folder.is_symlink() or folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
      raise types.UserError(f'{folder} is there already: give a new or an empty folder')
  return folder


def read_json(path: str | os.PathLike[str]) -> Any:
  """Reads a JSON file; `UserError`, which names it, if it is missing or not JSON."""
  with explained(path, 'read'):
    text = pathlib.Path(path).read_bytes()
  try:
    return json.loads(text)
  except ValueError as error:
    raise types.UserError(
      f'{path} is not readable as JSON ({error}): restore the file or use another run'
    ) from None


def digest(path: pathlib.Path) -> str:
  """Returns the SHA-256 of a file, as hexadecimal digits."""
  found = hashlib.sha256()
  with open(path, 'rb') as file:
    while chunk := file.read(1 << 20):
      found.update(chunk)
  return found.hexdigest()


def sizes(folder: pathlib.Path) -> dict[str, int]:
  """Returns the size in bytes of every file below a folder, which may be missing."""
  paths = sorted(path for path in folder.rglob('*') if path.is_file())
  return {str(path.relative_to(folder)): path.stat().st_size for path in paths}


def _finite(value: Any) -> Any:
  if isinstance(value, float):
    return value if math.isfinite(value) else None
  if isinstance(value, dict):
    return {str(key): _finite(item) for key, item in value.items()}
  if isinstance(value, (list, tuple)):
    return [_finite(item) for item in value]
  if isinstance(value, os.PathLike):
    return os.fspath(value)
  if hasattr(value, 'item') and getattr(value, 'ndim', None) == 0:  # a NumPy scalar
    return _finite(value.item())
  return value


@contextlib.contextmanager
def explained(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
  """Turns an error of the operating system into a message that contains the path."""
  try:
    with explained_length():
      yield
  except OSError as error:
    if disk.is_full(error):
      raise types.Failure(
        f'cannot {doing} {os.fspath(path)}: {disk.describe(path, error)}: make room there'
      ) from error
    message = f'cannot {doing} {os.fspath(path)}: {error.strerror or error}'
    if disk.is_of_the_machine(error):
      raise types.Failure(message) from error
    raise types.UserError(f'{message}; check the path and its permissions') from error


@contextlib.contextmanager
def explained_length() -> Iterator[None]:
  """Turns the error about a path that is too long into a `types.UserError`; it may be any path that
  the user has given."""
  try:
    yield
  except OSError as error:
    if error.errno != errno.ENAMETOOLONG:
      raise
    name = os.fsdecode(os.fspath(error.filename or ''))
    raise types.UserError(
      f'the path {name[:40]}... ({len(os.fsencode(name))} bytes) is too long: a file system allows '
      'about 255 bytes for a name and 4,096 for a path; choose a shorter one'
    ) from error
