"""The first steps of every node that Launchpad has started, on its main thread."""

from __future__ import annotations

import os
import threading

import launchpad as lp
from launchpad.launch import worker_manager

from seed_acme import types
from seed_acme.programs.system import processes

# a node needs a second or two for it, but longer on a machine with a load of 20 per core
_TERMINATION_NOTICE_S = 45
_IN_THREADS = (lp.LaunchType.LOCAL_MULTI_THREADING, lp.LaunchType.TEST_MULTI_THREADING)


def enter() -> threading.Event:
  """Makes a node's process end with its launcher, if any; returns the program's stop event."""
  # For users who launch the program themselves; `local_resources` sets more.
  os.environ.setdefault('TF2_BEHAVIOR', '1')
  launch_type = lp.context.get_context().launch_type
  if launch_type in _IN_THREADS:
    raise types.UserError(
      f'launch_type={launch_type.value!r}: nodes are processes, because each has its own signals '
      'and TensorFlow; use local_mp, or seed_acme.train(…, launch="single_process")'
    )
  processes.end_with_parent()
  # The flag of this name does not reach child processes, because Launchpad 0.5.1 cannot pass flags
  # on without ml_collections.
  manager = worker_manager.get_worker_manager()
  manager._termination_notice_secs = termination_notice_s()
  return lp.stop_event()


def termination_notice_s() -> int:
  """Returns the seconds after which a stopping node is killed, enough to save a checkpoint."""
  return _TERMINATION_NOTICE_S + processes.saving_seconds()
