"""The actor's node: supervises the worker process that acts, and restarts it when it dies.

Launchpad restarts nothing: the first node that fails ends the program. The node itself therefore
does little that can fail; the environments, which can, are in the worker.
"""

from __future__ import annotations

from collections.abc import Collection
import contextlib
import json
import os
import subprocess

import psutil

from seed_acme import core
from seed_acme import types
from seed_acme.acting import activity as activity_lib
from seed_acme.envs.interpreters import interpreter
from seed_acme.libraries import parent_process
from seed_acme.programs.building import sections as sections_lib
from seed_acme.programs.nodes import actor_worker
from seed_acme.programs.nodes import node as node_lib
from seed_acme.programs.nodes import stall_watch
from seed_acme.programs.system import processes
from seed_acme.transport import wire

_POLL_S = 0.1
_STOP_S = activity_lib.CLOSE_S  # a worker that has not stopped by then is killed
_KILLED_S = 5.0  # for the end of killed programs; without an init process they stay zombies
# Failures count as "in a row" unless the worker acted for this long in between.
_HEALTHY_S = 60.0


class WorkerFailed(Exception):
  """A worker failed too often to be restarted."""


class Supervisor:
  """A supervisor that keeps one worker running until the node is stopped.

  It also ends when the worker hears that the run is over. Raises `WorkerFailed` after
  `actor.max_failures` failures in a row, or `types.NotFinite` if the last of them was a number that
  is not finite; `types.UserError` for wrong input, which no restart would fix; and
  `core.ServerLost` if the server does not come back.
  """

  def __init__(self, node: node_lib.Node[sections_lib.ActorSections]):
    self._node = node
    self._sections = node.life.filming(node.sections)
    self._watch = stall_watch.Watch(self._sections, node.tell, ends_workers=True)
    self._num_failures = 0  # since the start, in a row or not
    parent_process.adopt_orphans()  # so that programs of a worker that died can be found

  def run(self) -> bool:
    """Supervises the worker; returns whether the run is over, rather than just this node."""
    interpreter.require(self._sections.actor.python)
    stop = self._node.life.stop
    num_failures, start = 0, self._node.links.start
    while not stop.is_set():
      end, message = self._run_worker(start)
      if end is actor_worker.End.OVER:
        return True
      if stop.is_set():
        break
      if end is actor_worker.End.WRONG_INPUT:
        raise types.UserError(message)
      if end is actor_worker.End.SERVER_LOST:
        raise core.ServerLost(message)
      start = start.following()
      if end is actor_worker.End.SERVER_RESTARTED:
        print(f'{self._node.name}: {message}: the environments begin anew', flush=True)
        continue
      num_failures = 1 if self._watch.acted_s > _HEALTHY_S else num_failures + 1
      self._count_failure(end, message, num_failures)
    return False

  def _count_failure(self, end: actor_worker.End, message: str, number: int) -> None:
    """Reports a failure; raises `WorkerFailed` or `types.NotFinite` after too many in a row."""
    self._num_failures += 1
    limit = self._sections.actor.max_failures
    count = f'failure {number} of {limit} in a row, {self._num_failures:,} in all'
    name = self._node.name
    if end is actor_worker.End.HUNG:
      self._node.tell(
        f'{name}: {message}: its worker was ended, {count}; the log says where it stood'
      )
    else:
      # A worker that fails every few minutes never ends the run, but loses episodes for days. Not
      # every time, because the notices would drown all others. The last failure becomes an error.
      is_told = number < limit and _is_power_of_ten(self._num_failures)
      say = self._node.tell if is_told else _log
      say(f'{name}: worker failed ({message}), {count}')
    if number < limit:
      return
    text = (
      f'the worker failed {number} times in a row (actor.max_failures), '
      f'the last time with {message}'
    )
    if end is actor_worker.End.NOT_FINITE:
      raise types.NotFinite(f'{name}: {text}')  # for wrong input no one else adds the node's name
    raise WorkerFailed(text)

  def _run_worker(self, start: wire.Start) -> tuple[actor_worker.End, str]:
    """Runs a worker to its end; returns how it ended and why. Programs that its environments have
    started end with it."""
    others = _descendants()
    read_fd, write_fd = os.pipe()
    activity_fd = activity_lib.shared_memory()
    try:
      self._watch.follow(activity_lib.at(activity_fd))
      worker = self._start_worker(start, write_fd, activity_fd)
      os.close(write_fd)
      hangs, said = '', b''
      while worker.poll() is None and not hangs and not self._node.life.stop.wait(_POLL_S):
        hangs = self._watch.look()
      if hangs:
        said = _written(read_fd)  # its report of being terminated would say nothing new
        worker.send_signal(actor_worker.SHOW_STACK)
      if worker.poll() is None:
        self._stop_worker(worker, names_call=not hangs)
      if not hangs:
        said = _written(read_fd)
    finally:
      os.close(activity_fd)
      os.close(read_fd)
    _kill(_descendants() - others)
    if said:
      if hangs:  # it hung after it had reported its end
        self._node.tell(f'{self._node.name}: {hangs}: its worker was killed')
      report = json.loads(said)
      return actor_worker.End(report['end']), report['message']
    if hangs:
      return actor_worker.End.HUNG, hangs
    return actor_worker.End.FAILED, processes.describe_exit(worker.returncode)

  def _stop_worker(self, worker: subprocess.Popen, names_call: bool) -> None:
    """Stops the worker. One that does not stop is killed.

    names_call: whether to report which call of an environment did not return.
    """
    worker.terminate()
    try:
      worker.wait(_STOP_S)
    except subprocess.TimeoutExpired:
      if names_call and (call := self._watch.under_way()):
        self._node.tell(
          f'{self._node.name}: environment {self._sections.environment.id} hangs: {call} has not '
          f'returned {_STOP_S:g} s after the worker was told to stop, and it was killed'
        )
      worker.kill()
      worker.wait()

  def _start_worker(self, start: wire.Start, report_fd: int, activity_fd: int) -> subprocess.Popen:
    variables = {
      **os.environ,
      **processes.environment('actor', os.getpid()),
      # Environments do many small operations, for which BLAS threads would only cost memory.
      'OMP_NUM_THREADS': '1',
      'OPENBLAS_NUM_THREADS': '1',
      'MKL_NUM_THREADS': '1',
    }
    python = actor_worker.python_of(self._sections)
    variables.update(interpreter.variables(python))
    worker = subprocess.Popen(
      interpreter.command(python, actor_worker.__name__),
      stdin=subprocess.PIPE,
      text=True,
      env=variables,
      pass_fds=(report_fd, activity_fd),
    )
    life, timeout_s = self._node.life, self._sections.actor.connect_timeout_s
    spec = actor_worker.WorkerSpec(
      sections=self._sections,
      run_dir=self._node.folder,
      start=start,
      address=life.learner_of(self._node),
      token=self._node.links.token,
      first_wait_s=life.patience(timeout_s).first_s,
      report_fd=report_fd,
      activity_fd=activity_fd,
    )
    assert worker.stdin is not None
    try:
      worker.stdin.write(spec.dumps())
      worker.stdin.close()
    except BrokenPipeError:  # it has died already; its exit code says how
      pass
    return worker


def _log(text: str) -> None:
  print(text, flush=True)


def _is_power_of_ten(number: int) -> bool:
  return str(number).rstrip('0') == '1'


def _descendants() -> set[psutil.Process]:
  return set(psutil.Process().children(recursive=True))


def _kill(programs: Collection[psutil.Process]) -> None:
  for program in programs:
    with contextlib.suppress(psutil.NoSuchProcess):
      program.kill()
  psutil.wait_procs(list(programs), timeout=_KILLED_S)


def _written(pipe_fd: int) -> bytes:
  """Returns what the pipe holds now, without waiting for its end.

  The end may never come, because programs started by the environments have inherited the other side
  and may outlive a worker that was killed.
  """
  os.set_blocking(pipe_fd, False)
  try:
    return os.read(pipe_fd, 1 << 16)
  except BlockingIOError:
    return b''
