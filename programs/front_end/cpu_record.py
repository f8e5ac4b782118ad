"""The CPU-seconds of a run over all its starts, in a file that is kept up to date while it works.

A start that is killed with its front end, or loses power, writes no summary. Its steps are in the
last status, so its CPU-seconds have to be on the disk, too.
"""

from __future__ import annotations

from collections.abc import Mapping
import contextlib

from seed_acme import types
from seed_acme.files import local
from seed_acme.storage import run_directory


class CpuRecord:
  """The CPU-seconds of a run by kind of node.

  seconds: of all starts, including start-up.
  """

  def __init__(self, run: run_directory.RunDirectory):
    self._path = run.cpu_seconds
    self.seconds = _earlier(run)
    self.begin()

  def begin(self) -> None:
    """Notes that the next `update` is about other processes than the last one."""
    self._before = self.seconds

  def update(self, seconds: Mapping[str, float]) -> None:
    """Counts what this start has used so far, and writes the file. Errors in writing are ignored,
    because the run matters more than its account."""
    kinds = sorted({*self._before, *seconds})
    self.seconds = {kind: self._before.get(kind, 0.0) + seconds.get(kind, 0.0) for kind in kinds}
    with contextlib.suppress(types.UserError, types.Failure, OSError):
      local.write_json(self._path, self.seconds)


def _earlier(run: run_directory.RunDirectory) -> dict[str, float]:
  """Returns the CPU-seconds of earlier starts. Both files only ever grow, and either may be older:
  the summary after a kill, and the other one after a full disk."""
  record = local.read_json(run.cpu_seconds) if run.cpu_seconds.exists() else {}
  summary = local.read_json(run.summary).get('cpu_s', {}) if run.summary.exists() else {}
  return {
    kind: max(record.get(kind, 0.0), summary.get(kind, 0.0)) for kind in sorted({*record, *summary})
  }
