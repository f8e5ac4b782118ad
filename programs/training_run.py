"""The front end of a run: prepares its folder, starts the launcher, watches, sums up.

A light process of its own (no TensorFlow, no Launchpad), because Launchpad's launcher may
kill its whole tree, itself included, and somebody has to tell the user what happened.
"""
from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from seed_acme import checkpoint
from seed_acme import config as config_lib
from seed_acme import plot
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import types
from seed_acme.envs import registry as environments
from seed_acme.loggers import terminal
from seed_acme.programs import accounting
from seed_acme.programs import processes
from seed_acme.programs import runner as runner_lib

_POLL_S = 0.1
_SAMPLE_S = 1.0
_STOP_S = 25.0  # then whatever is left is killed
FINISHED, STOPPED, FAILED = 'finished', 'stopped', 'failed'


class Outcome(NamedTuple):
  """How a run ended.

  exit_code: 0, 1 (failure), 2 (wrong input), 130 (Ctrl-C) or 143 (SIGTERM).
  summary: what stands in summary.json. failure: as failure.json, or None.
  """
  exit_code: int
  summary: dict[str, Any]
  failure: dict[str, Any] | None


def prepare(config: config_lib.ExperimentConfig,
            path: str | None) -> run_directory.RunDirectory:
  """Makes the run folder, or checks that `path` can be resumed with this configuration.

  Raises `types.UserError` before anything is written.
  """
  config_lib.validate(config)
  environments.check(config.environment)
  if config.initial_checkpoint:
    checkpoint.load_from(config.initial_checkpoint)
  if path is None:
    return run_directory.new(config.name)
  existing = run_directory.RunDirectory(pathlib.Path(path).absolute())
  if existing.holds_run():
    saved_config.compare_for_resume(saved_config.load(existing.config), config)
    newest = checkpoint.newest(existing.checkpoints)
    if newest is not None:
      checkpoint.load(newest)
  return run_directory.create(path)


def run(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory, *,
        launch: str, max_restarts: int = 0,
        show: Callable[[str], None] = print,
        progress: terminal.Progress | None = None) -> Outcome:
  """Trains to the end, a signal or a failure that no restart is left for."""
  with run_directory.lock(run_dir):
    saved_config.save(config, run_dir.config)
    run_directory.point_latest(run_dir)
    attempt = _Attempt(config, run_dir, launch, progress)
    with _signals_to(attempt.request_stop):
      for restart in range(max_restarts + 1):
        code = attempt.run()
        failure = processes.read_failure(run_dir)
        may_restart = (code == processes.FAILURE_EXIT and not attempt.stop_signal
                       and restart < max_restarts)
        if not may_restart:
          break
        reason = failure['message'] if failure else 'unknown'
        show(f'Restart {restart + 1} of {max_restarts} from the newest checkpoint: {reason}')
    return _conclude(config, run_dir, attempt, code, failure)


class _Attempt:
  """Starts the launcher's process and watches it; may be run again after a failure."""

  def __init__(self, config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory,
               launch: str, progress: terminal.Progress | None):
    self._config = config
    self._run_dir = run_dir
    self._launch = launch
    self._progress = progress
    self._launcher: subprocess.Popen | None = None
    self._started_s = time.time()
    self.stop_signal: int | None = None
    self._stop_asked_s = 0.0
    self.cpu_s: dict[str, float] = {}
    self.status: dict[str, Any] = {}

  def request_stop(self, signal_number: int) -> None:
    """From the signal handler: the first asks, a second one kills."""
    if self.stop_signal is not None:
      self._kill()
    self.stop_signal = self.stop_signal or signal_number
    self._stop_asked_s = time.monotonic()
    if self._launcher is not None and self._launcher.poll() is None:
      self._launcher.terminate()

  def run(self) -> int:
    """0, 1 or 2: the launcher's own exit code, or 1 if it was killed."""
    processes.clear_failure(self._run_dir)
    self._started_s = time.time()
    launcher = self._start()
    account = accounting.CpuAccount(launcher.pid)
    next_sample_s = 0.0
    try:
      while launcher.poll() is None:
        if time.monotonic() >= next_sample_s:
          next_sample_s = time.monotonic() + _SAMPLE_S
          account.sample()
        self._show_progress()
        if self.stop_signal and time.monotonic() - self._stop_asked_s > _STOP_S:
          self._kill()
        time.sleep(_POLL_S)
    finally:
      self._kill()  # what the launcher may have left behind
      launcher.wait()
    self._show_progress()
    for kind, seconds in account.seconds().items():
      self.cpu_s[kind] = self.cpu_s.get(kind, 0.0) + seconds
    if launcher.returncode < 0:
      name = signal.Signals(-launcher.returncode).name
      processes.report_failure(self._run_dir, 'launcher', f'killed by {name}', runner_lib.LOG)
      return processes.FAILURE_EXIT
    return launcher.returncode

  def _start(self) -> subprocess.Popen:
    variables = {**os.environ, **processes.environment('launcher', os.getpid())}
    with open(self._run_dir.logs / runner_lib.LOG, 'a') as log:
      self._launcher = subprocess.Popen(
          [sys.executable, '-m', 'seed_acme.programs.runner', str(self._run_dir.path),
           self._launch], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=variables,
          start_new_session=True)  # Ctrl-C reaches this process alone
    if self.stop_signal:
      self._launcher.terminate()
    return self._launcher

  def _kill(self) -> None:
    """Kills the launcher's whole process group."""
    if self._launcher is not None:
      with contextlib.suppress(ProcessLookupError):
        os.killpg(self._launcher.pid, signal.SIGKILL)

  def _show_progress(self) -> None:
    status = read_status(self._run_dir)
    if status and status['time_s'] >= self._started_s:
      self.status = status
      if self._progress is not None:
        self._progress.update(status)


