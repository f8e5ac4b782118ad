"""Packed runs: one zip with all that is needed to play a run or to start from its weights.

```
pack.json  README.md  config.json  environment.json  checkpoints/<updates>/{arrays.npz,meta.json}
metrics.csv  plot.png  video.mp4 or video.gif       (these may be missing, environment.json too)
```
Unpacked it is the folder of a run. It may come from an untrusted source, so only these names are
accepted, each once and as a plain file. Text is read up to a limit. Everything else must be stored
uncompressed, so that it cannot be larger than the zip. Nothing is unpickled, and no code that
config.json names is imported, here or by code that reads the folder, unless it is trusted
(`trust`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import stat
import struct
from typing import Any, BinaryIO
import zipfile
import zlib

from seed_acme import types
from seed_acme.files import disk
from seed_acme.files import local
from seed_acme.storage import array_files
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory

SUFFIX = '.zip'
RECORD, CARD = 'pack.json', 'README.md'
VIDEOS = ('video.mp4', 'video.gif')
FORMAT = 1
MAX_BYTES = 2**32 - 2  # of the zip; more would need the 64-bit form, which is not supported
MAX_METRICS_BYTES = 1 << 30
_MAX_TEXT_BYTES = 1 << 24
_MAX_DIRECTORY_BYTES = 1 << 16  # of the zip's list of names
_OF_CHECKPOINT = re.compile(r'checkpoints/([0-9]{12})/(arrays\.npz|meta\.json)')
_TEXTS = (RECORD, CARD, 'config.json', 'environment.json')
_STORED = ('plot.png', *VIDEOS)
_NEEDED = (RECORD, 'config.json')
_END = struct.Struct('<4s4H2LH')  # the record at the end of a zip
_NOT_READABLE = (*array_files.UNREADABLE, zlib.error, struct.error)


def write(out: pathlib.Path, contents: Mapping[str, pathlib.Path | bytes]) -> None:
  """Writes the zip atomically. contents: by name, files of a run or their bytes.

  Raises `types.UserError` for a path that cannot be written, `types.Failure` on a full disk.
  """
  try:
    with local.explained(out, 'write'):
      out.parent.mkdir(parents=True, exist_ok=True)
      with (
        local.replacing(out) as temporary,
        zipfile.ZipFile(temporary, 'w', allowZip64=False) as archive,
      ):
        for name, content in contents.items():
          kind = zipfile.ZIP_DEFLATED if _max_text_bytes(name) else zipfile.ZIP_STORED
          if isinstance(content, bytes):
            archive.writestr(name, content, kind)
          else:
            archive.write(content, name, kind)
  except zipfile.LargeZipFile as error:
    raise types.UserError(f'{out} would be larger than 4 GiB, which no pack may be') from error


def unpack(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> run_directory.RunDirectory:
  """Unpacks the run at `path` into the folder `out`, which must be new or empty, and returns it.

  Raises `types.UserError` if `path` is not a packed run or `out` not a suitable folder, and
  `types.Failure` if the disk is full; in each case nothing is left behind.
  """
  folder = local.new_folder(out)
  with local.explained(folder, 'write'), local.replacing(folder) as temporary:
    temporary.mkdir(parents=True)
    _extract(pathlib.Path(path), temporary)
  return run_directory.RunDirectory(folder)


def opened(path: pathlib.Path) -> run_directory.RunDirectory:
  """Opens the run in a zip, in a folder that exists as long as this process."""
  with local.explained(path, 'read'):
    status = path.stat()
  folder = _unpacked_for_reading(path.absolute(), status.st_mtime_ns, status.st_size)
  return run_directory.RunDirectory(folder, packed=os.fspath(path))


@functools.cache
def _unpacked_for_reading(path: pathlib.Path, changed_ns: int, size: int) -> pathlib.Path:
  """Unpacks a run once. changed_ns, size: cache keys, so that a changed file is read again."""
  del changed_ns, size
  return unpack(path, local.lasting_folder() / 'run').path


def _extract(path: pathlib.Path, folder: pathlib.Path) -> None:
  with local.explained(path, 'read'):
    file = open(path, 'rb')
  with file, _in_words(path, folder):
    _check_end(file)
    with zipfile.ZipFile(file) as archive:
      members = archive.infolist()
      _check_members(members, os.fstat(file.fileno()).st_size)
      _check_room(folder, sum(member.file_size for member in members))
      for member in members:
        target = folder / member.filename  # one of the known names, which cannot leave the folder
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
          local.explained(target, 'write'),
          archive.open(member) as source,
          open(target, 'xb') as copy,
        ):
          shutil.copyfileobj(source, copy, 1 << 20)
    _check_content(folder)


@contextlib.contextmanager
def _in_words(path: pathlib.Path, folder: pathlib.Path) -> Iterator[None]:
  """Turns errors into messages about the zip at `path`, which is unpacked into `folder`."""
  try:
    yield
  except (types.UserError, checkpoint.Damaged) as error:
    text = str(error).replace(str(folder), str(path))
    raise types.UserError(
      f'{path} is no run that seed-acme pack has written, or no longer: {text}'
    ) from error
  except _NOT_READABLE as error:
    raise types.UserError(
      f'{path} is no readable zip ({type(error).__name__}: {error}): copy or download it again'
    ) from error


def _check_end(file: BinaryIO) -> None:
  """Checks that the list of names is short and at the end, because Python reads it all at once."""
  size = file.seek(0, os.SEEK_END)
  if size > MAX_BYTES:
    raise types.UserError('it is larger than 4 GiB')
  file.seek(max(0, size - _END.size))
  found = file.read()
  if len(found) < _END.size or not found.startswith(b'PK\5\6'):
    raise types.UserError('it is not whole, or no zip at all')
  directory_bytes = _END.unpack(found)[5]
  if directory_bytes > _MAX_DIRECTORY_BYTES:
    raise types.UserError('it holds too many files')
  file.seek(max(0, size - _END.size - 20))
  if file.read(4) == b'PK\6\7':
    raise types.UserError('it is a zip of the 64-bit form')
  file.seek(0)


def _check_members(members: list[zipfile.ZipInfo], num_bytes: int) -> None:
  """Checks all members of the zip before any of them is read."""
  names = [member.filename for member in members]
  for member in members:
    name, mode = member.filename, member.external_attr >> 16
    most = _max_text_bytes(name)
    if names.count(name) > 1:
      raise types.UserError(f'it holds {_shown(name)} more than once')
    if not (name in _STORED or most) and not _OF_CHECKPOINT.fullmatch(name):
      raise types.UserError(f'it holds {_shown(name)}, which is no file of a packed run')
    if member.flag_bits & 1 or stat.S_IFMT(mode) not in (0, stat.S_IFREG):
      raise types.UserError(f'{_shown(name)} in it is encrypted, a link or no plain file')
    if most and member.file_size > most:
      raise types.UserError(f'{_shown(name)} in it is larger than {most / 2**20:,.0f} MiB')
    if member.compress_type not in ((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[: 1 + bool(most)]):
      raise types.UserError(f'{_shown(name)} in it is compressed, and must be stored as it is')
  stored = [member.file_size for member in members if not _max_text_bytes(member.filename)]
  if sum(stored) > num_bytes:
    raise types.UserError('its parts are larger than the file')
  checkpoints = {match[1] for name in names if (match := _OF_CHECKPOINT.fullmatch(name))}
  if len(checkpoints) != 1:
    raise types.UserError(f'it holds {len(checkpoints)} checkpoints, and must hold one')
  for needed in _NEEDED:
    if needed not in names:
      raise types.UserError(f'it lacks {needed}')


def _max_text_bytes(name: str) -> int:
  """Returns the largest size of a file that may be compressed; 0 for all others."""
  if name == 'metrics.csv':
    return MAX_METRICS_BYTES
  return _MAX_TEXT_BYTES if name in _TEXTS or name.endswith('/meta.json') else 0


def _shown(name: str) -> str:
  return repr(name if len(name) <= 60 else f'{name[:57]}...')


def _check_room(folder: pathlib.Path, num_bytes: int) -> None:
  if num_bytes > disk.free_bytes(folder):
    raise types.Failure(
      f'it takes {num_bytes / 1e6:,.1f} MB, and the disk of {folder.parent} has '
      f'{disk.free_bytes(folder) / 1e6:,.1f} MB free: make room there'
    )


def _check_content(folder: pathlib.Path) -> None:
  for path in folder.rglob('*.json'):
    _read_json(path)
  record = _read_json(folder / RECORD)
  found = record.get('format') if isinstance(record, dict) else None
  if found != FORMAT:
    raise types.UserError(
      f'its {RECORD} has format {_shown(str(found))}, and this version reads {FORMAT}: use the '
      'version of seed_acme that has written it'
    )
  [path] = checkpoint.all_whole(folder / 'checkpoints')
  checkpoint.load(path)


def _read_json(path: pathlib.Path) -> Any:
  try:
    return json.loads(path.read_bytes())
  except (ValueError, RecursionError) as error:
    raise types.UserError(f'{path} is not readable as JSON ({error})') from error
