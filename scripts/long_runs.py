"""Trains a list of long runs, one after the other: `python scripts/long_runs.py --folder=DIR LIST`.

Each line of LIST names a run and gives its command. It may also say when to give up the run:

  # a comment
  pong_1: seed-acme train --config=atari_vtrace_small --launch=single_process \\
    | give up at 1_000_000 unless episode/return_last_100 >= -19 | give up at 3_000_000

A rule checks the mean of a column of metrics.csv over the last tenth of the steps before its own. A
rule without a column always ends the run at that step. The folder of a run is DIR/NAME, and the
output of its command is DIR/NAME.log.

The same command continues after an interruption: it skips runs that are finished or given up, and
resumes those that were stopped. Ctrl-C and SIGTERM stop the current run with a checkpoint, and a
second one kills it. After a run that fails, the next one starts. Exits with 0 if every run is
finished or given up, 1 if one failed, 2 if the list is wrong, 130 or 143 after a signal.
"""

from __future__ import annotations

import argparse
import collections
from collections.abc import Sequence
import math
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time
from typing import NamedTuple

from seed_acme import config as config_lib
from seed_acme import config_validation
from seed_acme import types
from seed_acme.envs import experiment_environments as environments
from seed_acme.files import local
from seed_acme.loggers import csv_file
from seed_acme.loggers import terminal
from seed_acme.programs.command_line import command as command_lib
from seed_acme.programs.command_line import given as given_lib
from seed_acme.programs.command_line import line as line_lib
from seed_acme.programs.front_end import lifecycle
from seed_acme.programs.system import processes
from seed_acme.programs.system import signals
from seed_acme.programs.tools.sweep import plan as sweep_plan
from seed_acme.programs.tools.sweep import state as sweep_state
from seed_acme.storage import run_directory

_POLL_S = 0.2
_WINDOW = 0.1  # share of a rule's steps over which the mean is taken
_LINE = re.compile(r'(?P<name>\w[\w.-]*):\s+seed-acme\s+train\s+(?P<options>.+)')
_RULE = re.compile(
  r'give up at (?P<step>\d[\d_]*)'
  r'(?: unless (?P<column>\S+) (?P<sign>>=|<=) (?P<bound>-?\d+(\.\d+)?(e-?\d+)?))?'
)


class Rule(NamedTuple):
  """A rule that gives up at an agent step unless a column is `>=` or `<=` a bound.

  column: of metrics.csv; '' = give up in any case.
  """

  step: int
  column: str = ''
  sign: str = '>='
  bound: float = 0.0


class Run(NamedTuple):
  """A line of the list. options: for `seed-acme train`; config: the resulting configuration."""

  name: str
  options: tuple[str, ...]
  rules: tuple[Rule, ...]
  config: config_lib.ExperimentConfig


def parse(text: str) -> list[Run]:
  """Returns the runs of a list. Raises `types.UserError` with the bad line before any starts."""
  runs: list[Run] = []
  for line in text.replace('\\\n', ' ').splitlines():
    if line.strip() and not line.lstrip().startswith('#'):
      try:
        runs.append(_parse_line(line.strip()))
      except types.UserError as error:
        raise types.UserError(f'{line.strip()[:70]}: {error}') from error
  for name, number in collections.Counter(run.name for run in runs).items():
    if number > 1:
      raise types.UserError(f'{number} lines are called {name}: give each a name of its own')
  if not runs:
    raise types.UserError('the list names no run: write lines NAME: seed-acme train ...')
  return runs


def _parse_line(line: str) -> Run:
  command, *rules = line.split(' | ')
  found = _LINE.fullmatch(command.strip())
  if found is None:
    raise types.UserError('no run: write NAME: seed-acme train --config=...')
  options = shlex.split(found['options'])
  command, line = command_lib.find('train'), line_lib.read(['train', *options])
  arguments, given = given_lib.split(command, line)
  if not given.name or arguments.run_dir:
    raise types.UserError('give --config, and no --run_dir: a run lies in its name below --folder')
  if arguments.launch == 'vertex_ai':
    raise types.UserError('--launch=vertex_ai starts a job elsewhere: choose a launch on this host')
  config = given.config()
  config_validation.validate(config)
  environments.check(config)
  return Run(found['name'], tuple(options), tuple(map(_parse_rule, rules)), config)