def read_status(run_dir: run_directory.RunDirectory) -> dict[str, Any]:
  """The last status of the training loop; empty before the first."""
  return run_directory.read_json(run_dir.status) if run_dir.status.exists() else {}


@contextlib.contextmanager
def _signals_to(handler: Callable[[int], None]) -> Iterator[None]:
  """Ctrl-C and SIGTERM call `handler` instead; only the main thread can have that."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  numbers = (signal.SIGINT, signal.SIGTERM)
  old = [signal.signal(number, lambda n, _: handler(n)) for number in numbers]
  try:
    yield
  finally:
    for number, previous in zip(numbers, old):
      signal.signal(number, previous)


def _conclude(config: config_lib.ExperimentConfig, run_dir: run_directory.RunDirectory,
              attempt: _Attempt, code: int, failure: dict[str, Any] | None) -> Outcome:
  if attempt.stop_signal:
    status, exit_code, failure = STOPPED, 128 + attempt.stop_signal, None
  elif code == 0:
    status, exit_code = FINISHED, 0
  else:
    status, exit_code = FAILED, code
  summary = summarise(config, read_status(run_dir), attempt.cpu_s, status, _earlier(run_dir))
  if summary['agent_steps'] or exit_code == 0:
    run_directory.write_json(run_dir.summary, summary)
  if attempt.stop_signal is None and exit_code == 0:
    plot.plot([str(run_dir.path)], str(run_dir.plot))
  return Outcome(exit_code, summary, failure)


def _earlier(run_dir: run_directory.RunDirectory) -> dict[str, float]:
  """CPU-seconds before this resumption."""
  if not run_dir.summary.exists():
    return {}
  return run_directory.read_json(run_dir.summary).get('cpu_s', {})


def summarise(config: config_lib.ExperimentConfig, status: dict[str, Any],
              cpu_s: dict[str, float], how: str, earlier_cpu_s: dict[str, float]) -> dict[str, Any]:
  """The record of summary.json.

  cpu_s: CPU-seconds by kind of node, over all resumptions, starting up included.
  """
  kinds = {*cpu_s, *earlier_cpu_s}
  cpu = {kind: cpu_s.get(kind, 0.0) + earlier_cpu_s.get(kind, 0.0) for kind in sorted(kinds)}
  steps, wall_s = status.get('agent_steps', 0), status.get('wall_s', 0.0)
  total_cpu_s = sum(cpu.values())
  return {
      'status': how,
      'config': config.name,
      'seed': config.seed,
      **{name: status.get(name, 0) for name in (
          'agent_steps', 'frames', 'updates', 'episodes', 'trained_steps', 'wall_s')},
      'cpu_s': cpu,
      'steps_per_s': steps / wall_s if wall_s else 0.0,
      'steps_per_cpu_s': steps / total_cpu_s if total_cpu_s else 0.0,
      **{name: status.get(name) for name in (
          'episode_return_last_100', 'evaluation_return', 'policy_lag_mean', 'policy_lag_max')},
  }


def failure_text(failure: dict[str, Any] | None, run_dir: run_directory.RunDirectory) -> str:
  """At most four lines: what, where, and where to look."""
  if failure is None:
    return f'error: the run ended without a reason; look into {run_dir.logs}'
  if failure['is_user_error']:
    return f'error: {failure["message"]}'
  message = failure['message'].strip().splitlines() or ['']
  return (f'error in {failure["node"]}: {message[0][:300]}\n'
          f'log: {failure["log"]}')


class TrainingFailed(Exception):
  """A run ended with an error; the text is what the command line shows."""


def train(config: config_lib.ExperimentConfig, run_dir: str | None = None,
          launch: str = runner_lib.LOCAL_MP, max_restarts: int = 0) -> dict[str, Any]:
  """Trains from Python; returns the summary. Raises `UserError` or `TrainingFailed`."""
  if launch not in runner_lib.LAUNCH_TYPES:
    raise types.UserError(f'launch ({launch!r}) must be one of '
                          f'{", ".join(runner_lib.LAUNCH_TYPES)}')
  run_folder = prepare(config, run_dir)
  outcome = run(config, run_folder, launch=launch, max_restarts=max_restarts)
  text = failure_text(outcome.failure, run_folder)
  if outcome.exit_code == processes.USER_ERROR_EXIT:
    raise types.UserError(text.removeprefix('error: '))
  if outcome.exit_code == processes.FAILURE_EXIT:
    raise TrainingFailed(text)
  return {**outcome.summary, 'run_dir': str(run_folder.path)}
