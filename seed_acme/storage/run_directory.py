"""The folder of one run: its layout, and functions that write it safely.

```
runs/<config name>/<UTC time>/     (and runs/latest -> the newest)
  config.json      the resolved configuration        (saved_config.py)
  environment.json specification of the environments
  status.json      where the run is now, rewritten about once a second
  phase.txt        what a live run does instead of learning, such as starting
  notices.txt      what the user should know of this start, one line each
  summary.json     what a finished run reached       failure.json  why it ended badly
  cpu_seconds.json CPU-seconds so far, by kind of node
  launch.json      what --launch=auto has chosen, and why
  .reserve         space for the last messages of a run whose disk is full
  wandb.json, mlflow.json            which run of a tracking server this is
  metrics.csv      tensorboard/      checkpoints/      logs/  (one file a node)
  videos/          episodes filmed during training   (recordings.py)
```
Imports no TensorFlow, because the front end and the actors use it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import errno
import os
import pathlib
import re

from seed_acme import types
from seed_acme.files import bucket as bucket_lib
from seed_acme.files import disk
from seed_acme.files import local
from seed_acme.files import symbolic_links

ROOT = 'runs'
LATEST = 'latest'
_MOST_BYTES = 255  # of a name, on the file systems of Linux
# Locked by a program that trains, by every learner, and by the one that writes the folder
# (`run_locks.py`).
LOCK_FILE, LEARNER_FILE, CHIEF_FILE = '.lock', '.learner', '.chief'
# Everything a run puts into its folder. A folder that contains anything else is not a run's.
OURS = frozenset(
  {
    LOCK_FILE,
    LEARNER_FILE,
    CHIEF_FILE,
    disk.RESERVE_FILE,
    'config.json',
    'environment.json',
    'status.json',
    'summary.json',
    'cpu_seconds.json',
    'failure.json',
    'addresses.json',
    'launch.json',
    'inference.sock',
    'wandb.json',
    'mlflow.json',
    'notices.txt',
    'phase.txt',
    'metrics.csv',
    'plot.png',
    'tensorboard',
    'checkpoints',
    'logs',
    'videos',
  }
)


@dataclasses.dataclass(frozen=True)
class RunDirectory:
  """Paths of one run. It has no open file and may be sent to other processes.

  bucket: URL of the folder that this one is copied to (`bucket_copy.py`); '' = none.
  packed: zip that this one was unpacked from (`packed_run.py`); '' = none.
  """

  path: pathlib.Path
  bucket: str = ''
  packed: str = ''

  @property
  def name(self) -> str:
    """Location of the run, for messages."""
    return self.bucket or self.packed or str(self.path)

  @property
  def config(self) -> pathlib.Path:
    """The resolved configuration."""
    return self.path / 'config.json'

  @property
  def specification(self) -> pathlib.Path:
    """The specification of the environments: shapes, types and bounds."""
    return self.path / 'environment.json'

  @property
  def status(self) -> pathlib.Path:
    """Progress of a live run."""
    return self.path / 'status.json'

  @property
  def summary(self) -> pathlib.Path:
    """Figures of a finished run."""
    return self.path / 'summary.json'

  @property
  def cpu_seconds(self) -> pathlib.Path:
    """CPU-seconds of all starts by kind of node, also while the run works."""
    return self.path / 'cpu_seconds.json'

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
    """Messages of the nodes for the user, one line each."""
    return self.path / 'notices.txt'

  @property
  def phase(self) -> pathlib.Path:
    """File that says what the run does while it is not learning; absent while it is learning."""
    return self.path / 'phase.txt'

  @property
  def addresses(self) -> pathlib.Path:
    """Addresses of the servers of a live run."""
    return self.path / 'addresses.json'

  @property
  def launch(self) -> pathlib.Path:
    """The choice of `--launch=auto`, and its reason."""
    return self.path / 'launch.json'

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
    """Folder that Reverb writes a checkpoint to, before it is moved into the learner's."""
    return self.replay_in_progress_of(0)

  def replay_in_progress_of(self, host: int) -> pathlib.Path:
    """Returns `replay_in_progress` of one of several learner hosts."""
    return self.checkpoints / (f'replay_in_progress_{host}' if host else 'replay_in_progress')

  @property
  def tensorboard(self) -> pathlib.Path:
    """Folder of event files."""
    return self.path / 'tensorboard'

  @property
  def videos(self) -> pathlib.Path:
    """Folder of the episodes that `record_every` films; absent if none is filmed."""
    return self.path / 'videos'

  def add_notice(self, text: str) -> None:
    """Adds one line that the front end shows to the user. The run continues."""
    with open(self.notices, 'a', encoding='utf-8', errors='backslashreplace') as file:
      file.write(' '.join(text.split()) + '\n')

  def set_phase(self, text: str) -> None:
    """Shows the user what the run is doing; '' = it is learning. Errors are ignored."""
    with contextlib.suppress(types.UserError, types.Failure, OSError):
      if text:
        local.write_text(self.phase, text)
      else:
        self.phase.unlink(missing_ok=True)

  def ends(self) -> dict[str, str]:
    """Returns the digests of the records that the end of a start writes, by name.

    They tell the ends of two starts apart. Their times would not, as a clock may be set back.
    """
    found = {}
    for record in (self.summary, self.failure):
      with contextlib.suppress(FileNotFoundError):
        found[record.name] = local.digest(record)
    return found

  def holds_run(self) -> bool:
    """Whether a run was started here before, so that starting again resumes it."""
    return self.config.is_file()


