"""Locks on a run folder: who trains in it, and who still writes it.

The kernel releases a lock when its process ends, however it ends, so none becomes stale.
"""

from __future__ import annotations

import contextlib
import os
from typing import Iterator

from seed_acme.files import local
from seed_acme.files import symbolic_links
from seed_acme.storage import run_directory

# Longest time until the learner of a program that was killed has ended. The kernel frees its memory
# first, which may be large; a learner waits for that, as its program cannot be restarted otherwise.
_CHIEF_ENDS_S, _CHIEF_IS_FREED_S = 10.0, 60.0


@contextlib.contextmanager
def trains(run: run_directory.RunDirectory) -> Iterator[None]:
  """Locks the run for one training program.

  A process forked from this one keeps the lock as long as it lives; a process started with
  `subprocess` does not have it. Raises `UserError` if another program holds it, or if the learner
  of another one still writes the folder.
  """
  with local.lock(
    run.path / run_directory.LOCK_FILE,
    lambda holder: (
      f'run_dir {run.path} is being trained by another program (process {holder}): '
      'wait for it or stop it, or choose another --run_dir'
    ),
  ):
    with _is_chief(run, _CHIEF_ENDS_S):
      pass
    yield


def refuse_if_held(run: run_directory.RunDirectory) -> None:
  """Raises what `trains` does, before a program prepares to train in the folder.

  A folder in which none has trained is left as it is; it may be no run's, or not exist. One that
  cannot be written is refused later, and perhaps for another reason.
  """
  files = (run_directory.LOCK_FILE, run_directory.CHIEF_FILE)
  symbolic_links.refuse(run.path, files)  # because locking a file empties it
  if any(os.access(run.path / name, os.W_OK) for name in files):
    with trains(run):
      pass


@contextlib.contextmanager
def learns(run: run_directory.RunDirectory, is_chief: bool) -> Iterator[None]:
  """Holds the locks of a learner, until its last checkpoint is written.

  is_chief: whether it writes the folder. Raises `UserError` if another one does, as when a program
  is launched twice.
  """
  with contextlib.ExitStack() as locks:
    locks.enter_context(local.lock_with_others(run.path / run_directory.LEARNER_FILE))
    if is_chief:
      locks.enter_context(_is_chief(run, _CHIEF_IS_FREED_S))
    yield


def has_learner(run: run_directory.RunDirectory) -> bool:
  """Whether a learner on this machine still needs the other nodes, however it may end."""
  return local.is_held(run.path / run_directory.LEARNER_FILE)


def _is_chief(
  run: run_directory.RunDirectory, patience_s: float
) -> contextlib.AbstractContextManager[None]:
  return local.lock(
    run.path / run_directory.CHIEF_FILE,
    lambda holder: (
      f'run_dir {run.path} has a learner already, of another program (process {holder}): '
      'wait for it or stop it, or choose another --run_dir'
    ),
    patience_s,
  )
