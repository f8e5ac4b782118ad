"""Builds the Launchpad wheel that this project installs, from DeepMind's wheel.

    python scripts/launchpad_wheel.py FOLDER

DeepMind's wheel is for Python 3.9 and 3.10, and the compiled half of its courier loads only with
TensorFlow 2.8. Everything else in it is Python and stays unchanged; the package in
launchpad_wheel/courier replaces the compiled half. The result installs on any Python as
`dm-launchpad` 0.5.1+seed, byte for byte the same wherever it is made.
"""

from __future__ import annotations

import argparse
import base64
from collections.abc import Mapping
from email import parser
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_OURS = _ROOT / 'launchpad_wheel' / 'courier'
_VERSION = '0.5.1'
SHA256 = 'ced3eac3eeb0493c52d785cdab8e96999f3fce0dd1073b780bf8ee63b48f14a5'
_PLATFORMS = ('manylinux2010_x86_64', 'manylinux_2_12_x86_64')
OUR_VERSION = f'{_VERSION}+seed'
NAME = f'dm_launchpad-{OUR_VERSION}-py3-none-any.whl'
_INFO = f'dm_launchpad-{OUR_VERSION}.dist-info'
_THEIR_INFO = f'dm_launchpad-{_VERSION}.dist-info'
# The Python files of courier, except `__init__`, which loads TensorFlow's library for the compiled
# half.
_COURIER = ('client.py', 'client_test.py', 'py_server.py')
_CLIENT = 'courier/python/client.py'
_STATUS = ('from pybind11_abseil.status import', 'from courier.python.status import')
_NOT_DECLARED = ('numpy', 'six')  # imported, but missing in its metadata
_EPOCH_VARIABLE = 'SOURCE_DATE_EPOCH'
_FIRST_DATE_S = 315532800  # 1980, the first date that a zip can store
_NOTICE = """\
This is a modified build of Launchpad 0.5.1, Copyright 2020 DeepMind Technologies Limited, under the
Apache License 2.0 (LICENSE). The script scripts/launchpad_wheel.py of seed_acme made it from
dm_launchpad-0.5.1-cp310-cp310-manylinux2010_x86_64.whl. Changes:

- The compiled half of courier is left out. The modules of courier that are not listed below are of
  seed_acme, under the Apache License 2.0, too.
- courier/python/client.py imports StatusNotOk from courier.python.status.
- The metadata name the packages numpy and six, which it imports, and no extras.

Unchanged: launchpad/**, courier/python/client_test.py, courier/python/py_server.py.
"""


class CannotBuild(Exception):
  """The wheel cannot be built; the text says why, and what to do."""


def main() -> int:
  """Builds the wheel; returns the exit code."""
  arguments = argparse.ArgumentParser(
    description="Makes dm-launchpad 0.5.1+seed, with a courier of Python, from DeepMind's wheel."
  )
  arguments.add_argument('folder', type=pathlib.Path, help='where the wheel is put')
  arguments.add_argument(
    '--source', type=pathlib.Path, help="DeepMind's wheel, where it is here already"
  )
  given = arguments.parse_args()
  try:
    print(build(given.folder, given.source))
  except CannotBuild as error:
    print(f'launchpad_wheel.py: {error}', file=sys.stderr)
    return 1
  return 0


def build(folder: pathlib.Path, source: pathlib.Path | None = None) -> pathlib.Path:
  """Writes the wheel into `folder` atomically, and returns its path."""
  with tempfile.TemporaryDirectory() as temporary:
    if source is None:
      source = _download(pathlib.Path(temporary))
    _check(source)
    files = {**_theirs(source), **_our_courier(), **_metadata(source)}
  try:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    part = path.with_suffix(f'.{os.getpid()}')
    _write(part, files)
    part.replace(path)
  except OSError as error:
    raise CannotBuild(f'cannot write into {folder}: {error.strerror}') from error
  return path


def _download(folder: pathlib.Path) -> pathlib.Path:
  command = [
    *(sys.executable, '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check'),
    *('--no-deps', '--only-binary=:all:', '--python-version=3.10', '--implementation=cp'),
    *(f'--platform={platform}' for platform in _PLATFORMS),
    *(f'--dest={folder}', f'dm-launchpad=={_VERSION}'),
  ]
  # Constraints of an installation name the wheel that this script builds.
  variables = {name: value for name, value in os.environ.items() if name != 'PIP_CONSTRAINT'}
  done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
  found = [*folder.glob('*.whl')]
  if done.returncode or len(found) != 1:
    lines = done.stderr.strip().splitlines() or ['pip says nothing']
    raise CannotBuild(
      f'pip cannot download dm-launchpad {_VERSION}: {lines[-1]}; or give the wheel, from another '
      'machine, by --source=WHEEL'
    )
  return found[0]


