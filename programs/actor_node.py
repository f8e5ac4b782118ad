"""The actor's node: supervises the worker process that acts, and starts it anew when it dies.

Launchpad restarts nothing: the first node that fails ends the program. So the node is thin
and does not fail; what may fail, the environments, is in the worker.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import time

from seed_acme import config as config_lib
from seed_acme import core
from seed_acme import run_directory
from seed_acme import types
from seed_acme.programs import actor_worker
from seed_acme.programs import processes

_POLL_S = 0.1
_STOP_S = 5.0  # a worker that does not stop by then is killed
# Failures are "in a row" unless the worker lived this long in between.
_HEALTHY_S = 60.0


def act_in_this_thread(
  config: config_lib.ExperimentConfig,
  token: str,
  index: int,
  attempt: int,
  address: str,
  stop: threading.Event,
) -> None:
  """What a node does instead where all nodes are threads: acts, and fails with the run."""
  actor = actor_worker.make_remote_actor(config, index, attempt, address, token)

  def interrupt_on_stop() -> None:
    stop.wait()
    actor.interrupt()

  threading.Thread(target=interrupt_on_stop, daemon=True).start()
  actor.run(stop.is_set)
  actor.close()


class WorkerFailed(Exception):
  """A worker failed too often to be started again."""


class Supervisor:
  """Keeps one worker running until `stop` is set.

  Ends, too, when the worker hears that the run is over. Raises `WorkerFailed` after
  `actor.max_failures` failures in a row, `types.UserError` for wrong input, which no restart
  would mend, and `core.ServerLost` where the server stays away.
  """

  def __init__(
    self,
    config: config_lib.ExperimentConfig,
    run_dir: run_directory.RunDirectory,
    token: str,
    index: int,
    first_attempt: int,
    address: str,
  ):
    self._first_attempt = first_attempt
    self._config = config
    self._run_dir = run_dir
    self._token = token
    self._index = index
    self._address = address

  def run(self, stop: threading.Event) -> bool:
    """Whether the run is over, or only this node was stopped."""
    num_failures, attempt = 0, self._first_attempt
    while not stop.is_set():
      started = time.monotonic()
      end, message = self._run_worker(attempt, stop)
      if end is actor_worker.End.OVER:
        return True
      if stop.is_set():
        break
      if end is actor_worker.End.WRONG_INPUT:
        raise types.UserError(message)
      if end is actor_worker.End.SERVER_LOST:
        raise core.ServerLost(message)
      attempt += 1
      if end is actor_worker.End.SERVER_RESTARTED:
        print(f'actor/{self._index}: {message}: the environments begin anew', flush=True)
        continue
      num_failures = 1 if time.monotonic() - started > _HEALTHY_S else num_failures + 1
      print(
        f'actor/{self._index}: worker failed ({message}), '
        f'failure {num_failures} of {self._config.actor.max_failures} in a row',
        flush=True,
      )
      if num_failures >= self._config.actor.max_failures:
        raise WorkerFailed(
          f'the worker failed {num_failures} times in a row '
          f'(actor.max_failures), the last time with {message}'
        )
    return False

  def _run_worker(self, attempt: int, stop: threading.Event) -> tuple[actor_worker.End, str]:
    """Runs a worker to its end; returns how it ended and why."""
    read_fd, write_fd = os.pipe()
    try:
      worker = self._start_worker(attempt, write_fd)
      os.close(write_fd)
      while worker.poll() is None and not stop.wait(_POLL_S):
        pass
      if worker.poll() is None:
        _stop_worker(worker)
      said = _written(read_fd)
    finally:
      os.close(read_fd)
    if said:
      report = json.loads(said)
      return actor_worker.End(report['end']), report['message']
    return actor_worker.End.FAILED, processes.describe_exit(worker.returncode)

  def _start_worker(self, attempt: int, report_fd: int) -> subprocess.Popen:
    variables = {
      **os.environ,
      **processes.environment('actor', os.getpid()),
      # Environments are many small operations: threads of BLAS would only cost memory.
      'OMP_NUM_THREADS': '1',
      'OPENBLAS_NUM_THREADS': '1',
      'MKL_NUM_THREADS': '1',
    }
    worker = subprocess.Popen(
      [sys.executable, '-m', 'seed_acme.programs.actor_worker'],
      stdin=subprocess.PIPE,
      env=variables,
      pass_fds=(report_fd,),
    )
    spec = actor_worker.WorkerSpec(
      config=self._config,
      run_dir=self._run_dir,
      index=self._index,
      attempt=attempt,
      address=self._address,
      token=self._token,
      report_fd=report_fd,
    )
    assert worker.stdin is not None
    try:
      pickle.dump(spec, worker.stdin)
      worker.stdin.close()
    except BrokenPipeError:  # it died already; its exit code says how
      pass
    return worker


def _written(pipe_fd: int) -> bytes:
  """What stands in the pipe now. Its end may never come: processes that the environments
  started have inherited the other side, and may outlive a worker that was killed."""
  os.set_blocking(pipe_fd, False)
  try:
    return os.read(pipe_fd, 1 << 16)
  except BlockingIOError:
    return b''


def _stop_worker(worker: subprocess.Popen) -> None:
  worker.terminate()
  try:
    worker.wait(_STOP_S)
  except subprocess.TimeoutExpired:
    worker.kill()
    worker.wait()
