"""Cache of compiled DeepMind Lab levels, so that a map is compiled once, not in every episode."""

from __future__ import annotations

import hashlib
import os
import pathlib
import shutil
import tempfile

from seed_acme import types
from seed_acme.files import bucket

_FOLDER_LENGTH = 3  # characters: 4,096 folders


class LevelCache:
  """A cache for `deepmind_lab.Lab(level_cache=...)`.

  folder: local, or a URL such as `gs://bucket/levels`, which needs TensorFlow in the actor's
    interpreter. Many processes may share it, because files are written atomically and two writers
    of one key write the same content.

  A file is named by the MD5 of its key, `FOLDER/5d4/1402abc4b2a76b9719d911017c592`. A folder that
  cannot be read or written raises `types.UserError`; a missing level does not.
  """

  def __init__(self, folder: str):
    self._folder = folder

  def path(self, key: str) -> str:
    """Returns the path of the level with this key."""
    name = hashlib.md5(key.encode('utf-8'), usedforsecurity=False).hexdigest()
    return '/'.join((self._folder.rstrip('/') or '/', name[:_FOLDER_LENGTH], name[_FOLDER_LENGTH:]))

  def fetch(self, key: str, pk3_path: str) -> bool:
    """Copies the level to `pk3_path`; False if the cache does not have it."""
    path = self.path(key)
    if bucket.is_url(path):
      return bucket.download(path, pathlib.Path(pk3_path))
    if not os.path.exists(path):
      return False
    try:
      shutil.copyfile(path, pk3_path)
    except OSError as error:
      raise self._error('read', error) from error
    return True

  def write(self, key: str, pk3_path: str) -> None:
    """Stores the level that was compiled to `pk3_path`."""
    path = self.path(key)
    if bucket.is_url(path):
      bucket.upload(pathlib.Path(pk3_path), path)
      return
    try:
      _copy_whole(pk3_path, path)
    except OSError as error:
      raise self._error('write', error) from error

  def _error(self, doing: str, error: OSError) -> types.UserError:
    return types.UserError(
      f'cannot {doing} a level of DeepMind Lab in level_cache ({self._folder}): '
      f'{error.strerror or error}; check the path and its permissions'
    )


def _copy_whole(source: str, target: str) -> None:
  """Copies a file atomically, so that readers never see a part of it."""
  folder = os.path.dirname(target)
  os.makedirs(folder, exist_ok=True)
  handle, partial = tempfile.mkstemp(dir=folder, prefix='.')
  os.close(handle)
  try:
    shutil.copyfile(source, partial)
    os.chmod(partial, 0o644)  # mkstemp's file is for its owner alone
    os.replace(partial, target)
  except BaseException:
    os.unlink(partial)
    raise
