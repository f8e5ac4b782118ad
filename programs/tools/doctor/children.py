"""Checks that run in child processes, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
import contextlib

from seed_acme.programs.system import leftovers


@contextlib.contextmanager
def pool(at_once: int) -> Iterator[futures.Executor]:
  """A pool of threads, each of which waits for a child process.

  Ctrl-C starts no further check and kills the children, because one that is importing TensorFlow
  would take seconds to notice it.
  """
  threads = futures.ThreadPoolExecutor(at_once)
  try:
    yield threads
  except BaseException:
    threads.shutdown(wait=False, cancel_futures=True)
    leftovers.kill_programs()
    raise
  finally:
    threads.shutdown()
