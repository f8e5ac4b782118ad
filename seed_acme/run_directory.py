"""The folder of one run: what lies where, and how it is written safely.

```
runs/<config name>/<UTC time>/     (and runs/latest -> the newest)
  config.json      the resolved configuration        (saved_config.py)
  status.json      where the run is now, rewritten about once a second
  notices.txt      what the user should know of this start, one line each
  summary.json     what a finished run reached       failure.json  why it ended badly
  metrics.csv      tensorboard/      checkpoints/      logs/  (one file a node)
```
Imports no TensorFlow: the front end and the actors use it.
"""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import dataclasses
import datetime
import fcntl
import json
import math
import os
import pathlib
import re
from typing import Any, Iterator

from seed_acme import bucket as bucket_lib
from seed_acme import types

ROOT = 'runs'
LATEST = 'latest'
_LOCK_FILE = '.lock'
# Everything a run puts into its folder. A folder that holds anything else is not ours.
_OURS = frozenset(
  {
    _LOCK_FILE,
    'config.json',
    'status.json',
    'summary.json',
    'failure.json',
    'addresses.json',
    'notices.txt',
    'metrics.csv',
    'plot.png',
    'tensorboard',
    'checkpoints',
    'logs',
  }
)


@dataclasses.dataclass(frozen=True)
class RunDirectory:
  """Paths of one run; holds no open file and may be sent to other processes.

  bucket: URL of the folder that this one is copied to (`mirror.py`); '' = it is the run itself.
  """

  path: pathlib.Path
  bucket: str = ''

  @property
  def name(self) -> str:
    """Where the run is, as people are told."""
    return self.bucket or str(self.path)

  @property
  def config(self) -> pathlib.Path:
    """The resolved configuration."""
    return self.path / 'config.json'

  @property
  def status(self) -> pathlib.Path:
    """Progress of a run under way."""
    return self.path / 'status.json'

  @property
  def summary(self) -> pathlib.Path:
    """Figures of a finished run."""
    return self.path / 'summary.json'

  @property
  def failure(self) -> pathlib.Path:
    """The error that ended the run, with the node and its log."""
    return self.path / 'failure.json'

  @property
  def metrics(self) -> pathlib.Path:
    """One row every `learner.log_period_s`."""
    return self.path / 'metrics.csv'

  @property
  def plot(self) -> pathlib.Path:
    """Learning curve of a finished run."""
    return self.path / 'plot.png'

  @property
  def notices(self) -> pathlib.Path:
    """What the nodes want the user to know, one line each."""
    return self.path / 'notices.txt'

  @property
  def addresses(self) -> pathlib.Path:
    """Where the servers of a live run listen."""
    return self.path / 'addresses.json'

  @property
  def logs(self) -> pathlib.Path:
    """Folder of the nodes' output."""
    return self.path / 'logs'

  @property
  def checkpoints(self) -> pathlib.Path:
    """Folder of the newest checkpoints."""
    return self.path / 'checkpoints'

  @property
  def replay_in_progress(self) -> pathlib.Path:
    """Where Reverb writes a checkpoint before it is moved into the learner's."""
    return self.checkpoints / 'replay_in_progress'

  @property
  def tensorboard(self) -> pathlib.Path:
    """Folder of event files."""
    return self.path / 'tensorboard'

  def add_notice(self, text: str) -> None:
    """Tells the user, through the front end, without ending the run. One line."""
    with open(self.notices, 'a', encoding='utf-8') as file:
      file.write(' '.join(text.split()) + '\n')

  def holds_run(self) -> bool:
    """True where a run was started before, so that starting again resumes it."""
    return self.config.is_file()


def new(name: str, root: str | os.PathLike[str] = ROOT) -> RunDirectory:
  """Makes `root/<name>/<UTC time>` with the layout of a run, and returns it."""
  return create(new_folder(name, root))


def new_folder(name: str, root: str | os.PathLike[str]) -> pathlib.Path:
  """Makes `root/<name>/<UTC time>`, an empty folder that nobody else got, and returns it.

  Two programs that start in the same second get different folders.
  """
  if not re.fullmatch(r'\w[\w.-]*', name) or name == LATEST:
    raise types.UserError(
      f'the configuration name {name!r} cannot name a folder: use letters, digits, '
      f'_ . - (and not {LATEST!r})'
    )
  parent = pathlib.Path(root).absolute() / name
  stem = datetime.datetime.now(datetime.timezone.utc).strftime('%Y%m%d-%H%M%SZ')
  with _user_error(parent, 'make a run folder in'):
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
      path = parent / (stem if number == 1 else f'{stem}-{number}')
      try:
        path.mkdir()
      except FileExistsError:
        number += 1
      else:
        return path


