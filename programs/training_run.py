"""The front end of a run: prepares its folder, starts the launcher, watches, sums up.

A light process of its own (no TensorFlow, no Launchpad), because Launchpad's launcher may
kill its whole tree, itself included, and somebody has to tell the user what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
from typing import Any, NamedTuple

from seed_acme import checkpoint
from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import mirror
from seed_acme import run_directory
from seed_acme import saved_config
from seed_acme import types
from seed_acme.envs import registry as environments
from seed_acme.loggers import terminal
from seed_acme.programs import accounting
from seed_acme.programs import bucket_run
from seed_acme.programs import processes
from seed_acme.programs import replay_size
from seed_acme.programs import runner as runner_lib
from seed_acme.programs import summary as summary_lib

_POLL_S = 0.1
_SAMPLE_S = 1.0
_STOP_S = 25.0  # after a stop or a failure; then whatever is left is killed
_SAME_SIGNAL_S = 0.5  # a terminal and a wrapper may both send what the user sent once
FINISHED, STOPPED, FAILED = summary_lib.FINISHED, summary_lib.STOPPED, summary_lib.FAILED
read_status = summary_lib.read_status


class Outcome(NamedTuple):
  """How a run ended.

  exit_code: 0, 1 (failure), 2 (wrong input), 130 (Ctrl-C), 143 (SIGTERM) or 141 (nobody reads
  the output). summary: what stands in summary.json. failure: as failure.json, or None; a run
  that was stopped may have one, too.
  """

  exit_code: int
  summary: dict[str, Any]
  failure: dict[str, Any] | None


class RunFinished(types.UserError):
  """A run that is to go on has used up its budget. last: its last checkpoint."""

  def __init__(self, message: str, last: checkpoint.Checkpoint):
    super().__init__(message)
    self.last = last


def prepare(
  config: config_lib.ExperimentConfig, path: str | None, bucket: str = ''
) -> run_directory.RunDirectory:
  """Makes the run folder, or checks that `path` can be resumed with this configuration.

  bucket: where the run is if `path` is a copy. Raises `types.UserError` before anything is written,
  `RunFinished` where nothing is left to do.
  """
  config_validation.validate(config)
  environments.check(config.environment)
  _check_ports(config)
  if path is not None:
    check_resume(config, run_directory.RunDirectory(pathlib.Path(path).absolute()))
    return dataclasses.replace(run_directory.create(path), bucket=bucket)
  if config.initial_checkpoint:
    checkpoint.load_from(config.initial_checkpoint)
  return run_directory.new(config.name)


def check_resume(config: config_lib.ExperimentConfig, run: run_directory.RunDirectory) -> None:
  """Raises `types.UserError` where what is there, if anything, cannot go on with `config`."""
  newest = None
  if run.holds_run():
    saved_config.compare_for_resume(saved_config.load(run.config), config)
    newest = checkpoint.newest(run.checkpoints)
  if newest is not None:
    _check_unfinished(config, checkpoint.load(newest))
  elif config.initial_checkpoint:
    checkpoint.load_from(config.initial_checkpoint)


def _check_unfinished(config: config_lib.ExperimentConfig, newest: checkpoint.Checkpoint) -> None:
  steps, wall_s = newest.meta['counts']['agent_steps'], newest.meta['counts']['wall_s']
  if steps >= config.total_steps:
    raise RunFinished(
      f'this run has made its {config.total_steps:,} steps ({steps:,}): '
      'raise --config.total_steps to extend it',
      newest,
    )
  if config.max_wall_s and wall_s >= config.max_wall_s:
    raise RunFinished(
      f'this run has had its {config.max_wall_s:g} seconds ({wall_s:.0f}): '
      'raise --config.max_wall_s to extend it',
      newest,
    )


def _check_ports(config: config_lib.ExperimentConfig) -> None:
  """The nodes check again; here a port in use is found before anything is written."""
  for name, host, port in (
    ('transport', config.transport.host, config.transport.port),
    ('replay', '', config.replay.port),
  ):
    with socket.socket() as probe:
      probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      try:
        probe.bind((host, port))
      except (OSError, OverflowError) as error:
        mend = f'port, or {name}.port 0 for any free one' if port else 'host'
        reason = getattr(error, 'strerror', None) or error
        raise types.UserError(
          f'cannot listen on {host or "localhost"}:{port} ({reason}): choose another {name}.{mend}'
        ) from None


def run(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  *,
  launch: str,
  max_restarts: int = 0,
  show: Callable[[str], None] = print,
  progress: terminal.Progress | None = None,
) -> Outcome:
  """Trains to the end, a signal or a failure that no restart is left for."""
  with run_directory.lock(run_dir):
    saved_config.save(config, run_dir.config)
    if pathlib.Path(run_directory.ROOT).absolute() in run_dir.path.parents:
      run_directory.point_latest(run_dir)
    num_bytes = replay_size.replay_bytes(config)
    warning = replay_size.memory_warning(config, num_bytes)
    if warning:
      show(f'Warning: {warning}')
    attempt = _Attempt(run_dir, launch, replay_size.saving_seconds(num_bytes), show, progress)
    with signals_to(attempt.request_stop):
      for restart in range(max_restarts + 1):
        code = attempt.run()
        failure = summary_lib.known_failure(run_dir)
        may_restart = (
          code == processes.FAILURE_EXIT and not attempt.stop_signal and restart < max_restarts
        )
        if not may_restart:
          break
        reason = failure['message'] if failure else 'unknown'
        show(f'Restart {restart + 1} of {max_restarts} from the newest checkpoint: {reason}')
    return _conclude(config, run_dir, attempt, code, failure)


class _Attempt:
  """Starts the launcher's process and watches it; may be run again after a failure."""

  def __init__(
    self,
    run_dir: run_directory.RunDirectory,
    launch: str,
    saving_s: float,
    show: Callable[[str], None],
    progress: terminal.Progress | None,
  ):
    """saving_s: how long saving the replay memory may take at the end."""
    self._run_dir = run_dir
    self._launch = launch
    self._saving_s = saving_s
    self._stop_s = _STOP_S + saving_s
    self._show = show
    self._progress = progress
    self._launcher: subprocess.Popen | None = None
    self._started_s = time.time()
    self._ending_since_s: float | None = None  # since a stop or a failure
    self._num_notices = 0
    self._status: dict[str, Any] = {}  # of this attempt
    self.stop_signal: int | None = None
    self.cpu_s: dict[str, float] = {}

  def request_stop(self, signal_number: int) -> None:
    """From the signal handler: the first asks, a second one kills."""
    now = time.monotonic()
    if self.stop_signal is None:
      self.stop_signal = signal_number
      self._ending_since_s = now
      if self._launcher is not None and self._launcher.poll() is None:
        self._launcher.terminate()
    elif self._ending_since_s is not None and now - self._ending_since_s > _SAME_SIGNAL_S:
      self._kill()

  def run(self) -> int:
    """0, 1 or 2: the launcher's own exit code, or 1 if it was killed."""
    processes.clear_failure(self._run_dir)
    _set_earlier_logs_aside(self._run_dir)
    self._run_dir.notices.unlink(missing_ok=True)
    self._num_notices = 0
    self._started_s, self._status, self._ending_since_s = time.time(), {}, None
    # Launchpad and Reverb leave temporary folders behind.
    with tempfile.TemporaryDirectory(prefix='seed_acme_', ignore_cleanup_errors=True) as folder:
      launcher = self._start(folder)
      account = accounting.CpuAccount(launcher.pid)
      try:
        self._watch(launcher, account)
      finally:
        self._kill()  # what the launcher may have left behind
        launcher.wait()
    self._show_notices()
    self._show_progress()
    for kind, seconds in account.seconds().items():
      self.cpu_s[kind] = self.cpu_s.get(kind, 0.0) + seconds
    return self._exit_code(launcher.returncode)

  def _watch(self, launcher: subprocess.Popen, account: accounting.CpuAccount) -> None:
    next_sample_s, has_told = 0.0, False
    while launcher.poll() is None:
      if time.monotonic() >= next_sample_s:
        next_sample_s = time.monotonic() + _SAMPLE_S
        account.sample()
      self._show_notices()
      self._show_progress()
      if self.stop_signal and not has_told:
        has_told = True
        self._show('Stopping with a checkpoint; a second signal kills at once.')
      if self._is_overdue():
        processes.report_failure(
          self._run_dir,
          processes.LAUNCHER,
          f'the nodes did not end within {self._stop_s:g} s and were killed',
          runner_lib.LOG,
        )
        self._kill()
      time.sleep(_POLL_S)

  def _is_overdue(self) -> bool:
    """Whether a stop or a failure is so long ago that the launcher must be stuck."""
    now = time.monotonic()
    if self._ending_since_s is None and self._run_dir.failure.exists():
      self._ending_since_s = now
    return self._ending_since_s is not None and now - self._ending_since_s > self._stop_s

  def _exit_code(self, returned: int) -> int:
    if returned >= 0:
      return returned
    # Launchpad kills its whole tree, itself included, when a node takes too long to end.
    if self._status.get('status') == FINISHED and not self._run_dir.failure.exists():
      return 0
    if not self.stop_signal:
      processes.report_failure(
        self._run_dir,
        processes.LAUNCHER,
        f'the process was lost: {processes.describe_exit(returned)}',
        runner_lib.LOG,
      )
    return processes.FAILURE_EXIT

  def _start(self, temporary: str) -> subprocess.Popen:
    self._launcher = runner_lib.start(self._run_dir, self._launch, temporary, self._saving_s)
    if self.stop_signal:
      self._launcher.terminate()
    return self._launcher

  def _kill(self) -> None:
    if self._launcher is not None:
      runner_lib.kill(self._launcher)

  def _show_notices(self) -> None:
    """What a node wants the user to know without ending the run."""
    if self._run_dir.notices.exists():
      lines = self._run_dir.notices.read_text(encoding='utf-8').splitlines()
      for line in lines[self._num_notices :]:
        self._show(f'Notice: {line}')
      self._num_notices = len(lines)

  def _show_progress(self) -> None:
    status = read_status(self._run_dir)
    if status and status['time_s'] >= self._started_s:
      self._status = status
      if self._progress is not None:
        try:
          self._progress.update(status)
        except BrokenPipeError:  # nobody reads any more, as in `seed-acme train | head`
          self._progress = None
          self.request_stop(signal.SIGPIPE)


