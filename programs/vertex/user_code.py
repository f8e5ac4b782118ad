"""The user's own modules for an image. Others may pull it, so it gets code but no secrets."""

from __future__ import annotations

from collections.abc import Sequence
import errno
import fnmatch
import os
import pathlib
import re
import shutil
import stat
from typing import NamedTuple

from seed_acme import types
from seed_acme.programs.vertex import image

_SKIPPED = ('.*', '__pycache__', '*.pyc', '*.egg-info', 'runs', 'build', 'dist', 'node_modules')
# Names of keys and passwords, in lower case. A module may have any name.
_KEYS = (
  'id_rsa*',
  'id_dsa*',
  'id_ecdsa*',
  'id_ed25519*',
  '*.pem',
  '*.key',
  '*.p8',
  '*.p12',
  '*.pfx',
  '*.ppk',
  '*.jks',
  '*.keystore',
  '*.kdbx',
  '*.gpg',
  '*.asc',
  '*.env',
  '*credentials*',
  '*client_secret*',
  '*service_account*',
  '*service-account*',
  '*kubeconfig*',
  'secret',
  'secret.*',
  'secrets',
  'secrets.*',
  'password*',
  'htpasswd',
  'token',
  'token.*',
  '*.token',
)
_KEY_FOLDERS = ('secret', 'secrets', 'credentials')  # unless they hold code
_HIDDEN_KEYS = ('.env*', '.netrc', '.npmrc', '.pypirc', '.git-credentials', '.ssh', '.aws', '.kube')
_CODE = '*.py'
# At the beginning of a key or of a service account's JSON, of AWS's settings, of a manifest of
# Kubernetes, and of a cluster file.
_SECRETS = (
  (re.compile(rb'PRIVATE KEY'),),
  (re.compile(rb'aws_secret_access_key', re.IGNORECASE),),
  (re.compile(rb'\bkind"?:[ \t]*"?Secret\b'), re.compile(rb'\bapiVersion"?:')),
  (re.compile(rb'"token"[ \t]*:'), re.compile(rb'"learner"[ \t]*:')),
)  # all of one
_BEGINNING = 1 << 16  # bytes
_MAX_BYTES = 100_000_000
# What lies in the same folder of the image.
_TAKEN = (
  'job.pkl',
  'process_entry.py',
  'entrypoint.sh',
  'requirements.txt',
  image.ACTOR_REQUIREMENTS,
)


class Code(NamedTuple):
  """The user's code. files: for the image, relative to the folder. left_out: possible secrets."""

  folder: pathlib.Path
  files: tuple[str, ...]
  left_out: tuple[str, ...]

  def copy_to(self, target: pathlib.Path) -> None:
    """Copies the files; links are followed."""
    for name in self.files:
      path = target / name
      path.parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(self.folder / name, path)

  def describe(self) -> str:
    """Returns the list of copied files, one a line."""
    lines = [f'{len(self.files)} files of {self.folder} go into the images:']
    lines += [f'  {name}' for name in self.files]
    if self.left_out:
      lines.append('Notice: left out, because they look like keys or passwords:')
      lines += [f'  {name}' for name in self.left_out]
    return '\n'.join(lines)


def find(option: str, package: str) -> Code:
  """Returns the files of the folder `--cloud.code=option` that go into an image beside `package`.

  Raises `types.UserError` for a folder that cannot be copied, and for links that lead out of it,
  because they would copy files that the user did not mean to give away.
  """
  given = f'--cloud.code={option}'
  folder = pathlib.Path(option)
  if (folder / package).exists():
    raise types.UserError(
      f'{given} holds {package} itself: give a folder with your own modules only'
    )
  for name in _TAKEN:
    if (folder / name).exists():
      more = ' (packages are given by --cloud.requirements)' if name.endswith('.txt') else ''
      raise types.UserError(
        f'{given} holds {name}, which an image has of its own: rename it, or put it into a folder '
        f'there{more}'
      )
  try:
    return _find(given, folder)
  except OSError as error:
    raise types.UserError(
      f'{given}: {error.filename} cannot go into an image: {error.strerror}; mend or remove it'
    ) from None


def _find(given: str, folder: pathlib.Path) -> Code:
  root, size = folder.resolve(), 0
  files, left_out = [], []
  for base, folders, names in os.walk(folder, onerror=_raise, followlinks=True):
    kept = []
    for path in (pathlib.Path(base, name) for name in (*folders, *names)):
      if _is_key(path):
        left_out.append(path.relative_to(folder).as_posix())
      elif not _matches(path.name, _SKIPPED):
        _refuse_link_out(given, root, path)
        kept.append(path)
    folders[:] = [path.name for path in kept if path.is_dir()]
    for path in (path for path in kept if not path.is_dir()):
      size += _size(path)
      files.append(path.relative_to(folder).as_posix())
    if size > _MAX_BYTES:
      raise types.UserError(
        f'{given} holds more than {_MAX_BYTES // 10**6} MB: '
        'give a folder with your own modules only'
      )
  return Code(folder, tuple(sorted(files)), tuple(sorted(left_out)))


def _matches(name: str, patterns: Sequence[str]) -> bool:
  return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _is_key(path: pathlib.Path) -> bool:
  """Whether a file is a key or has one, by its name or its beginning, or whether a folder is one of
  keys."""
  name = path.name.lower()
  if _matches(name, _HIDDEN_KEYS):
    return True
  if path.is_dir():
    return name in _KEY_FOLDERS and next(path.rglob(_CODE), None) is None
  if _matches(name, (_CODE, *_SKIPPED)):
    return False
  return _matches(name, _KEYS) or _holds_key(path)


def _holds_key(path: pathlib.Path) -> bool:
  try:
    if not stat.S_ISREG(os.stat(path).st_mode):
      return False
    with open(path, 'rb') as file:
      beginning = file.read(_BEGINNING)
    return any(all(part.search(beginning) for part in secret) for secret in _SECRETS)
  except OSError:  # `_size` reports it
    return False


def _refuse_link_out(given: str, root: pathlib.Path, path: pathlib.Path) -> None:
  if not path.is_symlink():
    return
  target = pathlib.Path(os.path.realpath(path))
  if target != root and root not in target.parents:
    raise types.UserError(
      f'{given}: {path} is a link to {os.readlink(path)}, out of that folder: '
      'put the file or folder itself there'
    )


def _size(path: pathlib.Path) -> int:
  found = os.stat(path)
  if not stat.S_ISREG(found.st_mode) or not os.access(path, os.R_OK):
    raise OSError(errno.EACCES, 'it is no file that can be read', str(path))
  return found.st_size


def _raise(error: OSError) -> None:
  raise error
