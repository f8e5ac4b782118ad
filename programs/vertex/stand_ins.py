"""Stand-ins that Launchpad and xmanager call instead of an account, a disk and the network."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import secrets
import shutil
import tempfile
from typing import Any

from seed_acme import types


class RecordedJob:
  """A stand-in for aiplatform.CustomJob, which keeps its arguments and runs nothing."""

  resource_name = 'not submitted'

  def __init__(self, **arguments: Any):
    self.arguments = arguments

  def submit(self, **arguments: Any) -> None:
    """Does nothing; the real class would submit the job."""

  def _dashboard_uri(self) -> str:
    return self.resource_name


class Nothing:
  """A stand-in for a module or an object, whose calls have no effect."""

  def __getattr__(self, name: str) -> Any:
    return lambda *args, **kwargs: None


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
  """Yields a new folder, deleted at the end.

  Its path has no `_`, because Launchpad draws random names until one has none.
  """
  parents = [
    path
    for path in (tempfile.gettempdir(), '/tmp', '/var/tmp', '/dev/shm')
    if '_' not in path and os.access(path, os.W_OK)
  ]
  if not parents:
    raise types.UserError(
      f'no temporary folder without "_" in its path ({tempfile.gettempdir()}): set TMPDIR to one'
    )
  path = os.path.join(parents[0], f'seed-acme-{secrets.token_hex(8)}')
  os.mkdir(path, mode=0o700)
  try:
    yield path
  finally:
    shutil.rmtree(path, ignore_errors=True)