def _parse_rule(text: str) -> Rule:
  found = _RULE.fullmatch(' '.join(text.split()))
  if found is None:
    raise types.UserError(
      f'{text.strip()!r} is no rule: write give up at STEP, or the same unless COLUMN >= BOUND'
    )
  if not found['column']:
    return Rule(int(found['step']))
  return Rule(int(found['step']), found['column'], found['sign'], float(found['bound']))


def values_of(rule: Rule, metrics: dict[str, list[float]]) -> list[float] | None:
  """Returns the column's values in the last tenth of a rule's steps, or the last one before it if
  there are none; None if the log has not reached the rule's step."""
  steps = metrics.get(csv_file.KEY, [])
  if not steps or steps[-1] < rule.step:
    return None
  first = (1 - _WINDOW) * rule.step
  rows = [row for row in zip(steps, metrics.get(rule.column, [])) if not math.isnan(row[1])]
  before = [row for row in rows if row[0] <= rule.step]
  return [value for step, value in before if step >= first] or [value for _, value in before[-1:]]


def judge(rule: Rule, values: Sequence[float]) -> str:
  """Returns why to give up, or ''. A column that was not logged is no reason."""
  if not rule.column:
    return f'at {rule.step:,} steps, as the list says'
  mean = sum(values) / len(values) if values else rule.bound
  if mean >= rule.bound if rule.sign == '>=' else mean <= rule.bound:
    return ''
  found = terminal.number(mean)
  return f'at {rule.step:,} steps {rule.column} is {found}, not {rule.sign} {rule.bound:g}'


class Runner:
  """The runner of a list. Call `run` on the main thread, because it handles Ctrl-C and SIGTERM."""

  def __init__(self, runs: Sequence[Run], folder: pathlib.Path):
    self._runs = runs
    self._folder = folder
    self._child: subprocess.Popen[bytes] | None = None
    self.stop_signal: int | None = None
    self.num_failed = 0

  def request_stop(self, signal_number: int) -> None:
    """Forwards a signal to the run, which knows what a first and a second one mean."""
    self.stop_signal = self.stop_signal or signal_number
    if self._child is not None:
      self._child.send_signal(signal.SIGINT)

  def run(self) -> None:
    """Runs the list; returns when every run has ended, or after a stop."""
    with signals.signals_to(self.request_stop):
      for run in self._runs:
        if self.stop_signal is None:
          self._take(run)

  def _take(self, run: Run) -> None:
    state, pending = self._state(run), list(run.rules)
    reason = self._reason_to_give_up(run, pending)
    if state.status == sweep_state.FINISHED:
      _say(f'{run.name}: finished before, {_figures(state)}')
    elif reason:
      _say(f'{run.name}: given up before, {reason}; {_figures(state)}')
    else:
      begins = 'started' if state.status == sweep_state.WAITING else 'resumed'
      _say(f'{run.name}: {begins} at {state.agent_steps:,} steps, commit {_commit()}')
      self._end(run, state, *self._train(run, pending))

  def _train(self, run: Run, pending: list[Rule]) -> tuple[str, str]:
    """Trains; returns why the run was given up, if it was, and the last error of its output."""
    log_path = self._folder / f'{run.name}.log'
    with open(log_path, 'a', encoding='utf-8') as log:
      log_start = log.tell()  # before the child, which shares the position
      self._child = child = subprocess.Popen(
        [
          *(sys.executable, '-m', 'seed_acme.programs.tools.sweep.child', 'train', *run.options),
          f'--run_dir={self._run_dir(run).path}',
        ],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,  # so that this program forwards a terminal's Ctrl-C once
        env={**os.environ, **processes.environment('long_run', os.getpid())},
      )
    if self.stop_signal is not None:  # the signal came before the child was known
      child.send_signal(signal.SIGINT)
    reason = ''
    while child.poll() is None:
      if not reason and self.stop_signal is None:
        reason = self._reason_to_give_up(run, pending)
        if reason:
          child.send_signal(signal.SIGINT)
      time.sleep(_POLL_S)
    self._child = None
    lines = log_path.read_bytes()[log_start:].decode(errors='replace').splitlines()
    errors = [line for line in lines if line.startswith('error')]
    return reason, errors[-1] if errors else processes.describe_exit(child.returncode)

  def _end(self, run: Run, before: sweep_state.State, reason: str, last_words: str) -> None:
    state = self._state(run, before)
    if state.status == sweep_state.FINISHED:
      _say(f'{run.name}: finished, {_figures(state)}')
    elif reason:
      _say(f'{run.name}: given up, {reason}; {_figures(state)}')
    elif self.stop_signal is not None and state.status != sweep_state.FAILED:
      _say(f'{run.name}: stopped, {_figures(state)}')
    else:
      self.num_failed += 1
      _say(f'{run.name}: failed, {state.message or last_words}')

  def _reason_to_give_up(self, run: Run, pending: list[Rule]) -> str:
    """Returns why to give up the run, or ''. pending: rules that are not decided yet."""
    folder = self._run_dir(run)
    steps = lifecycle.read_status(folder).get('agent_steps', 0) if folder.metrics.exists() else 0
    for rule in [rule for rule in pending if rule.step <= steps]:
      values = values_of(rule, csv_file.read(folder.metrics))
      if values is not None:
        pending.remove(rule)
        if rule.column and not values:
          _say(f'{run.name}: no {rule.column} was logged before {rule.step:,} steps to judge it by')
        if reason := judge(rule, values):
          return reason
    return ''

  def _state(self, run: Run, before: sweep_state.State | None = None) -> sweep_state.State:
    combination = sweep_plan.Combination(run.name, {}, run.config)
    of_sweep = sweep_plan.Run(combination, run.config.seed, run.config, self._run_dir(run))
    return sweep_state.read(of_sweep, before)

  def _run_dir(self, run: Run) -> run_directory.RunDirectory:
    return run_directory.RunDirectory(self._folder.absolute() / run.name)


