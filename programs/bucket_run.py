"""A run whose folder is in a bucket, while it is trained: `seed_acme/mirror.py` for a program."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shutil
import signal
import sys
import tempfile

from seed_acme import bucket
from seed_acme import mirror as mirror_lib
from seed_acme import run_directory
from seed_acme import types
from seed_acme.programs import processes
from seed_acme.programs import summary as summary_lib
from seed_acme.programs.vertex import missing as vertex_missing


@contextlib.contextmanager
def opened(path: str) -> Iterator[run_directory.RunDirectory | None]:
  """The local folder to train in for the run that `--run_dir` names.

  A URL: a folder that holds what was fetched from there, is copied there meanwhile, and is
  deleted at the end; SIGTERM for this process if the bucket is lost. '': None.
  """
  if not bucket.is_url(path):
    yield run_directory.RunDirectory(pathlib.Path(path).absolute()) if path else None
    return
  processes.set_tensorflow_defaults()
  if path.startswith(bucket.GOOGLE):
    _require_credentials(path)
  scratch = pathlib.Path(tempfile.mkdtemp(prefix='seed_acme_'))
  run = run_directory.RunDirectory(scratch / 'run', bucket=path.rstrip('/'))
  try:
    mirror = mirror_lib.Mirror(run, on_failure=_end_this_process)
    mirror.start()
    with closing(mirror):
      yield run
  except bucket.BucketError:
    if any(scratch.rglob('arrays.npz')):
      print(f'error: the run is whole in {scratch / "run"} only', file=sys.stderr, flush=True)
      scratch = pathlib.Path()
    raise
  except types.UserError as error:
    raise types.UserError(summary_lib.as_known(str(error), run)) from error
  finally:
    if scratch != pathlib.Path():
      shutil.rmtree(scratch, ignore_errors=True)


@contextlib.contextmanager
def closing(mirror: mirror_lib.Mirror) -> Iterator[None]:
  """Copies what is left at the end, but nothing after wrong input or a lost lease."""
  try:
    yield
  except types.UserError:
    mirror.abandon()
    raise
  except BaseException:
    mirror.stop()
    raise
  mirror.stop()


def _require_credentials(path: str) -> None:
  """Without any TensorFlow would ask for minutes whether this is a machine of Google's."""
  need = vertex_missing.credentials()
  if need.state == vertex_missing.MISSING:
    raise types.UserError(
      f'--run_dir={path} needs credentials of Google Cloud, and {need.why}: '
      f'run {" && ".join(need.commands)}'
    )


def _end_this_process(error: Exception) -> None:
  print(f'error: {error}', file=sys.stderr, flush=True)
  os.kill(os.getpid(), signal.SIGTERM)
