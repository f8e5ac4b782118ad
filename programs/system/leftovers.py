"""What environments leave running in a process that has closed them: threads and programs.

Imports what actors import: no psutil.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import sys
import threading
from typing import NoReturn


def describe() -> str:
  """Threads that would hold up the end of this process, and programs; '' where there are none."""
  threads = [
    thread.name
    for thread in threading.enumerate()
    if not thread.daemon and thread is not threading.main_thread()
  ]
  programs = [_command(pid) for pid in _programs() if not _is_of_multiprocessing(pid)]
  named = [
    f'{len(names)} {kind}{"s" if len(names) > 1 else ""} ({", ".join(sorted(set(names))[:3])})'
    for kind, names in (('thread', threads), ('program', programs))
    if names
  ]
  return ' and '.join(named)


def end(code: int) -> NoReturn:
  """Ends this process from its main thread: as usual, so that what environments have registered
  with `atexit` is called, unless something still runs, which would hold the end up."""
  if describe():
    leave(code)
  sys.exit(code)


def leave(code: int) -> NoReturn:
  """Ends this process now, without waiting for threads, and kills its programs."""
  for pid in _programs():
    with contextlib.suppress(ProcessLookupError):
      os.kill(pid, signal.SIGKILL)
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)


def _programs(of: int | None = None) -> list[int]:
  """Process ids of the children of a process (None = this one), and of theirs."""
  found: list[int] = []
  for task in pathlib.Path(f'/proc/{of or "self"}/task').glob('*/children'):
    with contextlib.suppress(OSError):  # it has ended meanwhile
      for pid in map(int, task.read_text().split()):
        found += [pid, *_programs(pid)]
  return found


def _command(pid: int) -> str:
  with contextlib.suppress(OSError):
    return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
  return str(pid)


def _is_of_multiprocessing(pid: int) -> bool:
  """Whether it is the tracker that Python keeps beside spawned processes; it ends with this one."""
  with contextlib.suppress(OSError):
    return b'multiprocessing.resource_tracker' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
  return False
