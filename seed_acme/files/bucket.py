"""Files in a bucket, `gs://bucket/path`, or on another file system that TensorFlow supports.

An object store has no locks, links or appends, and its renames are copies. Its one guarantee is
that an object appears complete, when its writer closes it. So no file is modified in place:
`storage/bucket_copy.py` keeps a local folder and uploads it. TensorFlow is imported by the first
call that needs it; `is_url` does not.
"""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import pathlib
from typing import Any

from seed_acme import types
from seed_acme.libraries import tensorflow_loading

GOOGLE = 'gs://'
_MARK = '://'


class BucketError(types.UserError):
  """A file could not be read or written; the message names it, the reason and the fix."""


def is_url(path: str | os.PathLike[str]) -> bool:
  """Whether a path is a URL for TensorFlow's file systems rather than a local path."""
  return _MARK in os.fspath(path)


def join(url: str, *parts: str) -> str:
  """Joins a URL and parts: `gs://bucket/run`, `logs` -> `gs://bucket/run/logs`."""
  return '/'.join((url.rstrip('/'), *parts))


def read_bytes(url: str) -> bytes | None:
  """Returns the content, or None if there is no such file."""
  tf = tensorflow_loading.load()
  with _explained('read', url):
    try:
      with tf.io.gfile.GFile(url, 'rb') as file:
        return file.read()
    except tf.errors.NotFoundError:
      return None


def write_bytes(url: str, content: bytes) -> None:
  """Writes or replaces the file, and creates the folders above it."""
  tf = tensorflow_loading.load()
  with _explained('write', url):
    _make_folder_of(url, tf)
    with tf.io.gfile.GFile(url, 'wb') as file:
      file.write(content)


def upload(local: pathlib.Path, url: str) -> None:
  """Copies a local file to `url`; raises `FileNotFoundError` if it no longer exists."""
  tf = tensorflow_loading.load()
  with _explained('write', url):
    if not local.exists():
      raise FileNotFoundError(local)
    _make_folder_of(url, tf)
    tf.io.gfile.copy(str(local), url, overwrite=True)


def download(url: str, local: pathlib.Path) -> bool:
  """Copies the file to `local`; returns False if there is none."""
  tf = tensorflow_loading.load()
  with _explained('read', url):
    try:
      tf.io.gfile.copy(url, str(local), overwrite=True)
    except tf.errors.OpError as error:
      local.unlink(missing_ok=True)  # `copy` creates it before it opens the source
      if isinstance(error, tf.errors.NotFoundError):
        return False
      raise
  return True


def names(url: str) -> list[str]:
  """Returns the names of the files and folders in a folder; empty if there is no such folder."""
  tf = tensorflow_loading.load()
  with _explained('list', url):
    try:
      found = tf.io.gfile.listdir(url)
    except tf.errors.NotFoundError:
      return []
  return sorted({name.strip('/') for name in found} - {''})


def files_below(url: str) -> list[str]:
  """Returns the paths of all files in a folder and its subfolders, relative to it.

  Raises `BucketError` for a path that leads out of the folder: an object may have any name, and
  whoever can write to a bucket must not choose where its files are stored here.
  """
  tf = tensorflow_loading.load()
  found: list[str] = []
  with _explained('list', url), contextlib.suppress(tf.errors.NotFoundError):
    for folder, _, files in tf.io.gfile.walk(url):
      found += (join(folder, name).removeprefix(join(url, '')) for name in files if name)
  for path in found:
    if {'', '.', '..'}.intersection(path.split('/')):
      raise BucketError(
        f'cannot read {join(url, path)}: this name leads out of {url}: somebody else has written '
        'there; delete the object'
      )
  return sorted(found)


def rename(url: str, target: str) -> None:
  """Moves a file within its bucket; during the move both files may be visible."""
  tf = tensorflow_loading.load()
  with _explained('write', target):
    _make_folder_of(target, tf)
    tf.io.gfile.rename(url, target, overwrite=True)


def delete(url: str) -> None:
  """Deletes a file, if it exists."""
  tf = tensorflow_loading.load()
  with _explained('delete', url), contextlib.suppress(tf.errors.NotFoundError):
    tf.io.gfile.remove(url)


def delete_folder(url: str) -> None:
  """Deletes a folder with its content, if it exists."""
  tf = tensorflow_loading.load()
  with _explained('delete', url), contextlib.suppress(tf.errors.NotFoundError):
    tf.io.gfile.rmtree(url)


def _make_folder_of(url: str, tf: Any) -> None:
  if not url.startswith(GOOGLE):  # in a bucket, folders are only prefixes of names
    tf.io.gfile.makedirs(url.rpartition('/')[0])


@contextlib.contextmanager
def _explained(doing: str, url: str) -> Iterator[None]:
  tf = tensorflow_loading.load()
  try:
    yield
  except tf.errors.OpError as error:
    reason = ' '.join((error.message or type(error).__name__).split())[:200]
    raise BucketError(
      f'cannot {doing} {url}: {reason}; check the path, and that these '
      f'credentials may use it{_hint(url)}'
    ) from error


def _hint(url: str) -> str:
  return ' (gcloud auth application-default login)' if url.startswith(GOOGLE) else ''
