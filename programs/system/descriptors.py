"""File descriptors of a process that serves a port: as many as it may have, one for the report.

Every connection takes one, of strangers too, and a process without any cannot open a file.
"""

from __future__ import annotations

import errno
import os
import resource

_reserve: list[int] = []


def prepare() -> None:
  """Raises the soft limit to the hard one and opens the reserve. Before any port is opened."""
  _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
  if not _reserve:
    _reserve.append(os.open(os.devnull, os.O_RDONLY))


def release_reserve() -> None:
  """So that one file can be opened, if no other thread is quicker."""
  while _reserve:
    os.close(_reserve.pop())


def explain(error: BaseException) -> str:
  """What to say of an error that arose because there were none left; '' of any other."""
  cause: BaseException | None = error
  while cause is not None:
    if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
      break
    cause = cause.__cause__ or cause.__context__
  else:
    if os.strerror(errno.EMFILE) not in str(error):  # as libraries put it
      return ''
  limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
  return (
    f'no file descriptor is left of the {limit} that this process may have ({error}): '
    'see who holds connections to its ports, or raise the limit (ulimit -n)'
  )
