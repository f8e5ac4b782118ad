"""What every Launchpad node of ours does first, on its main thread."""

from __future__ import annotations

import os
import threading

import launchpad as lp
from launchpad.launch import worker_manager

from seed_acme.programs import processes

_TERMINATION_NOTICE_S = 20
_HOSTS_VARIABLE = 'SEED_ACME_HOSTS'  # set where this program is one node of a run on several


def termination_notice_s() -> int:
  """A node that has not stopped by then is killed; a checkpoint must not take longer."""
  return _TERMINATION_NOTICE_S + processes.saving_seconds()


def enter() -> threading.Event:
  """Ties a node's process to its launcher; returns the event of the program's stop."""
  # For users who launch the program themselves; `local_resources` sets more.
  os.environ.setdefault('TF2_BEHAVIOR', '1')
  if not is_thread():
    processes.end_with_parent()
    # The flag of this name does not reach children: Launchpad 0.5.1 cannot pass flags on
    # where ml_collections is not installed.
    manager = worker_manager.get_worker_manager()
    manager._termination_notice_secs = termination_notice_s()
  return lp.stop_event()


def is_elsewhere() -> bool:
  """Whether Launchpad has started this node on a host of its own, without a launcher."""
  return lp.context.get_context().launch_type is lp.LaunchType.VERTEX_AI


def mark_several_hosts() -> None:
  """Called by the launcher of one node, before it starts that; the others are on other hosts."""
  os.environ[_HOSTS_VARIABLE] = '1'


def has_several_hosts() -> bool:
  """Whether the other nodes are on hosts of their own, where no launcher ends them."""
  return is_elsewhere() or _HOSTS_VARIABLE in os.environ


def end_program() -> None:
  """Called by the learner of a finished run. Elsewhere it tells the others itself and ends with
  0, by which Vertex AI calls the job a success; Launchpad's stop would cancel it."""
  if not is_elsewhere():
    lp.stop()


def log(name: str) -> str:
  """The file within the run's logs that the node of this name writes to."""
  return processes.LAUNCHER if is_thread() else name


def is_thread() -> bool:
  """Whether all nodes are threads of the launcher (`local_mt`)."""
  return lp.context.get_context().launch_type in (
    lp.LaunchType.LOCAL_MULTI_THREADING,
    lp.LaunchType.TEST_MULTI_THREADING,
  )