def new(name: str, root: str | os.PathLike[str] = ROOT) -> RunDirectory:
  """Makes `root/<name>/<UTC time>` with the layout of a run, and returns it."""
  return create(new_folder(name, root))


def check_name(name: str) -> None:
  """Raises `types.UserError` for a configuration's name that cannot name a folder."""
  if not re.fullmatch(r'\w[\w.-]*', name) or name == LATEST:
    raise types.UserError(
      f'the configuration name {name!r} cannot name a folder: use letters, digits, '
      f'_ . - (and not {LATEST!r})'
    )


def new_folder(name: str, root: str | os.PathLike[str]) -> pathlib.Path:
  """Makes `root/<name>/<UTC time>`, a new empty folder, and returns it.

  Two programs that start in the same second get different folders.
  """
  check_name(name)
  parent = pathlib.Path(root).absolute() / name
  stem = datetime.datetime.now(datetime.timezone.utc).strftime('%Y%m%d-%H%M%SZ')
  with local.explained(parent, 'make a run folder in'):
    parent.mkdir(parents=True, exist_ok=True)
    return _make_first_free(parent, stem)


def _make_first_free(parent: pathlib.Path, stem: str) -> pathlib.Path:
  """Makes the first of `stem`, `stem-2`, `stem-3`, ... that does not exist yet."""
  number = 1
  while True:
    path = parent / (stem if number == 1 else f'{stem}-{number}')
    try:
      path.mkdir()
    except FileExistsError:
      number += 1
    else:
      return path


def located(path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the absolute path of a run folder that is given by it or by a link such as
  `runs/latest`, which other runs will move."""
  folder = pathlib.Path(path).absolute()
  return folder.resolve() if folder.is_symlink() else folder


def create(path: str | os.PathLike[str]) -> RunDirectory:
  """Makes (or completes) the run folder at `path`.

  Raises `UserError` if it cannot be written, or contains files that do not belong to a run.
  """
  if bucket_lib.is_url(path):
    raise types.UserError(
      f'{os.fspath(path)} is in a bucket, where this cannot work: give a local '
      'folder (seed-acme train and seed_acme.train take a bucket)'
    )
  folder = located(path)
  for name in folder.parts:  # before the folders above it are made
    if len(os.fsencode(name)) > _MOST_BYTES:
      raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), os.fspath(folder))
  if folder.is_file():
    raise types.UserError(
      f'cannot write into {folder}: it is a file, and run_dir is a folder (seed-acme unpack FILE '
      'FOLDER makes one of a packed run)'
    )
  symbolic_links.refuse(folder, OURS)
  with local.explained(folder, 'write into'):
    names = os.listdir(folder) if folder.exists() else []
    foreign = sorted(name for name in names if name not in OURS and not _is_temporary(name))
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


def _is_temporary(name: str) -> bool:
  """Whether this is a file that a program was writing when it was killed."""
  found = re.fullmatch(r'\.(?:[0-9a-f]+\.(.+)|write-probe\.\d+)', name)
  return found is not None and (found[1] is None or found[1] in OURS)


def point_latest(run: RunDirectory, root: str | os.PathLike[str] = ROOT) -> bool:
  """Points `root/latest` to the run, atomically.

  Returns False, and changes nothing, if `latest` is a real file or folder.
  """
  base = pathlib.Path(root).absolute()
  link = base / LATEST
  if link.exists() and not link.is_symlink():
    return False
  with local.explained(link, 'write'):
    base.mkdir(parents=True, exist_ok=True)
    with local.replacing(link) as temporary:
      temporary.symlink_to(os.path.relpath(run.path, base))
  return True
