"""Who works in a folder of a bucket, where no kernel holds locks: a record that moves.

Its holder rewrites it every round. Who finds one waits until it has stood still for several
rounds, by the clock of the one who waits, or gives up when it moves.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any
import uuid

from seed_acme import types
from seed_acme.files import bucket

_STALE_PERIODS = 3.0  # a record that has not moved for so long is nobody's


class TakenOver(types.UserError):
  """Another program trains in the same folder of the bucket."""


class Lease:
  """One program's claim to the folder that `url` lies in. Any thread, one at a time."""

  def __init__(self, url: str, period_s: float):
    """period_s: `renew` is called at least so often."""
    self._url = url
    self._period_s = period_s
    self._owner = uuid.uuid4().hex
    # Name of the Vertex AI job this is; '' elsewhere.
    self._job = os.environ.get('CLOUD_ML_JOB_ID', '')
    self._beat = 0

  def acquire(self) -> None:
    """Raises `types.UserError` if somebody else's record moves."""
    found = self._read()
    # A job that is started again by Vertex AI finds the record of its own dead learner.
    if found is not None and not (found['job'] and found['job'] == self._job):
      deadline = time.monotonic() + _STALE_PERIODS * self._period_s
      while time.monotonic() < deadline:
        time.sleep(self._period_s / 2)
        now = self._read()
        if now is None:
          break
        if now != found:
          raise types.UserError(
            f'run_dir {self._url.rpartition("/")[0]} is being trained by another program '
            f'({now["host"]}): wait for it or stop it, or choose another --run_dir'
          )
    self._write()
    self._check()

  def renew(self) -> None:
    """Raises `TakenOver` if it is somebody else's by now."""
    self._check()
    self._write()

  def release(self) -> None:
    """Deletes the record if it is still ours."""
    found = self._read()
    if found is not None and found['owner'] == self._owner:
      bucket.delete(self._url)

  def _check(self) -> None:
    found = self._read()
    if found is None or found['owner'] != self._owner:
      by = 'nobody' if found is None else found['host']
      raise TakenOver(
        f'the run folder {self._url.rpartition("/")[0]} was taken over by {by}: '
        'only one program may train in it'
      )

  def _write(self) -> None:
    self._beat += 1
    bucket.write_bytes(
      self._url,
      json.dumps(
        {'owner': self._owner, 'beat': self._beat, 'job': self._job, 'host': socket.gethostname()}
      ).encode(),
    )

  def _read(self) -> dict[str, Any] | None:
    content = bucket.read_bytes(self._url)
    try:
      return None if content is None else json.loads(content)
    except ValueError:  # torn, where files do not appear whole
      return {'owner': '', 'beat': content.hex() if content else '', 'job': '', 'host': 'unknown'}
