"""What Launchpad and xmanager meet in place of an account, a disk and the network."""

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
  """In place of aiplatform.CustomJob: keeps what it was made with, and runs nothing."""

  resource_name = 'not submitted'

  def __init__(self, **arguments: Any):
    self.arguments = arguments

  def submit(self, **arguments: Any) -> None:
    """Would hand in the job."""

  def _dashboard_uri(self) -> str:
    return self.resource_name


class Nothing:
  """In place of a module or an object whose calls are to have no effect."""

  def __getattr__(self, name: str) -> Any:
    return lambda *args, **kwargs: None


@contextlib.contextmanager
def scratch_folder() -> Iterator[str]:
  """A new folder, deleted at the end.

  Without `_` in its path, which Launchpad would draw names for ever to avoid.
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


@contextlib.contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
  """Puts `value` into a module, and what was there before back at the end."""
  before = getattr(module, name)
  setattr(module, name, value)
  try:
    yield
  finally:
    setattr(module, name, before)
