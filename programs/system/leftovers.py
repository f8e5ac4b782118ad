"""The threads and programs that environments leave running after they were closed.

Imports only what actors have, so no psutil.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
import contextlib
import os
import pathlib
import signal
import sys
import threading
from typing import NoReturn

_of_others: set[int] = set()  # process ids of programs that are no leftovers


@contextlib.contextmanager
def of_others() -> Iterator[None]:
  """Programs that are started within, and theirs, belong to something else than an environment.

  `describe` passes over them, and `end` leaves them to their owner. Call it while no environment
  is stepped.
  """
  before = set(_programs())
  try:
    yield
  finally:
    _of_others.update(set(_programs()) - before)


def describe() -> str:
  """Describes threads that would delay the end of this process, and programs; '' = none."""
  threads = [
    thread.name
    for thread in threading.enumerate()
    if not thread.daemon and thread is not threading.main_thread()
  ]
  pids = _programs(passed_over=_of_others)
  programs = [_command(pid) for pid in pids if not _is_of_multiprocessing(pid)]
  named = [
    f'{len(names)} {kind}{"s" if len(names) > 1 else ""} ({", ".join(sorted(set(names))[:3])})'
    for kind, names in (('thread', threads), ('program', programs))
    if names
  ]
  return ' and '.join(named)


def end(code: int) -> NoReturn:
  """Ends this process from its main thread.

  It exits normally, so that `atexit` handlers of environments run, unless something is still
  running that would delay the exit.
  """
  if describe():
    leave(code)
  sys.exit(code)


def leave(code: int) -> NoReturn:
  """Ends this process now, without waiting for threads, and kills its programs."""
  kill_programs()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(code)


def kill_programs() -> None:
  """Kills all descendants of this process."""
  for pid in _programs():
    with contextlib.suppress(ProcessLookupError):
      os.kill(pid, signal.SIGKILL)


def _programs(of: int | None = None, passed_over: Collection[int] = ()) -> list[int]:
  """Returns the process ids of all descendants of a process (None = this one).

  passed_over: processes that are left out, with all their descendants.
  """
  found: list[int] = []
  for task in pathlib.Path(f'/proc/{of or "self"}/task').glob('*/children'):
    with contextlib.suppress(OSError):  # the task has just ended
      for pid in map(int, task.read_text().split()):
        if pid not in passed_over:
          found += [pid, *_programs(pid, passed_over)]
  return found


def _command(pid: int) -> str:
  with contextlib.suppress(OSError):
    return pathlib.Path(f'/proc/{pid}/comm').read_text().strip()
  return str(pid)


def _is_of_multiprocessing(pid: int) -> bool:
  """Whether a process is multiprocessing's resource tracker, which ends with this process."""
  with contextlib.suppress(OSError):
    return b'multiprocessing.resource_tracker' in pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
  return False
