"""One start of a run's launcher, watched to its end."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import signal
import subprocess
import tempfile
import time
from typing import Any

from seed_acme.programs.front_end import cpu_record
from seed_acme.programs.front_end import launcher_process
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import stall
from seed_acme.programs.front_end import summary as summary_lib
from seed_acme.programs.system import cpu_account
from seed_acme.programs.system import processes
from seed_acme.programs.system import streams
from seed_acme.storage import bucket_copy
from seed_acme.storage import checkpoint
from seed_acme.storage import run_directory
from seed_acme.transport import patience

_POLL_S = 0.1
_SAMPLE_S = 1.0
_RECORD_S = 5.0  # between two records of the CPU-seconds, which a kill of this process can cost
# After a stop or a failure; then every process left is killed. At the end of a run a learner may
# also wait for actors that are away.
_STOP_S = 50.0
_SAME_SIGNAL_S = 0.5  # a terminal and a wrapper may both forward one Ctrl-C


class Attempt:
  """Starts the launcher's process and watches it; can be run again after a failure."""

  def __init__(
    self,
    run_dir: run_directory.RunDirectory,
    launch: Sequence[str],
    saving_s: float,
    supervision: launches.Supervision,
    stall_s: float,
  ):
    """launch: arguments of `launcher_process.start`. saving_s: how long saving the replay memory
    may take at the end. stall_s: limit of `Stall`."""
    self._stall = stall.Stall(stall_s)
    self._run_dir = run_dir
    self._launch = launch
    self._saving_s = saving_s
    self._stop_s = _STOP_S + saving_s
    self._show, self._progress, self._should_stop = (
      supervision.show,
      supervision.progress,
      supervision.should_stop,
    )
    self._launcher: subprocess.Popen | None = None
    self._earlier_s: float | None = None  # `summary.status_time_s` when this attempt began
    self._ending_since_s: float | None = None  # time of a stop or a failure
    self._notices = summary_lib.Notices(run_dir)
    self._status: dict[str, Any] = {}  # the last status written in this attempt
    self._cpu = cpu_record.CpuRecord(run_dir)
    self.has_begun = False  # whether the training loop of any start has written a status
    self.is_stopped = False
    self.stop_signal: int | None = None  # the signal that stopped it, if one did

  @property
  def trains(self) -> bool:
    """Whether the training loop of the last start has written a status."""
    return bool(self._status)

  @property
  def has_finished(self) -> bool:
    """Whether the training loop has written that its budget is used up."""
    return self._status.get('status') == summary_lib.FINISHED

  @property
  def cpu_s(self) -> dict[str, float]:
    """The CPU-seconds of all starts of the run by kind of node, including start-up."""
    return self._cpu.seconds

  def request_stop(self, signal_number: int) -> None:
    """Handles a signal: the first asks the run to stop, a second one kills it."""
    now = time.monotonic()
    if self.stop_signal is None:
      self.stop_signal = signal_number
      self._stop()
    elif self._ending_since_s is not None and now - self._ending_since_s > _SAME_SIGNAL_S:
      self._kill()

  def _stop(self) -> None:
    if not self.is_stopped:
      self.is_stopped = True
      self._ending_since_s = time.monotonic()
      if self._launcher is not None and self._launcher.poll() is None:
        self._launcher.terminate()

  def run(self) -> int:
    """Starts the launcher and returns 0, 1 or 2: its exit code, or 1 if it was killed."""
    processes.clear_failure(self._run_dir)
    skipped = checkpoint.set_damaged_aside(self._run_dir.checkpoints)
    _set_earlier_logs_aside(self._run_dir)
    self._run_dir.notices.unlink(missing_ok=True)
    for text in skipped:
      self._run_dir.add_notice(text)
    self._notices = summary_lib.Notices(self._run_dir)
    self._earlier_s = summary_lib.status_time_s(self._run_dir)
    self._status, self._ending_since_s = {}, None
    self._cpu.begin()
    self._run_dir.set_phase('starting')
    self._show_progress()
    # Launchpad and Reverb leave temporary folders behind.
    with tempfile.TemporaryDirectory(prefix='seed_acme_', ignore_cleanup_errors=True) as folder:
      launcher = self._start(folder)
      account = cpu_account.CpuAccount(launcher.pid)
      try:
        self._watch(launcher, account)
      except BaseException:
        self._stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
          launcher.wait(self._stop_s)
        raise
      finally:
        self._kill()  # any process that the launcher left behind
        launcher.wait()
        self._run_dir.set_phase('')
    self._show_notices()
    self._show_progress()
    if self._should_stop() and not self.has_finished:  # the last logged rows count, too
      self.is_stopped = True
    self._cpu.update(account.seconds())
    return self._exit_code(launcher.returncode)

  def _watch(self, launcher: subprocess.Popen, account: cpu_account.CpuAccount) -> None:
    next_sample_s, next_record_s, has_told = 0.0, 0.0, False
    while launcher.poll() is None:
      if time.monotonic() >= next_sample_s:
        next_sample_s = time.monotonic() + _SAMPLE_S
        account.sample()
      if time.monotonic() >= next_record_s:
        next_record_s = time.monotonic() + _RECORD_S
        self._cpu.update(account.seconds())
      self._show_notices()
      self._show_progress()
      if self._should_stop():
        self._stop()
      if self.stop_signal and not has_told:
        has_told = True
        self._tell('Stopping with a checkpoint; a second signal kills at once.')
      if self._is_overdue():
        self._report_overdue()
        self._kill()
      time.sleep(_POLL_S)

  def _report_overdue(self) -> None:
    limit = f'{self._limit_s:g} s'
    if self._ends_well():
      self._tell(f'Notice: the nodes did not end {limit} after the run, and were killed')
      return
    message = f'the nodes did not end within {limit} and were killed'
    processes.report_failure(self._run_dir, processes.LAUNCHER, message, processes.LAUNCHER)

  def _is_overdue(self) -> bool:
    """Whether a stop, a failure or the end is so long ago that the launcher must be stuck."""
    now = time.monotonic()
    if self._ending_since_s is None and (self.has_finished or self._run_dir.failure.exists()):
      self._ending_since_s = now
    return self._ending_since_s is not None and now - self._ending_since_s > self._limit_s

  @property
  def _limit_s(self) -> float:
    return self._stop_s + (patience.ABSENCE_S if self._ends_well() else 0.0)

  def _ends_well(self) -> bool:
    return self.has_finished and not self._run_dir.failure.exists()

  def _exit_code(self, returned: int) -> int:
    if returned >= 0:
      return returned
    # Launchpad kills its whole tree, itself included, when a node takes too long to end.
    good_ends = {summary_lib.FINISHED} | ({summary_lib.STOPPED} if self.is_stopped else set())
    if self._status.get('status') in good_ends and not self._run_dir.failure.exists():
      return 0
    if not self.stop_signal:
      processes.report_failure(
        self._run_dir,
        processes.LAUNCHER,
        f'the process was lost: {processes.describe_exit(returned)}',
        processes.LAUNCHER,
      )
    return processes.FAILURE_EXIT

  def _start(self, temporary: str) -> subprocess.Popen:
    self._launcher = launcher_process.start(self._run_dir, self._launch, temporary, self._saving_s)
    if self.is_stopped:
      self._launcher.terminate()
    return self._launcher

  def _kill(self) -> None:
    if self._launcher is not None:
      launcher_process.kill(self._launcher)

  def _show_notices(self) -> None:
    """Shows messages of the nodes to the user that do not end the run."""
    for line in self._notices.new():
      self._tell(f'Notice: {line}')

  def _tell(self, text: str) -> None:
    try:
      self._show(text)
    except BrokenPipeError:
      self._lose_reader()

  def _lose_reader(self) -> None:
    """Stops the run because nobody reads its output any more, as in `seed-acme train | head`."""
    self._progress = None
    if self.stop_signal is None:
      self.request_stop(signal.SIGPIPE)

  def _show_progress(self) -> None:
    status = summary_lib.read_progress(self._run_dir, self._earlier_s)
    if 'status' in status:
      self._status, self.has_begun = status, True
    stalled = self._stall.look(status)
    if self._progress is not None:
      try:
        with streams.outliving_output():
          self._progress.update({**status, 'stalled': stalled} if stalled else status)
      except BrokenPipeError:
        self._lose_reader()


def _set_earlier_logs_aside(run_dir: run_directory.RunDirectory) -> None:
  """Moves logs to `logs/attempt_<n>`, because the next attempt would overwrite them."""
  earlier = [
    path for path in run_dir.logs.iterdir() if not path.name.startswith(bucket_copy.ATTEMPT)
  ]
  if earlier:
    number = 1
    while (aside := run_dir.logs / f'{bucket_copy.ATTEMPT}{number}').exists():
      number += 1
    aside.mkdir()
    for path in earlier:
      path.rename(aside / path.name)
