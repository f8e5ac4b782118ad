"""The scheduler of a sweep, which runs a few processes of `seed-acme train` at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple

from seed_acme import types
from seed_acme.loggers import terminal
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.system import streams
from seed_acme.programs.tools.sweep import labels as sweep_labels
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import runs as sweep_runs
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.storage import run_directory
from seed_acme.storage import saved_config

_POLL_S = 0.1
_LOOK_S = 1.0
_STOP_S = 120.0  # for the last checkpoints of the runs, after an error
_NODE = 'sweep_child'
_MAX_REASON = 300  # characters


class Progress(terminal.Progress):
  """The progress of a sweep: how many runs are done, and how long the rest will take."""

  plain_period_s = 30.0

  def live(self, status: Mapping[str, Any], columns: int, cells: str) -> str:
    return terminal.with_bar(status['share'], _figures(status), columns, cells)

  def plain(self, status: Mapping[str, Any]) -> str:
    return ', '.join(part for part in _figures(status) if part)


def _figures(status: Mapping[str, Any]) -> list[str]:
  under_way = ', '.join(terminal.percent(share) for share in status['running'])
  left_s = status['left_s']
  return [
    f'{status["done"]} of {status["total"]} runs done',
    f'{status["failed"]} failed' if status['failed'] else '',
    f'{len(status["running"])} under way ({under_way})' if under_way else '',
    f'{terminal.duration(status["elapsed_s"])} elapsed',
    f'{terminal.duration(left_s)} left' if left_s is not None else '',
  ]


class _Child(NamedTuple):
  run: sweep_plan.Run
  process: subprocess.Popen
  log_start: int  # length of its log before this start
  before: sweep_state.State  # the run's state before this start


class Scheduler:
  """A scheduler that runs a few runs at a time, and continues after a run that fails.

  Call `run` on the main thread. It handles Ctrl-C, SIGTERM and SIGHUP: the first stops all runs
  with a checkpoint, a second one kills them.
  """

  def __init__(
    self,
    runs: sweep_runs.Runs,
    names: dict[str, str],
    *,
    jobs: int,
    launch: str,
    progress: Progress | None,
    after_run: Callable[[dict[pathlib.Path, str]], None],
  ):
    """names: of the fields, in messages. after_run: called with all failures after each run."""
    self._runs = runs
    self._names = names
    self._jobs = jobs
    self._launch = launch
    self._progress = progress
    self._after_run = after_run
    states = {run.run_dir.path: sweep_state.read(run) for run in runs.known()}
    self._shares = {
      path: 1.0 if state.status == sweep_state.PRUNED else state.share
      for path, state in states.items()
    }
    self._shares_at_start = sum(self._shares.values())
    self._running: list[_Child] = []
    self._started_s = time.monotonic()
    self._look_next_s = 0.0
    self._undecided = ''  # why it could not be decided what to prune
    self.failures: dict[pathlib.Path, str] = {}  # reason by run folder
    self.stop_signal: int | None = None

  @property
  def num_left(self) -> int:
    """The number of runs that need more work."""
    return self._runs.num_in_all() - self._runs.num_over()

  def request_stop(self, signal_number: int) -> None:
    """Forwards a signal to all runs; each knows what a first and a second one mean."""
    if self.stop_signal is None:
      self.stop_signal = signal_number
    for child in self._running:
      child.process.terminate()

  def run(self) -> None:
    """Runs until all runs have ended or were stopped."""
    has_told = False
    with signals.signals_to(self.request_stop):
      try:
        while self._start_some() or self._running:
          time.sleep(_POLL_S)
          for child in [child for child in self._running if child.process.poll() is not None]:
            self._end(child)
          self._look()
          if self.stop_signal is not None and not has_told:
            has_told = True
            self._say('Stopping with checkpoints; a second signal kills at once.')
      except BaseException:  # of this program, or of what the search keeps its trials in
        self._end_children()
        raise
    self._print(lambda progress: progress.finish(self._status()))

  def _end_children(self) -> None:
    """Stops all runs with a checkpoint, and kills those that take too long."""
    for child in self._running:
      child.process.terminate()
    give_up_s = time.monotonic() + _STOP_S
    for child in self._running:
      try:
        child.process.wait(max(0.0, give_up_s - time.monotonic()))
      except subprocess.TimeoutExpired:
        child.process.kill()
        child.process.wait()

  def _start_some(self) -> bool:
    """Starts as many runs as may be under way; returns whether it started any."""
    has_started = False
    while self.stop_signal is None and len(self._running) < self._jobs:
      run = self._runs.next()
      if run is None:
        break
      has_started = True
      self._start(run)
    return has_started

  def _start(self, run: sweep_plan.Run) -> None:
    state = sweep_state.read(run)
    try:
      child = _start(run, self._launch, state)
    except (types.UserError, types.Failure) as error:
      self._failed(run, str(error))
      self._runs.ended(run, has_failed=True)
      return
    self._running.append(child)
    if self.stop_signal is not None:  # the signal came before the child was in the list
      child.process.terminate()
    verb = {sweep_state.WAITING: 'Started', sweep_state.FAILED: 'Retried'}.get(
      state.status, 'Resumed'
    )
    reached = f' at {terminal.percent(state.share)}' if state.share else ''
    self._say(f'{verb} {self._name(run)}{reached}')

  def _end(self, child: _Child) -> None:
    self._running.remove(child)
    run, state = child.run, sweep_state.read(child.run, child.before)
    self._shares[run.run_dir.path] = state.share
    has_failed = False
    if state.status == sweep_state.FINISHED:
      shown_return = '-' if state.mean_return is None else terminal.number(state.mean_return, 3)
      self._say(
        f'Finished {self._name(run)}: return of the last 100 episodes {shown_return}, '
        f'{state.agent_steps:,} steps in {terminal.duration(state.wall_s)}'
      )
    elif state.status == sweep_state.PRUNED:
      self._shares[run.run_dir.path] = 1.0  # it needs no more work
      reached = terminal.percent(state.share)
      self._say(
        f"Pruned {self._name(run)} at {reached}: its best return is below the others' median"
      )
    elif self.stop_signal is not None and state.status != sweep_state.FAILED:
      self._say(f'Stopped {self._name(run)} at {terminal.percent(state.share)}')
    else:
      has_failed = True
      self._failed(run, state.message or _last_words(child))
    self._runs.ended(run, has_failed)
    try:
      self._after_run(self.failures)
    except (types.UserError, types.Failure) as error:  # such as a full disk; the runs may continue
      self._say(f'Notice: {error}')

  def _failed(self, run: sweep_plan.Run, reason: str) -> None:
    self._shares[run.run_dir.path] = 1.0  # this program does not retry it
    reason = ' '.join(reason.split())[:_MAX_REASON]
    self.failures[run.run_dir.path] = reason
    self._say(f'Failed {self._name(run)}: {reason}')

  def _name(self, run: sweep_plan.Run) -> str:
    return f'{sweep_labels.label(run.combination.settings, self._names)} seed {run.seed}'

  def _status(self) -> dict[str, Any]:
    for child in self._running:
      self._shares[child.run.run_dir.path] = sweep_state.share(child.run)
    elapsed_s = time.monotonic() - self._started_s
    all_shares, total = sum(self._shares.values()), self._runs.num_in_all()
    done_here, left = all_shares - self._shares_at_start, max(0.0, total - all_shares)
    may_estimate = done_here > 0 and self._running and self.stop_signal is None
    return {
      'done': self._runs.num_over(),
      'total': total,
      'failed': len(self.failures),
      'share': min(1.0, all_shares / total),
      'running': [self._shares[child.run.run_dir.path] for child in self._running],
      'elapsed_s': elapsed_s,
      'left_s': elapsed_s * left / done_here if may_estimate else None,
    }

  def _look(self) -> None:
    """Checks on the running runs once a second."""
    if time.monotonic() < self._look_next_s:
      return
    self._look_next_s = time.monotonic() + _LOOK_S
    if self.stop_signal is None:
      given_up = {run.run_dir.path for run in self._to_stop()}
      for child in self._running:
        if child.run.run_dir.path in given_up:
          child.process.terminate()
    self._print(lambda progress: progress.update(self._status()))

  def _to_stop(self) -> list[sweep_plan.Run]:
    """Returns the runs to be pruned; if that cannot be decided now, none, with a notice."""
    try:
      found = self._runs.to_stop([child.run for child in self._running])
    except types.Failure as error:  # such as a database that another program has locked
      if str(error) != self._undecided:
        self._say(f'Notice: nothing is pruned for now: {error}')
      self._undecided = str(error)
      return []
    self._undecided = ''
    return found

  def _say(self, text: str) -> None:
    self._print(lambda progress: progress.message(text))

  def _print(self, show: Callable[[Progress], None]) -> None:
    if self._progress is not None:
      try:
        with streams.outliving_output():
          show(self._progress)
      except BrokenPipeError:  # the reader is gone, as in `seed-acme sweep | head`
        self._progress = None
        self.request_stop(signal.SIGPIPE)


def log_path(run: sweep_plan.Run) -> pathlib.Path:
  """Returns the file for the output of a run's processes; its nodes log to the run's `logs`."""
  return run.run_dir.path.with_suffix('.log')


def _start(run: sweep_plan.Run, launch: str, before: sweep_state.State) -> _Child:
  """Starts a run, after saving its configuration where `train --run_dir` finds it."""
  if run.run_dir.holds_run():
    trust = saved_config.trust_in(run.config)
    saved = saved_config.load(run.run_dir.config, trust, only_types=True)
    saved_config.compare_for_resume(saved, run.config)
  run_directory.create(run.run_dir.path)
  saved_config.save(run.config, run.run_dir.config)
  with open(log_path(run), 'a', encoding='utf-8') as log:
    log_start = log.tell()  # before the child, which shares the position
    options = [f'--run_dir={run.run_dir.path}', f'--launch={launch}', '--json', '--trust_run_dir']
    process = subprocess.Popen(
      [sys.executable, '-m', 'seed_acme.programs.tools.sweep.child', 'train', *options],
      stdin=subprocess.DEVNULL,
      stdout=log,
      stderr=log,
      start_new_session=True,
      env={**os.environ, **processes.environment(_NODE, os.getpid())},
    )
  return _Child(run, process, log_start, before)


def _last_words(child: _Child) -> str:
  """Returns why a run has ended that wrote no failure.json."""
  with open(log_path(child.run), 'rb') as log:
    log.seek(child.log_start)
    lines = log.read().decode(errors='replace').split('\n')
  errors = [line for line in lines if line.startswith('error')]
  ended = processes.describe_exit(child.process.returncode)
  return errors[-1].removeprefix('error: ') if errors else f'the process ended: {ended}'
