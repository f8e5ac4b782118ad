"""A run whose folder is in a bucket, while it is trained: the program's side of
`seed_acme/storage/bucket_copy.py`."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile

from seed_acme import types
from seed_acme.files import bucket
from seed_acme.files import google_credentials
from seed_acme.files import symbolic_links
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.system import processes
from seed_acme.programs.trial import door
from seed_acme.storage import bucket_copy
from seed_acme.storage import run_directory


class BucketLost(types.Failure):
  """The final copy of a run to its bucket failed."""


@contextlib.contextmanager
def opened(path: str) -> Iterator[run_directory.RunDirectory | None]:
  """Yields the local folder to train in for the run that `--run_dir` names.

  For a URL, this is a temporary folder: the run is fetched into it, copied back periodically while
  it trains, and deleted at the end. If the bucket cannot be reached any more, this process gets a
  SIGTERM. For '', yields None.
  """
  if not bucket.is_url(path):
    if path:
      symbolic_links.refuse(pathlib.Path(path).absolute(), run_directory.OURS)
    yield run_directory.RunDirectory(pathlib.Path(path).absolute()) if path else None
    return
  processes.set_tensorflow_defaults()
  if path.startswith(bucket.GOOGLE):
    _require_credentials(path)
  scratch = pathlib.Path(tempfile.mkdtemp(prefix='seed_acme_'))
  run = run_directory.RunDirectory(scratch / 'run', bucket=path.rstrip('/'))
  try:
    mirror = bucket_copy.Mirror(run, on_failure=_end_this_process)
    mirror.start()
    with closing(mirror):
      yield run
  except (bucket.BucketError, BucketLost):
    if any(scratch.rglob('arrays.npz')):
      print(f'error: the run is whole in {scratch / "run"} only', file=sys.stderr, flush=True)
      scratch = pathlib.Path()
    raise
  except (types.UserError, types.Failure) as error:
    kind = types.UserError if isinstance(error, types.UserError) else types.Failure
    raise kind(summary_lib.as_known(str(error), run)) from error
  finally:
    if scratch != pathlib.Path():
      shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def closing(mirror: bucket_copy.Mirror) -> Iterator[None]:
  """Copies the rest of the run at the end, except after wrong input or a lost lease."""
  try:
    yield
  except (types.UserError, door.CannotStart):
    mirror.abandon()
    raise
  except BaseException:
    _stop(mirror)
    raise
  _stop(mirror)


def _stop(mirror: bucket_copy.Mirror) -> None:
  try:
    mirror.stop()
  except bucket.BucketError as error:  # the bucket worked at the start
    raise BucketLost(str(error)) from error


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
  print(f'error: {error}', file=sys.stderr, flush=True)
  os.kill(os.getpid(), signal.SIGTERM)
