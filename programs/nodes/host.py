"""What every node does first where Launchpad has started it, on its main thread."""

from __future__ import annotations

import os
import threading

import launchpad as lp
from launchpad.launch import worker_manager

from seed_acme import types
from seed_acme.programs.system import processes

_TERMINATION_NOTICE_S = 45  # a second or two of work, on a machine whose load is 20 a core
_IN_THREADS = (lp.LaunchType.LOCAL_MULTI_THREADING, lp.LaunchType.TEST_MULTI_THREADING)


def enter() -> threading.Event:
  """Ties a node's process to its launcher, if it has one. Returns the program's stop."""
  # For users who launch the program themselves; `local_resources` sets more.
  os.environ.setdefault('TF2_BEHAVIOR', '1')
  launch_type = lp.context.get_context().launch_type
  if launch_type in _IN_THREADS:
    raise types.UserError(
      f'launch_type={launch_type.value!r}: nodes are processes, because each has its own signals '
      'and TensorFlow; use local_mp, or seed_acme.train(…, launch="single_process")'
    )
  processes.end_with_parent()
  # The flag of this name does not reach children: Launchpad 0.5.1 cannot pass flags on
  # where ml_collections is not installed.
  manager = worker_manager.get_worker_manager()
  manager._termination_notice_secs = termination_notice_s()
  return lp.stop_event()


def termination_notice_s() -> int:
  """A node that has not stopped by then is killed; a checkpoint must not take longer."""
  return _TERMINATION_NOTICE_S + processes.saving_seconds()