def _check(source: pathlib.Path) -> None:
  try:
    actual = hashlib.sha256(source.read_bytes()).hexdigest()
  except OSError as error:
    raise CannotBuild(f'cannot read {source}: {error.strerror}') from error
  if actual != SHA256:
    raise CannotBuild(
      f'{source.name} is not the wheel that this was written for: its sha256 is {actual}, and not '
      f'{SHA256}'
    )


def _theirs(source: pathlib.Path) -> dict[str, bytes]:
  """Returns Launchpad's files, and the Python files of courier, by name."""
  with zipfile.ZipFile(source) as wheel:
    names = [
      name
      for name in wheel.namelist()
      if name.startswith('launchpad/') or name.removeprefix('courier/python/') in _COURIER
    ]
    files = {name: wheel.read(name) for name in names}
  text = files[_CLIENT].decode()
  if _STATUS[0] not in text:
    raise CannotBuild(f'{_CLIENT} does not import StatusNotOk as expected')
  files[_CLIENT] = text.replace(*_STATUS).encode()
  return files


def _our_courier() -> dict[str, bytes]:
  files = {
    f'courier/{path.relative_to(_OURS).as_posix()}': path.read_bytes()
    for path in _OURS.rglob('*.py')
  }
  if not files:
    raise CannotBuild(f'{_OURS} is missing: run this within a checkout, or the sdist')
  return files


def _metadata(source: pathlib.Path) -> dict[str, bytes]:
  """Returns the files of the `.dist-info`, except for RECORD."""
  with zipfile.ZipFile(source) as wheel:
    theirs = parser.Parser().parsestr(wheel.read(f'{_THEIR_INFO}/METADATA').decode())
    license_text = wheel.read(f'{_THEIR_INFO}/LICENSE')
  required = [name for name in theirs.get_all('Requires-Dist', []) if 'extra ==' not in name]
  required = sorted({*required, *_NOT_DECLARED})
  lines = [
    'Metadata-Version: 2.1',
    'Name: dm-launchpad',
    f'Version: {OUR_VERSION}',
    'Summary: Launchpad 0.5.1 with a courier of Python, for any Python and TensorFlow',
    f'Home-page: {theirs["Home-page"]}',
    'License: Apache 2.0',
    'Requires-Python: >=3.10',
    *(f'Requires-Dist: {name}' for name in required),
    'Description-Content-Type: text/plain',
    '',
    _NOTICE,
  ]
  wheel_lines = [
    'Wheel-Version: 1.0',
    'Generator: seed_acme (launchpad_wheel.py)',
    'Root-Is-Purelib: true',
    'Tag: py3-none-any',
    '',
  ]
  return {
    f'{_INFO}/LICENSE': license_text,
    f'{_INFO}/METADATA': '\n'.join(lines).encode(),
    f'{_INFO}/NOTICE': _NOTICE.encode(),
    f'{_INFO}/WHEEL': '\n'.join(wheel_lines).encode(),
    f'{_INFO}/top_level.txt': b'courier\nlaunchpad\n',
  }


def _write(path: pathlib.Path, files: Mapping[str, bytes]) -> None:
  """Writes the zip sorted, with one date, and uncompressed, because zlib's versions differ."""
  record = f'{_INFO}/RECORD'
  lines = [f'{name},{_digest(files[name])},{len(files[name])}' for name in sorted(files)]
  whole = {**files, record: '\n'.join([*lines, f'{record},,', '']).encode()}
  date_s = max(_FIRST_DATE_S, int(os.environ.get(_EPOCH_VARIABLE, _FIRST_DATE_S)))
  with zipfile.ZipFile(path, 'w', zipfile.ZIP_STORED) as wheel:
    # `.dist-info` last, as installers prefer.
    for name in sorted(whole, key=lambda name: (name.startswith(_INFO), name)):
      entry = zipfile.ZipInfo(name, time.gmtime(date_s)[:6])
      entry.create_system = 3  # Unix, so that the permissions below apply
      is_program = whole[name].startswith(b'#!') and not name.endswith('.py')
      entry.external_attr = (0o100755 if is_program else 0o100644) << 16
      wheel.writestr(entry, whole[name])


def _digest(content: bytes) -> str:
  digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
  return f'sha256={digest.rstrip(b"=").decode()}'


if __name__ == '__main__':
  sys.exit(main())