def _figures(state: sweep_state.State) -> str:
  mean_return = '-' if state.mean_return is None else terminal.number(state.mean_return)
  cpu_s = '-' if state.cpu_s is None else f'{state.cpu_s:,.0f}'
  return (
    f'{state.agent_steps:,} steps, return of the last 100 episodes {mean_return}, '
    f'{cpu_s} CPU-seconds, {terminal.duration(state.wall_s)}'
  )


def _commit() -> str:
  """Returns the commit of this code, with a mark if files differ from it."""
  command = ['git', 'describe', '--always', '--dirty', '--abbrev=7', '--exclude=*']
  try:
    found = subprocess.run(
      command, cwd=pathlib.Path(__file__).parent, capture_output=True, text=True, check=True
    )
  except (OSError, subprocess.CalledProcessError):
    return 'unknown'
  return found.stdout.strip()


def _say(text: str) -> None:
  print(f'{time.strftime("%Y-%m-%d %H:%M:%S")} {text}', flush=True)


def main(argv: Sequence[str] | None = None) -> int:
  parser = argparse.ArgumentParser(
    description=__doc__, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('list', metavar='LIST', type=pathlib.Path)
  parser.add_argument('--folder', metavar='DIR', type=pathlib.Path, required=True)
  arguments = parser.parse_args(argv)
  sys.path.append(os.getcwd())  # where the user's own environment or network may be
  try:
    runs = parse(arguments.list.read_text(encoding='utf-8'))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    complaint = f'{arguments.folder} is worked on by another program (process %s): wait or stop it'
    with local.lock(arguments.folder / '.lock', lambda holder: complaint % holder):
      runner = Runner(runs, arguments.folder)
      runner.run()
  except (types.UserError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return processes.USER_ERROR_EXIT
  if runner.stop_signal is not None:
    return 128 + runner.stop_signal
  return int(runner.num_failed > 0)


if __name__ == '__main__':
  sys.exit(main())
