"""The CPU-seconds of a run by kind of node, over its whole process tree."""

from __future__ import annotations

import psutil

from seed_acme.programs.system import processes

_OTHER = 'other'


class CpuAccount:
  """The user and system time of a process and all its descendants.

  Call `sample` about once a second, because time used by a process after its last sample is missed.
  """

  def __init__(self, root_pid: int):
    self._root = psutil.Process(root_pid)
    self._kinds: dict[tuple[int, float], str] = {}
    self._seconds: dict[tuple[int, float], float] = {}

  def sample(self) -> None:
    """Reads the times of all processes that are alive now."""
    try:
      found = [self._root, *self._root.children(recursive=True)]
    except psutil.NoSuchProcess:
      return
    for process in found:
      try:
        key = (process.pid, process.create_time())
        if self._kinds.get(key, _OTHER) == _OTHER:  # it may have been sampled before its exec
          self._kinds[key] = process.environ().get(processes.NODE_VARIABLE, _OTHER)
        times = process.cpu_times()
        self._seconds[key] = times.user + times.system
      except (psutil.NoSuchProcess, psutil.AccessDenied):
        continue

  def seconds(self) -> dict[str, float]:
    """Returns CPU-seconds by kind of node, since each process started."""
    total: dict[str, float] = {}
    for key, seconds in self._seconds.items():
      total[self._kinds[key]] = total.get(self._kinds[key], 0.0) + seconds
    return total