def _set_earlier_logs_aside(run_dir: run_directory.RunDirectory) -> None:
  """Into `logs/attempt_<n>`: the nodes overwrite the logs of an attempt that has failed."""
  earlier = [path for path in run_dir.logs.iterdir() if not path.name.startswith(mirror.ATTEMPT)]
  if earlier:
    number = 1
    while (aside := run_dir.logs / f'{mirror.ATTEMPT}{number}').exists():
      number += 1
    aside.mkdir()
    for path in earlier:
      path.rename(aside / path.name)


@contextlib.contextmanager
def signals_to(handler: Callable[[int], None]) -> Iterator[None]:
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


def _conclude(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  attempt: _Attempt,
  code: int,
  failure: dict[str, Any] | None,
) -> Outcome:
  if attempt.stop_signal:
    status, exit_code = STOPPED, 128 + attempt.stop_signal
  elif code == 0:
    status, exit_code = FINISHED, 0
  else:
    status, exit_code = FAILED, code
  summary = summary_lib.summarise(config, run_dir, attempt.cpu_s, status)
  if exit_code != processes.USER_ERROR_EXIT:
    summary_lib.write(run_dir, summary)
  return Outcome(exit_code, summary, failure)


class TrainingFailed(Exception):
  """A run ended with an error; the text is what the command line shows."""


def train(
  config: config_lib.ExperimentConfig,
  run_dir: str | None = None,
  launch: str = runner_lib.LOCAL_MP,
  max_restarts: int = 0,
) -> dict[str, Any]:
  """Trains from Python; returns the summary. Raises `UserError` or `TrainingFailed`."""
  if launch not in runner_lib.LAUNCH_TYPES:
    raise types.UserError(
      f'launch ({launch!r}) must be one of {", ".join(runner_lib.LAUNCH_TYPES)}'
    )
  with bucket_run.opened(run_dir or '') as existing:
    path, bucket = (str(existing.path), existing.bucket) if existing else (None, '')
    run_folder = prepare(config, path, bucket)
    outcome = run(config, run_folder, launch=launch, max_restarts=max_restarts)
  text = summary_lib.failure_text(outcome.failure, run_folder)
  if outcome.exit_code == processes.USER_ERROR_EXIT:
    raise types.UserError(text.removeprefix('error: '))
  if outcome.exit_code == processes.FAILURE_EXIT:
    raise TrainingFailed(text)
  return {**outcome.summary, 'run_dir': run_folder.name}