def create(path: str | os.PathLike[str]) -> RunDirectory:
  """Makes (or completes) the run folder at `path`.

  Raises `UserError` if it cannot be written, or holds files that are no run's.
  """
  if bucket_lib.is_url(path):
    raise types.UserError(
      f'{os.fspath(path)} is in a bucket, where this cannot work: give a local '
      'folder (seed-acme train and seed_acme.train take a bucket)'
    )
  folder = pathlib.Path(path).absolute()
  with _user_error(folder, 'write into'):
    foreign = sorted(set(os.listdir(folder)) - _OURS) if folder.exists() else []
    if foreign and not (folder / 'config.json').is_file():
      raise types.UserError(
        f'run_dir {folder} holds files that belong to no run ({", ".join(foreign[:3])}): '
        'choose an empty or a new folder'
      )
    run = RunDirectory(folder)
    for part in (run.logs, run.checkpoints, run.tensorboard):
      part.mkdir(parents=True, exist_ok=True)
    probe = folder / f'.write-probe.{os.getpid()}'
    probe.touch()
    probe.unlink()
  return run


def open_existing(path: str | os.PathLike[str]) -> RunDirectory:
  """The run folder at `path` (symbolic links followed); `UserError` if it is none.

  Of one in a bucket a copy of what it takes to read it, which lasts as long as this process.
  """
  url = os.fspath(path) if bucket_lib.is_url(path) else ''
  if url:
    from seed_acme import mirror  # which stands above this module, and loads TensorFlow

    folder = mirror.fetch_for_reading(url)
  else:
    folder = pathlib.Path(path).resolve()
  run = RunDirectory(folder, bucket=url)
  if not folder.is_dir():
    raise types.UserError(f'{path} is no folder: give the folder of a run, such as runs/latest')
  if not run.holds_run():
    raise types.UserError(
      f'{path} is not the folder of a run (it has no config.json): '
      'give the folder of a run, such as runs/latest'
    )
  return run


def point_latest(run: RunDirectory, root: str | os.PathLike[str] = ROOT) -> bool:
  """Points `root/latest` to the run, in one step.

  Returns False, and touches nothing, where `latest` is somebody's real file or folder.
  """
  base = pathlib.Path(root).absolute()
  link = base / LATEST
  if link.exists() and not link.is_symlink():
    return False
  with _user_error(link, 'write'):
    base.mkdir(parents=True, exist_ok=True)
    temporary = base / f'.{LATEST}.{os.getpid()}'
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(os.path.relpath(run.path, base))
    os.replace(temporary, link)
  return True


@contextlib.contextmanager
def lock(run: RunDirectory) -> Iterator[None]:
  """Holds the run for one training program; `UserError` if another has it.

  The kernel lets go when the process ends, however it ends: there are no stale locks.
  A process forked from this one keeps the lock as long as it lives; a process started
  with `subprocess` does not have it.
  """
  with lock_file(
    run.path / _LOCK_FILE,
    lambda holder: (
      f'run_dir {run.path} is being trained by another program (process {holder}): '
      'wait for it or stop it, or choose another --run_dir'
    ),
  ):
    yield


@contextlib.contextmanager
def lock_file(path: pathlib.Path, complaint: Callable[[str], str]) -> Iterator[None]:
  """As `lock`, on any file. complaint: what to say where process `holder` has it."""
  with _user_error(path, 'write'):
    handle = open(path, 'a+', encoding='utf-8')
  with handle:
    try:
      fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      handle.seek(0)
      holder = handle.read().strip() or 'unknown'
      raise types.UserError(complaint(holder)) from None
    handle.truncate(0)
    handle.write(f'{os.getpid()}\n')
    handle.flush()
    yield
    # The file stays: unlinking it would let two programs lock two different files.
    handle.truncate(0)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
  """As `write_text`; NaN and infinities, which JSON does not have, are written as null."""
  write_text(path, json.dumps(_finite(value), indent=2, allow_nan=False) + '\n')


def write_text(path: str | os.PathLike[str], text: str) -> None:
  """Writes `text` so that readers see the old file or the new one, never a part."""
  target = pathlib.Path(path)
  temporary = target.with_name(f'.{target.name}.{os.getpid()}')
  with _user_error(target, 'write'):
    try:
      with open(temporary, 'w', encoding='utf-8') as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
      os.replace(temporary, target)
    finally:
      temporary.unlink(missing_ok=True)


def read_json(path: str | os.PathLike[str]) -> Any:
  """Reads a JSON file; `UserError` naming it if it is missing or no JSON."""
  with _user_error(path, 'read'):
    text = pathlib.Path(path).read_bytes()
  try:
    return json.loads(text)
  except ValueError as error:
    raise types.UserError(
      f'{path} is not readable as JSON ({error}): restore the file or use another run'
    ) from None


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
def _user_error(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
  """Turns the operating system's refusal into a message with the path."""
  try:
    yield
  except OSError as error:
    raise types.UserError(
      f'cannot {doing} {os.fspath(path)}: {error.strerror or error}; '
      'check the path, its permissions and the free space'
    ) from error
