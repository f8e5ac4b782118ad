"""A run whose folder is in a bucket, while it is trained: the program's side of
`seed_acme/storage/bucket_copy.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import sys
import tempfile

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import google_credentials
from seed_acme.files import local
from seed_acme.files import symbolic_links
from seed_acme.programs.command_line import own_name
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.system import processes
from seed_acme.programs.trial import door
from seed_acme.storage import bucket_copy
from seed_acme.storage import checkpoint
from seed_acme.storage import lease
from seed_acme.storage import run_directory
from seed_acme.storage import trust as trust_lib


class BucketLost(types.Failure):
  """The final copy of a run to its bucket failed."""


@contextlib.contextmanager
def opened(path: str) -> Iterator[run_directory.RunDirectory | None]:
  """Yields the local folder to train in for the run that `--run_dir` names.

  For a URL, this is a temporary folder: the run is fetched into it, copied back periodically while
  it trains, and deleted at the end. If the bucket cannot be reached any more, this process gets a
  SIGTERM. If the last copy fails or is interrupted, the folder stays and is named on standard
  error. For '', yields None.
  """
  if not bucket.is_url(path):
    folder = run_directory.located(path) if path else None
    with local.explained(path, 'read'):
      is_absent = folder is not None and not folder.exists()
    if is_absent and _is_latest(path):
      raise types.UserError(
        f'there is no run at {path}: see whether this is the right folder, or leave --run_dir out '
        'to start a new run'
      )
    if folder is not None:
      symbolic_links.refuse(folder, run_directory.OURS)
    yield run_directory.RunDirectory(folder) if folder else None
    return
  processes.set_tensorflow_defaults()
  if path.startswith(bucket.GOOGLE):
    _require_credentials(path)
  scratch = pathlib.Path(tempfile.mkdtemp(prefix='seed_acme_'))
  run = run_directory.RunDirectory(scratch / 'run', bucket=path.rstrip('/'))
  is_kept = False

  def keep() -> None:
    nonlocal is_kept
    is_kept = True  # first, because another signal may come at any moment
    is_kept = checkpoint.newest(run.checkpoints) is not None
    if is_kept:
      with contextlib.suppress(OSError):  # the terminal is gone
        print(_only_copy(run), file=sys.stderr, flush=True)

  try:
    mirror = bucket_copy.Mirror(run, on_failure=_end_this_process)
    mirror.start()
    with closing(mirror, keep):
      yield run
  except BucketLost:
    raise
  except (types.UserError, types.Failure) as error:
    kind = types.UserError if isinstance(error, types.UserError) else types.Failure
    raise kind(summary_lib.as_known(str(error), run)) from error
  finally:
    if not is_kept:
      shutil.rmtree(scratch, ignore_errors=True)


def _is_latest(path: str) -> bool:
  link = pathlib.Path(path).absolute()
  latest = pathlib.Path(run_directory.ROOT, run_directory.LATEST).absolute()
  return link.is_symlink() or link == latest


@contextlib.contextmanager
def closing(mirror: bucket_copy.Mirror, keep: Callable[[], None] = lambda: None) -> Iterator[None]:
  """Copies the rest of the run at the end, except after wrong input or a lost lease.

  keep: called if that fails or is interrupted, because then the local folder may be the only one
  that holds the whole run.
  """
  try:
    yield
  except (types.UserError, door.CannotStart):
    mirror.abandon()
    raise
  except BaseException:
    _stop(mirror, keep)
    raise
  _stop(mirror, keep)


def _stop(mirror: bucket_copy.Mirror, keep: Callable[[], None]) -> None:
  try:
    mirror.stop()
  except lease.TakenOver:  # the run is another program's now
    raise
  except (bucket.BucketError, OSError) as error:  # the bucket worked at the start
    keep()
    raise BucketLost(str(error)) from error
  except BaseException:  # above all a signal
    keep()
    raise


def _only_copy(run: run_directory.RunDirectory) -> str:
  """Says where the only whole copy of a run is, and what can be done with it."""
  # Its paths are the user's own code, so the printed command may trust it.
  trust = ['--trust_run_dir'] if trust_lib.untrusted(local.read_json(run.config)) else []
  train = [own_name.command('seed-acme'), 'train', f'--run_dir={run.path}', *trust]
  copy = f'copy what it holds to {run.bucket}'
  if run.bucket.startswith(bucket.GOOGLE):
    words = ['gcloud', 'storage', 'rsync', '--recursive', str(run.path), run.bucket]
    copy = f'copy it to the bucket: {shlex.join(words)}'
  return (
    f'error: the run is whole in {run.path} only\n'
    f'resume it from there: {shlex.join(train)}\nor {copy}'
  )


def _require_credentials(path: str) -> None:
  """Raises `types.UserError` without credentials of Google Cloud.

  Otherwise TensorFlow would spend minutes asking whether this is a Google Cloud machine.
  """
  found = google_credentials.find()
  if not found.are_there:
    raise types.UserError(
      f'--run_dir={path} needs credentials of Google Cloud, and {found.where}: '
      f'run {" && ".join(found.commands)}'
    )


def _end_this_process(error: Exception) -> None:
  with contextlib.suppress(OSError):  # the terminal is gone
    print(f'error: {error}', file=sys.stderr, flush=True)
  os.kill(os.getpid(), signal.SIGTERM)
