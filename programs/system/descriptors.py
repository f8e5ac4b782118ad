"""The file descriptors of a process that serves a port: the limit, and one in reserve.

Every connection takes one, even from strangers, and a process without any left cannot open a file
to report that.
"""

from __future__ import annotations

import errno
import os
import resource

_reserve: list[int] = []


def prepare() -> None:
  """Raises the soft limit to the hard one and opens the reserve. Call it before opening ports."""
  _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
  resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
  if not _reserve:
    _reserve.append(os.open(os.devnull, os.O_RDONLY))


def release_reserve() -> None:
  """Closes the reserve, so that one file can be opened if no other thread takes the descriptor."""
  while _reserve:
    os.close(_reserve.pop())


def explain(error: BaseException) -> str:
  """Explains an error that was caused by a lack of descriptors; '' for any other."""
  cause: BaseException | None = error
  while cause is not None:
    if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE):
      break
    cause = cause.__cause__ or cause.__context__
  else:
    if os.strerror(errno.EMFILE) not in str(error):  # libraries only put it into the text
      return ''
  limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
  return (
    f'no file descriptor is left of the {limit} that this process may have ({error}): '
    'see who holds connections to its ports, or raise the limit (ulimit -n)'
  )
