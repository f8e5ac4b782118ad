"""A lease on a folder of a bucket, where file locks do not exist: a record that keeps changing.

Its holder rewrites the record in every round. A program that finds one waits until it has not
changed for several rounds, by its own clock, or gives up when the record changes.
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

_STALE_PERIODS = 3.0  # a record that has not changed for so long is stale


class TakenOver(types.UserError):
  """Raised if another program trains in the same folder of the bucket."""


class Lease:
  """One program's lease on the folder that contains `url`. Used by any thread, one at a time."""

  def __init__(self, url: str, period_s: float):
    """period_s: `renew` must be called at least this often."""
    self._url = url
    self._period_s = period_s
    self._owner = uuid.uuid4().hex
    # Name of this Vertex AI job; '' elsewhere.
    self._job = os.environ.get('CLOUD_ML_JOB_ID', '')
    self._beat = 0

  def acquire(self) -> None:
    """Takes the lease. Raises `types.UserError` if another program holds it."""
    found = self._read()
    # A job that Vertex AI restarts finds the record of its own dead learner.
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
    """Renews the lease. Raises `TakenOver` if another program has it by now."""
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
    except ValueError:  # incomplete, where files do not appear atomically
      return {'owner': '', 'beat': content.hex() if content else '', 'job': '', 'host': 'unknown'}
