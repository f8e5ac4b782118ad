"""Where a node of the program runs, and what every node does first, on its main thread."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import json
import os
import sys
import threading

import launchpad as lp
from launchpad.launch import worker_manager

from seed_acme import types
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals

_TERMINATION_NOTICE_S = 45  # a second or two of work, on a machine whose load is 20 a core
_IN_THREADS = (lp.LaunchType.LOCAL_MULTI_THREADING, lp.LaunchType.TEST_MULTI_THREADING)
# Set where this program is one node of a run on several hosts, to what `Host.admitted` holds.
_HOSTS_VARIABLE = 'SEED_ACME_HOSTS'


@dataclasses.dataclass(frozen=True)
class Host:
  """Where a node runs, who ends it, and how it hears of the end.

  stop: the program's stop.
  is_container: Launchpad has started this node on a host of its own, without a launcher (Vertex
  AI). others_are_elsewhere: the other nodes are on hosts of their own, where no launcher ends them.
  admitted: hosts that may connect to ports without a password, as `fence.Fence` takes them.
  """

  stop: threading.Event
  is_container: bool
  others_are_elsewhere: bool
  admitted: tuple[str, ...] | None

  def end_program(self) -> None:
    """Called by the learner of a finished run. In a container it tells the others itself and ends
    with 0, by which Vertex AI calls the job a success; Launchpad's stop would cancel it."""
    if not self.is_container:
      lp.stop()

  @contextlib.contextmanager
  def ended_at_once(self, is_one_of_several: bool) -> Iterator[None]:
    """Around one of several learner hosts. After a failure, a port that stayed open would be taken
    for that of the host's next start. In a container the run is copied to its bucket before."""
    try:
      yield
    except SystemExit as exit_:
      if not is_one_of_several or self.is_container:
        raise
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(int(exit_.code or 0))


def enter() -> Host:
  """Ties a node's process to its launcher, if it has one."""
  # For users who launch the program themselves; `local_resources` sets more.
  os.environ.setdefault('TF2_BEHAVIOR', '1')
  launch_type = lp.context.get_context().launch_type
  if launch_type in _IN_THREADS:
    raise types.UserError(
      f'launch_type={launch_type.value!r}: nodes are processes, because each has its own signals '
      'and TensorFlow; use local_mp, or seed_acme.train(…, launch="single_process")'
    )
  is_container = launch_type is lp.LaunchType.VERTEX_AI
  processes.end_with_parent()
  if not is_container:
    signals.leave_hangup_to_parent()
  # The flag of this name does not reach children: Launchpad 0.5.1 cannot pass flags on
  # where ml_collections is not installed.
  manager = worker_manager.get_worker_manager()
  manager._termination_notice_secs = termination_notice_s()
  return Host(
    lp.stop_event(),
    is_container,
    others_are_elsewhere=is_container or _HOSTS_VARIABLE in os.environ,
    admitted=None if is_container else _admitted(),
  )


def termination_notice_s() -> int:
  """A node that has not stopped by then is killed; a checkpoint must not take longer."""
  return _TERMINATION_NOTICE_S + processes.saving_seconds()


def mark_several_hosts(admitted: tuple[str, ...] | None) -> None:
  """Called by the launcher of one node, before it starts that; the others are on other hosts.
  admitted: see `Host`."""
  os.environ[_HOSTS_VARIABLE] = json.dumps(admitted)


def _admitted() -> tuple[str, ...] | None:
  """Nobody else where all nodes are on this machine."""
  hosts = json.loads(os.environ.get(_HOSTS_VARIABLE, '[]'))
  return None if hosts is None else tuple(hosts)
