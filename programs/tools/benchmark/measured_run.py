"""A run that is measured: its start, its first update, whether it makes progress, and its end."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import subprocess
import time
from typing import Any

from seed_acme import config as config_lib
from seed_acme import types
from seed_acme.loggers import terminal
from seed_acme.programs.front_end import launcher_process
from seed_acme.programs.front_end import launches
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.front_end import stall
from seed_acme.programs.front_end import summary
from seed_acme.programs.system import processes
from seed_acme.storage import run_directory

_POLL_S = 0.02
_WATCH_S = 0.5  # between two looks at a run that is measured
START_S = 120.0  # longest wait for the first update
# Longest time without progress after it. It is no stall if the machine is busy or an update takes
# long, because the first update must come within this time, too. The notice that names a hanging
# environment comes sooner, after 60 s (actor.step_timeout_s).
_STILL_S = 120.0
ENDLESS = 10**15  # agent steps: the benchmark ends the run itself


class BenchFailed(types.UserError):
  """The run failed, or its measurements would be misleading."""


@contextlib.contextmanager
def launched(
  run_dir: run_directory.RunDirectory, temporary: str, launch: str = launches.LOCAL_MP
) -> Iterator[subprocess.Popen]:
  """Starts the launcher of a run, yields it, and ends it afterwards."""
  launcher = launcher_process.start(run_dir, [launch], temporary)
  try:
    yield launcher
  finally:
    launcher.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
      launcher.wait(20)
    launcher_process.kill(launcher)
    launcher.wait()


def wait_for_updates(
  config: config_lib.ExperimentConfig,
  run_dir: run_directory.RunDirectory,
  launcher: subprocess.Popen,
) -> None:
  """Waits for the first update, which takes long because everything has to start."""
  give_up = time.monotonic() + START_S
  while not (status := lifecycle.read_status(run_dir)).get('updates'):
    check_alive(run_dir, launcher)
    if time.monotonic() > give_up:
      raise BenchFailed(_no_update(config, status.get('unrolls_confirmed', 0)))
    time.sleep(_POLL_S)


def _no_update(config: config_lib.ExperimentConfig, num_inserted: int) -> str:
  """Explains why a run that is still alive has made no update yet."""
  agent = config.agent
  least = agent.replay_spec().min_size
  if num_inserted < least:
    return (
      f'no update within {START_S:g} s: the first one needs {least:,} '
      f'unrolls of {agent.unroll_length} steps in the memory, and {num_inserted:,} are '
      'there: lower --config.agent.replay_min_size'
    )
  return (
    f'no update within {START_S:g} s: run the same configuration with seed-acme train and '
    'look at its logs'
  )


def check_alive(run_dir: run_directory.RunDirectory, launcher: subprocess.Popen) -> None:
  """Raises `BenchFailed` with the reason if the run has ended."""
  if launcher.poll() is not None:
    failure = processes.read_failure(run_dir)
    raise BenchFailed(f'the run ended: {failure["message"] if failure else "no reason given"}')


class Progress:
  """The status of a run that has made its first update, as long as it makes progress."""

  def __init__(
    self,
    config: config_lib.ExperimentConfig,
    run_dir: run_directory.RunDirectory,
    launcher: subprocess.Popen,
    pause_s: float = 0.0,
  ):
    """pause_s: how much longer than usual a healthy run may make no progress."""
    # `stall_s` may be 0 or short, because for training it only changes the line that is shown.
    learner = config.learner
    self._limit_s = pause_s + max(_STILL_S, learner.stall_s, 2 * learner.log_period_s)
    self._stall = stall.Stall(self._limit_s)
    self._run_dir, self._launcher = run_dir, launcher

  def watch(self, seconds: float) -> None:
    """Waits; `BenchFailed` as `status`."""
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
      self.status()
      time.sleep(min(left_s, _WATCH_S))

  def status(self) -> dict[str, Any]:
    """Returns the status; `BenchFailed` with the reason if the run has ended or stands still."""
    check_alive(self._run_dir, self._launcher)
    status = summary.read_progress(self._run_dir, earlier_s=None)
    if self._stall.look(status):
      raise BenchFailed(self._describe(status))
    return status

  def _describe(self, status: dict[str, Any]) -> str:
    waits_for = f'waiting for {status["waits_for"]}' if status.get('waits_for') else ''
    notices = summary.Notices(self._run_dir).new()
    reasons = (status['phase'] or waits_for, f'its last notice: {notices[-1]}' if notices else '')
    return (
      f'the run has made no progress for {terminal.duration(self._limit_s)}'
      f'{"".join(f"; {reason}" for reason in reasons if reason)}; run the same configuration with '
      'seed-acme train and look at its logs'
    )
